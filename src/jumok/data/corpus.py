"""A corpus prepared for training: encoder learned, validation examples held out, token ids stored.

    store/  tokenizer.model  train/  valid.jsonl  rejected.tsv  prepared.json

It is made again when a file or a setting that matters has changed, or anything is missing or damaged.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from jumok import files
from jumok.data.examples import Example, ExampleKind, InputEncoder, Paths, Rejections, too_many_left_out
from jumok.data.examples_file import ExamplesFile
from jumok.data.source_files import SourceFile, SourceFiles, fingerprint_of, require_files
from jumok.data.split import Holdout
from jumok.data.spool import Spool
from jumok.data.store import TokenStore
from jumok.errors import BundleError, ChangedDataError, InputError
from jumok.files import REAL_FILES
from jumok.pictures import picture_from_text
from jumok.tasks import ENCODERS, resolve
from jumok.tokenizer import Tokenizer

CHUNK = 10_000  # examples tokenized at a time, on all cores
PICTURES_AT_A_TIME = 32  # a large one takes a megabyte
_MAX_FILE_BYTES = 1 << 30
_VALID, _FACTS, _REJECTED = "valid.jsonl", "prepared.json", "rejected.tsv"


@dataclass(frozen=True)
class Corpus:
    """What training and validation need of a corpus."""

    encoder: InputEncoder
    train: TokenStore  # a column for each input, `line`, and `label` where there are labels
    valid: Sequence[Example]
    facts: dict[str, Any]  # fingerprint, classes, rejected, findings …

    @property
    def tokenizer(self) -> Tokenizer:
        """The encoder of a corpus of texts."""
        assert isinstance(self.encoder, Tokenizer)
        return self.encoder

    @property
    def classes(self) -> list[str]:
        """Names of the classes, in the order of their numbers."""
        return list(self.facts["classes"])


def prepare_corpus(
    kind: ExampleKind,
    directory: Path,
    paths: Paths,
    *,
    valid: Paths | None = None,
    size: int | None = None,
    seed: int = 0,
    expected: str | None = None,
    encoder: InputEncoder | None = None,
    if_changed: Callable[[], InputEncoder | None] | None = None,
    skip_unusable: bool = False,
    on_phase: Callable[[str], None] = lambda _: None,
) -> Corpus:
    """The corpus in these files: opened if it is in `directory` already, else made and kept there.

    If `expected` is given and is not the fingerprint, `if_changed` returns the encoder to go on with; without it,
    ChangedDataError is raised, and no file in `directory` has changed: standard input is copied to be compared, and
    that copy removed. With an `encoder` none is learned, and `size` does not matter.
    Memory: less than 100 bytes a sentence pair, 500,000 sampled lines for the vocabulary.
    If more than a third of a file cannot be used, InputError is raised, unless `skip_unusable`; a corpus that was in
    `directory` is still there. `on_phase` gets "vocabulary" and "encoding" when these begin.
    """
    require_files([*paths, *(valid or ())], f"Give {kind.files}.")
    if directory.is_dir():
        files.clean_leftovers(REAL_FILES, directory)
    with SourceFiles(directory) as sources:
        train_files = sources.read(paths, "input")
        valid_files = None if valid is None else sources.read(valid, "valid")
        everything = [*train_files, *(valid_files or ())]

        def fingerprint_with(encoder: InputEncoder | None) -> str:
            vocabulary = size if encoder is None else sha256(encoder.to_bytes()).hexdigest()
            settings = (kind.name, len(train_files), vocabulary, kind.longest, seed, *kind.variant)
            return fingerprint_of(everything, *settings)

        fingerprint = fingerprint_with(encoder)
        if expected not in (None, fingerprint):
            if if_changed is None:
                raise ChangedDataError([source.to_json() for source in everything])
            encoder = if_changed()
            fingerprint = fingerprint_with(encoder)
        preparation = _Preparation(kind, directory, train_files, valid_files, seed, skip_unusable, on_phase)
        return _open(directory, fingerprint) or preparation.make(fingerprint, encoder or size)


def open_corpus(directory: Path, fingerprint: str) -> Corpus:
    """The corpus with this fingerprint that another process has just made."""
    corpus = _open(directory, fingerprint)
    if corpus is None:
        raise InputError(
            f"{directory}: does not hold the corpus that was just prepared. All processes must see the same directory."
        )
    return corpus


@dataclass
class _Preparation:
    """Makes a corpus. The files are read once; everything else is made from a spool of their examples."""

    kind: ExampleKind
    directory: Path
    sources: Sequence[SourceFile]
    valid_sources: Sequence[SourceFile] | None
    seed: int
    skip_unusable: bool
    on_phase: Callable[[str], None]

    def __post_init__(self) -> None:
        self.paths = [source.path for source in self.sources]
        self.valid_paths = None if self.valid_sources is None else [source.path for source in self.valid_sources]
        self.holdout, self.rejections = Holdout(self.seed), Rejections()
        self.classes: dict[str, int] = {}
        self.lost_of_valid = self.lines_of_valid = 0

    def make(self, fingerprint: str, encoder: InputEncoder | int | None) -> Corpus:
        """Read, encode and store everything; each example that is left out is named in rejected.tsv."""
        files.make_directory_durably(REAL_FILES, self.directory)
        with (
            files.replacing_durably(REAL_FILES, self.directory / _REJECTED) as file,
            Spool(self.directory) as spool,
            Spool(self.directory) as valid,
        ):
            self.rejections.log = lambda reason, where: file.writelines(
                [f"{where}\t{reason}\n".encode(errors="backslashreplace")]  # a file's name need not be Unicode
            )
            corpus = self._make(spool, valid, fingerprint, encoder)
        self._write(corpus)
        return corpus

    def _make(self, spool: Spool, valid: Spool, fingerprint: str, given: InputEncoder | int | None) -> Corpus:
        kind = self.kind
        findings = self._read(spool, valid)
        if set(kind.columns) - set(kind.pictures):  # pictures have no vocabulary
            self.on_phase("vocabulary")
        if isinstance(given, int | None):
            encoder, reason = kind.learn_encoder(lambda: self._training(spool), given, self.seed)
        else:
            encoder, reason = given, "unchanged: the model was trained with it"
        self.on_phase("encoding")
        if kind.labelled:
            self.classes = self._count_classes(spool)
        train = self._store(spool, valid, encoder, fingerprint)
        measured = ExamplesFile.write(self.directory / _VALID, self._usable(valid, encoder))
        facts = {
            "fingerprint": fingerprint,
            "files": [source.to_json() for source in self.sources],
            "valid_files": [source.to_json() for source in self.valid_sources or ()],
            "kind": kind.name,
            "encoder": kind.encoder,
            "tokenizer": {"size": encoder.size, "why": reason},
            "examples": len(train),
            "tokens": self._count_tokens(train),
            "valid_examples": len(measured),
            "classes": self.classes,
            "rejected": self.rejections.to_json(),
            "findings": findings,
            "layouts": [layout.to_json() for layout in self.rejections.layouts if layout.describe()],
            "reading": dict(kind.reading),
        }
        return Corpus(encoder, train, measured, facts)

    def _count_tokens(self, train: TokenStore) -> int:
        """Number of tokens to learn, with </s>; a picture counts as one."""
        last = self.kind.columns[-1]
        return len(train) + (0 if last in self.kind.pictures else int(train.lengths(last).sum()))

    def _write(self, corpus: Corpus) -> None:
        """Write encoder and facts; the facts last, because they say that everything is there."""
        contents = {ENCODERS[self.kind.encoder].file: corpus.encoder.to_bytes()}
        for name, content in {**contents, _FACTS: files.format_json(corpus.facts)}.items():
            files.replace_file_durably(REAL_FILES, self.directory / name, content)

    def _read(self, spool: Spool, valid: Spool) -> list[dict[str, Any]]:
        """Read the examples into the spools, `valid` for those of validation files; returns what the check found."""
        kind, rejections = self.kind, self.rejections
        if self.valid_paths is not None:
            for example in kind.read(self.valid_paths, rejections):
                valid.add(example, 0)
            self._require_enough(self.valid_paths, len(valid))
        self.lost_of_valid, self.lines_of_valid = rejections.lost, rejections.lines_used
        given = None if self.valid_paths is None else (example for example, _ in valid)
        check = kind.check(self.paths, given) if kind.check else None
        for example in check.read(rejections) if check else kind.read(self.paths, rejections):
            spool.add(example, self.holdout.add(example) if given is None else 0)
        self._require_enough(self.paths, len(spool))
        findings = check.findings() if check else []
        if given is None:
            self.holdout.choose(str(self.paths[0]), kind.name if kind.pictures else "texts")
        return findings

    def _require_enough(self, paths: Sequence[Path], used: int) -> None:
        """Refuse files of which more than a third cannot be used, before anything of the corpus is written."""
        left_out = self.rejections.lost - self.lost_of_valid
        lines = self.rejections.lines_used - self.lines_of_valid
        used, name = (lines, "lines") if lines else (used, self.kind.name)
        if self.skip_unusable or not too_many_left_out(left_out, used):
            return
        raise InputError(
            f"{', '.join(map(str, paths))}: {left_out:,} of {left_out + used:,} {name} cannot be used, more than a "
            f"third:\n{self.rejections.render()}\n"
            "Correct the files, or train on the rest with `skip_unusable=True`."
        )

    def _training(self, spool: Spool, held_out: Spool | None = None) -> Iterator[Example]:
        """The training examples of the spool; those that are held out are added to the other one."""
        for example, number in spool:
            if not self.holdout.holds(number):
                yield example
            elif held_out is not None:
                held_out.add(example, number)

    def _count_classes(self, spool: Spool) -> dict[str, int]:
        counts = Counter(example.label for example in self._training(spool))
        if len(counts) < 2:
            [only] = counts or ["none"]
            raise InputError(
                f'{self.paths[0]}: every {self.kind.name.removesuffix("s")} has the label "{only}", so that there are '
                f"no classes to tell apart. Give {self.kind.name} of at least two classes."
            )
        return {name: counts[name] for name in sorted(counts)}

    def _store(self, spool: Spool, valid: Spool, encoder: InputEncoder, fingerprint: str) -> TokenStore:
        """Store the ids of the training examples; those that are held out are added to `valid`."""
        labels = {name: [[number]] for number, name in enumerate(self.classes)} if self.kind.labelled else {"": []}

        def rows() -> Iterator[list[Sequence[int]]]:
            given, count = len(valid), 0
            for example, ids in self._encode(self._training(spool, valid), encoder):
                yield [*ids, [int(example.where.rpartition(":")[2])], *labels[example.label]]
                count += 1
            self._require_enough(self.paths, count + len(valid) - given)  # too long ones are known only now

        train = TokenStore.build(
            self.directory / "train",
            rows(),
            columns=(*self.kind.columns, "line", *(["label"] if self.kind.labelled else [])),
            fingerprint=fingerprint,
            pictures=self.kind.pictures,
        )
        if not len(train):
            raise InputError(f"{self.paths[0]}: none of the {self.kind.name} can be used:\n{self.rejections.render()}")
        return train

    def _usable(self, valid: Spool, encoder: InputEncoder) -> Iterator[Example]:
        """The validation examples that are not too long and have a label that is learned. InputError if none is."""
        found = False
        for example, _ in self._encode((example for example, _ in valid), encoder):
            if self._has_known_label(example):
                found = True
                yield example
        if not found:
            raise InputError(
                f"None of the {self.kind.name} for validation can be used:\n{self.rejections.render()}\n"
                f"Give others, or none: then some of the {self.kind.name} for training are held out for validation."
            )

    def _has_known_label(self, example: Example) -> bool:
        if not self.kind.labelled or example.label in self.classes:
            return True
        self.rejections.add(f'label "{example.label}" is not among those learned', example.where)
        return False

    def _encode(
        self, examples: Iterator[Example], encoder: InputEncoder
    ) -> Iterator[tuple[Example, list[Sequence[int]]]]:
        """Each example with the ids of its inputs, or the bytes of pictures, without those that are too long."""
        kind = self.kind
        while chunk := list(islice(examples, PICTURES_AT_A_TIME if kind.pictures else CHUNK)):
            inputs = zip(kind.columns, zip(*(example.inputs for example in chunk), strict=True), strict=True)
            columns: list[Sequence[Sequence[int]]] = [
                [picture_from_text(each).tobytes() for each in column]
                if name in kind.pictures
                else encoder.encode(column)
                for name, column in inputs
            ]
            for example, *ids in zip(chunk, *columns, strict=True):
                if kind.longest is not None and self._longest(ids) > kind.longest:
                    self.rejections.add(f"longer than {kind.longest} tokens", example.where)
                else:
                    yield example, ids

    def _longest(self, ids: Sequence[Sequence[int]]) -> int:
        """Number of tokens of the longest input that is no picture."""
        return max(
            len(each) for name, each in zip(self.kind.columns, ids, strict=True) if name not in self.kind.pictures
        )


def read_valid(directory: Path) -> Sequence[Example]:
    """The validation examples of a prepared corpus; see `ExamplesFile`."""
    return ExamplesFile(directory / _VALID)


def _open(directory: Path, fingerprint: str) -> Corpus | None:
    train = TokenStore.open(directory / "train", fingerprint)
    try:
        where = directory / _FACTS
        facts = files.parse_json_object(files.read_bounded(where, _MAX_FILE_BYTES), where)
        valid = read_valid(directory)
        entry = ENCODERS[facts.get("encoder", "tokenizer")]
        path = directory / entry.file
        encoder = resolve(entry.reference).from_bytes(files.read_bounded(path, _MAX_FILE_BYTES), str(path))
        complete = facts["fingerprint"] == fingerprint and facts["valid_examples"] == len(valid)
    except (files.UnreadableError, BundleError, OSError, ValueError, KeyError, TypeError):
        return None
    return Corpus(encoder, train, valid, facts) if complete and train is not None else None
