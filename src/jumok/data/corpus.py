"""A corpus made ready for training: vocabulary learned, examples held out, tokens stored.

    store/  tokenizer.model  train/  valid.jsonl  rejected.tsv  prepared.json

It is made once. When a file or a setting that matters has changed, or anything is missing, it is made again. What a
task reads and how it becomes tokens stands in an `ExampleKind`.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any

from jumok.data.examples import Example, ExampleKind, InputEncoder, Rejections
from jumok.data.reading.lines import STANDARD_INPUT, without_compression
from jumok.data.split import Reader
from jumok.data.store import TokenStore, fingerprint_of
from jumok.errors import BundleError, ChangedDataError, InputError
from jumok.files import (
    REAL_FILES,
    UnreadableError,
    explained_writing,
    format_json,
    make_directory_durably,
    parse_json_object,
    read_bounded,
    replace_file_durably,
)
from jumok.tasks import ENCODERS, resolve
from jumok.tokenizer import Tokenizer

CHUNK = 10_000  # examples tokenized at a time, on all cores
_MAX_FILE_BYTES = 1 << 30


@dataclass(frozen=True)
class Corpus:
    """Everything training and validation need of a corpus."""

    encoder: InputEncoder
    train: TokenStore  # a column for each input, `line`, and `label` where there are labels
    valid: list[Example]
    facts: dict[str, Any]  # fingerprint, tokenizer, rejected … : what the user is told and the card records

    @property
    def tokenizer(self) -> Tokenizer:
        """The encoder of a corpus of texts."""
        assert isinstance(self.encoder, Tokenizer)
        return self.encoder

    @property
    def classes(self) -> list[str]:
        """Names of the labels, in the order of their numbers."""
        return list(self.facts["classes"])


def prepare_corpus(
    kind: ExampleKind,
    directory: Path,
    paths: Sequence[str | Path],
    *,
    valid: Sequence[str | Path] | None = None,
    size: int | None = None,
    seed: int = 0,
    expected: str | None = None,
    encoder: InputEncoder | None = None,
) -> Corpus:
    """The corpus in these files, from `directory` if it stands there already, else made and kept there.

    Raises ChangedDataError, with everything left as it is, if `expected` is given and is not the fingerprint. With an
    `encoder` none is learned, and `size` does not matter.
    """
    paths = [_kept(path, directory, f"input-{n}", alone=len(paths) == 1) for n, path in enumerate(paths)]
    valid = valid and [_kept(path, directory, f"valid-{n}", alone=len(valid) == 1) for n, path in enumerate(valid)]
    files = [Path(path) for path in (*paths, *(valid or ()))]
    for path in files:
        if not path.exists():
            raise InputError(f"{path}: no such file. Give {kind.files}.")
    vocabulary = size if encoder is None else sha256(encoder.to_bytes()).hexdigest()
    settings = [kind.name, len(paths), vocabulary, kind.longest, seed, *kind.variant]
    names = [_deciding_names(path) for path in files]
    fingerprint = fingerprint_of(
        chain.from_iterable(map(_all_files, files)), *settings, *([names] if any(names) else [])
    )
    if expected not in (None, fingerprint):
        raise ChangedDataError(
            f"{', '.join(path.name for path in files)}: changed since this training began. Bring back the old files, "
            "start again with --fresh, or accept the new ones with --continue-with-changes."
        )
    known = _open(directory, fingerprint)
    return known or _Preparation(kind, directory, Reader(kind.read, paths, valid, seed)).make(
        fingerprint, encoder or size
    )


def open_corpus(directory: Path, fingerprint: str) -> Corpus:
    """The corpus with this fingerprint that another process has just made."""
    corpus = _open(directory, fingerprint)
    if corpus is None:
        raise InputError(f"{directory}: is not there as it was just made. All processes must see the same directory.")
    return corpus


def _kept(path: str | Path, directory: Path, name: str, *, alone: bool) -> str | Path:
    """The same path, but for standard input or a pipe a file with what came from it: a corpus is read several times."""
    is_standard_input = str(path) == STANDARD_INPUT
    if not is_standard_input and not Path(path).is_fifo():
        return path
    make_directory_durably(REAL_FILES, directory)
    suffixes = "" if is_standard_input else "".join(Path(path).suffixes)
    copy = directory / f"{name}{suffixes or ('.tsv' if alone else '.txt')}"
    with explained_writing(copy), open(copy, "wb") as file:
        if is_standard_input:
            shutil.copyfileobj(sys.stdin.buffer, file)
        else:
            with open(path, "rb") as pipe:
                shutil.copyfileobj(pipe, file)
    return copy


def _all_files(path: Path) -> list[Path]:
    """The file, or for a directory everything in it, in an order that is always the same."""
    if not path.is_dir():
        return [path]
    # rglob does not follow links by itself, but the directory of a class may be one.
    return sorted(file for entry in path.iterdir() for file in (entry, *entry.rglob("*")) if file.is_file())


def _deciding_names(path: Path) -> list[str]:
    """What names decide and contents do not: the labels of texts in directories, and whether a table is CSV or TSV.

    A file of any other format gives nothing under a name of another, and may be called anything.
    """
    if path.is_dir():
        return [file.relative_to(path).as_posix() for file in _all_files(path)]
    return [".csv"] if without_compression(path).suffix.lower() == ".csv" else []


class _Preparation:
    """Makes a corpus."""

    def __init__(self, kind: ExampleKind, directory: Path, reader: Reader) -> None:
        self.kind, self.directory, self.reader = kind, directory, reader
        self.rejections = Rejections()
        self.classes: dict[str, int] = {}

    def make(self, fingerprint: str, encoder: InputEncoder | int | None) -> Corpus:
        """Everything, with each example that is left out named in a file."""
        make_directory_durably(REAL_FILES, self.directory)
        path = self.directory / "rejected.tsv"
        with explained_writing(path), open(path, "w", encoding="utf-8", newline="\n") as file:
            self.rejections = Rejections(log=lambda reason, where: print(where, reason, sep="\t", file=file))
            return self._make(fingerprint, encoder)

    def _make(self, fingerprint: str, encoder: InputEncoder | int | None) -> Corpus:
        kind, rejections = self.kind, self.rejections
        encoder, reason = self._encoder(encoder)
        if kind.labelled:
            self.classes = self._count_classes()
        train = TokenStore.build(
            self.directory / "train",
            self._rows(self.reader.train(rejections), encoder),
            columns=(*kind.columns, "line", *(["label"] if kind.labelled else [])),
            fingerprint=fingerprint,
        )
        if not len(train):
            raise InputError(f"{self.reader.paths[0]}: none of the {kind.name} can be used:\n{rejections.render()}")
        valid = list(self._judged(self.reader.valid(rejections), encoder))
        if not valid:
            raise InputError(
                f"None of the {kind.name} to measure on can be used:\n{rejections.render()}\n"
                f"Give others, or none: then some of the {kind.name} to learn from are held out to measure on."
            )
        facts = {
            "fingerprint": fingerprint,
            "kind": kind.name,
            "encoder": kind.encoder,
            "tokenizer": {"size": encoder.size, "why": reason},
            "examples": len(train),
            "tokens": int(train.lengths(kind.columns[-1]).sum()) + len(train),
            "valid_examples": len(valid),
            "classes": self.classes,
            "rejected": rejections.to_json(),
        }
        lines = "".join(json.dumps(_to_json(example), ensure_ascii=False) + "\n" for example in valid)
        replace_file_durably(REAL_FILES, self.directory / "valid.jsonl", lines.encode())
        replace_file_durably(REAL_FILES, self.directory / ENCODERS[kind.encoder].file, encoder.to_bytes())
        replace_file_durably(REAL_FILES, self.directory / "prepared.json", format_json(facts))
        return Corpus(encoder, train, valid, facts)

    def _encoder(self, given: InputEncoder | int | None) -> tuple[InputEncoder, str]:
        """The encoder, and why it has the size it has."""
        if isinstance(given, int | None):
            return self.kind.learn_encoder(self.reader.train, given, self.reader.seed)
        return given, "unchanged: the model was trained with it"

    def _count_classes(self) -> dict[str, int]:
        counts = Counter(example.label for example in self.reader.train())
        if len(counts) < 2:
            [only] = counts or ["none"]
            raise InputError(
                f'{self.reader.paths[0]}: every text has the label "{only}"; there is nothing to tell apart. '
                "Give texts of at least two classes."
            )
        return {name: counts[name] for name in sorted(counts)}

    def _rows(self, examples: Iterator[Example], encoder: InputEncoder) -> Iterator[list[list[int]]]:
        """What the store keeps of each example that is learned from."""
        numbers = {name: number for number, name in enumerate(self.classes)}
        for example, ids in self._encode(examples, encoder):
            label = [[numbers[example.label]]] if self.kind.labelled else []
            yield [*ids, [int(example.where.rpartition(":")[2])], *label]

    def _judged(self, examples: Iterator[Example], encoder: InputEncoder) -> Iterator[Example]:
        """What is measured on. A class that was never learned has no number, so it is left out."""
        for example, _ in self._encode(examples, encoder):
            if self.kind.labelled and example.label not in self.classes:
                self.rejections.add(f'label "{example.label}" is not among those learned', example.where)
            else:
                yield example

    def _encode(
        self, examples: Iterator[Example], encoder: InputEncoder
    ) -> Iterator[tuple[Example, Sequence[list[int]]]]:
        """Each example with the ids of its inputs, without those that are too long."""
        longest = self.kind.longest
        while chunk := list(islice(examples, CHUNK)):
            columns = [encoder.encode(inputs) for inputs in zip(*(example.inputs for example in chunk), strict=True)]
            for example, *ids in zip(chunk, *columns, strict=True):
                if longest is not None and max(map(len, ids)) > longest:
                    self.rejections.add(f"longer than {longest} tokens", example.where)
                else:
                    yield example, ids


def _to_json(example: Example) -> dict[str, Any]:
    return {"inputs": list(example.inputs), "where": example.where, "label": example.label}


def read_valid(directory: Path) -> list[Example]:
    """The validation examples of a prepared corpus. ValueError, KeyError or OSError if they cannot be read."""
    lines = read_bounded(directory / "valid.jsonl", _MAX_FILE_BYTES).decode().split("\n")[:-1]
    # Stores of earlier versions call the inputs "texts".
    return [
        Example(tuple(value["inputs"] if "inputs" in value else value["texts"]), value["where"], value["label"])
        for value in map(json.loads, lines)
    ]


def _read_encoder(directory: Path, name: str) -> InputEncoder:
    path = directory / ENCODERS[name].file
    encoder: InputEncoder = resolve(ENCODERS[name].reference).from_bytes(read_bounded(path, _MAX_FILE_BYTES), str(path))
    return encoder


def _open(directory: Path, fingerprint: str) -> Corpus | None:
    train = TokenStore.open(directory / "train", fingerprint)
    try:
        where = directory / "prepared.json"
        facts = parse_json_object(read_bounded(where, _MAX_FILE_BYTES), where)
        valid = read_valid(directory)
        encoder = _read_encoder(directory, facts.get("encoder", "tokenizer"))
        complete = facts["fingerprint"] == fingerprint and facts["valid_examples"] == len(valid)
    except (UnreadableError, BundleError, OSError, ValueError, KeyError, TypeError):
        return None
    return Corpus(encoder, train, valid, facts) if complete and train is not None else None
