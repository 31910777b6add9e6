"""A corpus made ready for training: vocabulary learned, examples held out, tokens stored.

    store/  tokenizer.model  train/  valid.jsonl  prepared.json

It is made once. When a file or a setting that matters has changed, or anything is missing, it is made again. What a
task reads and how it becomes tokens stands in a `Kind`.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from jumok.data.corpora import Rejections
from jumok.data.held_out import Example, Reader
from jumok.data.lines import STANDARD_INPUT
from jumok.data.store import TokenStore, fingerprint_of
from jumok.errors import BundleError, ChangedDataError, InputError
from jumok.files import (
    REAL_FILES,
    UnreadableError,
    format_json,
    make_directory_durably,
    parse_json_object,
    read_bounded,
    replace_file_durably,
)
from jumok.tokenizer import Tokenizer, choose_size, measure_texts

CHUNK = 10_000  # examples tokenized at a time, on all cores
_LARGEST_VALID = 1 << 30


@dataclass(frozen=True)
class Kind:
    """What a task learns from."""

    name: str  # of the examples, in messages: "pairs"
    columns: tuple[str, ...]  # names of the texts of an example
    read: Callable[[Sequence[str | Path], Rejections], Iterator[Example]]
    files: str  # what may be given, in messages
    longest: int | None = None  # tokens of a text; an example with a longer one is left out
    labelled: bool = False


@dataclass(frozen=True)
class Corpus:
    """Everything training and validation need of a corpus."""

    tokenizer: Tokenizer
    train: TokenStore  # a column for each text, `line`, and `label` where there are labels
    valid: list[Example]
    facts: dict[str, Any]  # fingerprint, tokenizer, rejected … : what the user is told and the card records

    @property
    def classes(self) -> list[str]:
        """Names of the labels, in the order of their numbers."""
        return list(self.facts["classes"])


def prepare_corpus(
    kind: Kind,
    directory: Path,
    paths: Sequence[str | Path],
    *,
    valid: Sequence[str | Path] | None = None,
    size: int | None = None,
    seed: int = 0,
    expected: str | None = None,
    tokenizer: Tokenizer | None = None,
) -> Corpus:
    """The corpus in these files, from `directory` if it stands there already, else made and kept there.

    Raises ChangedDataError, with everything left as it is, if `expected` is given and is not the fingerprint. With a
    `tokenizer` none is learned, and `size` does not matter.
    """
    paths = [_kept(path, directory, alone=len(paths) == 1) for path in paths]
    files = [Path(path) for path in (*paths, *(valid or ()))]
    for path in files:
        if not path.exists():
            raise InputError(f"{path}: no such file. Give {kind.files}.")
    vocabulary = size if tokenizer is None else sha256(tokenizer.to_bytes()).hexdigest()
    fingerprint = fingerprint_of(_all_files(files), kind.name, len(paths), vocabulary, kind.longest, seed)
    if expected not in (None, fingerprint):
        raise ChangedDataError(
            f"{', '.join(path.name for path in files)}: changed since this training began. Bring back the old files, "
            "start again with --fresh, or accept the new ones with --continue-with-changes."
        )
    known = _open(directory, fingerprint)
    return known or _Preparation(kind, directory, Reader(kind.read, paths, valid, seed)).make(
        fingerprint, tokenizer or size
    )


def _kept(path: str | Path, directory: Path, *, alone: bool) -> str | Path:
    """The same path, but for standard input a file with what came from it: a corpus is read several times."""
    if str(path) != STANDARD_INPUT:
        return path
    make_directory_durably(REAL_FILES, directory)
    copy = directory / ("standard-input.tsv" if alone else "standard-input.txt")
    with open(copy, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return copy


def _all_files(paths: Sequence[Path]) -> Iterator[Path]:
    """The files, and for a directory everything in it, in an order that is always the same."""
    for path in paths:
        yield from sorted(entry for entry in path.rglob("*") if entry.is_file()) if path.is_dir() else [path]


class _Preparation:
    """Makes a corpus."""

    def __init__(self, kind: Kind, directory: Path, reader: Reader) -> None:
        self.kind, self.directory, self.reader = kind, directory, reader
        self.rejections = Rejections()
        self.classes: dict[str, int] = {}

    def make(self, fingerprint: str, vocabulary: Tokenizer | int | None) -> Corpus:
        kind, rejections = self.kind, self.rejections
        tokenizer, reason = self._vocabulary(vocabulary)
        if kind.labelled:
            self.classes = self._count_classes()
        train = TokenStore.build(
            self.directory / "train",
            self._encode(self.reader.train(rejections), tokenizer),
            columns=(*kind.columns, "line", *(["label"] if kind.labelled else [])),
            fingerprint=fingerprint,
        )
        if not len(train):
            raise InputError(f"{self.reader.paths[0]}: none of the {kind.name} can be used:\n{rejections.render()}")
        valid = list(self._known_labels(self.reader.valid(rejections)))
        if not valid:
            raise InputError(f"None of the {kind.name} to measure on can be used:\n{rejections.render()}")
        facts = {
            "fingerprint": fingerprint,
            "kind": kind.name,
            "tokenizer": {"size": tokenizer.size, "why": reason},
            "examples": len(train),
            "tokens": int(train.lengths(kind.columns[-1]).sum()) + len(train),
            "valid_examples": len(valid),
            "classes": self.classes,
            "rejected": rejections.to_json(),
        }
        lines = "".join(json.dumps(_to_json(example), ensure_ascii=False) + "\n" for example in valid)
        replace_file_durably(REAL_FILES, self.directory / "valid.jsonl", lines.encode())
        replace_file_durably(REAL_FILES, self.directory / "tokenizer.model", tokenizer.to_bytes())
        replace_file_durably(REAL_FILES, self.directory / "prepared.json", format_json(facts))
        return Corpus(tokenizer, train, valid, facts)

    def _vocabulary(self, given: Tokenizer | int | None) -> tuple[Tokenizer, str]:
        """The tokenizer, and why it has the size it has."""
        if isinstance(given, Tokenizer):
            return given, "as it was, because the model knows no other"
        size, reason = (given, f"{given:,} asked for") if given else choose_size(measure_texts(self._texts()))
        tokenizer = Tokenizer.train(self._texts(), size, seed=self.reader.seed)
        if tokenizer.size < size:
            reason += "; the text has no more to offer"
        return tokenizer, reason

    def _texts(self) -> Iterator[str]:
        for example in self.reader.train():
            yield from example.texts

    def _count_classes(self) -> dict[str, int]:
        counts = Counter(example.label for example in self.reader.train())
        if len(counts) < 2:
            [only] = counts or ["none"]
            raise InputError(
                f'{self.reader.paths[0]}: every text has the label "{only}"; there is nothing to tell apart. '
                "Give texts of at least two classes."
            )
        return {name: counts[name] for name in sorted(counts)}

    def _encode(self, examples: Iterator[Example], tokenizer: Tokenizer) -> Iterator[list[list[int]]]:
        numbers = {name: number for number, name in enumerate(self.classes)}
        longest = self.kind.longest
        while chunk := list(islice(examples, CHUNK)):
            columns = [tokenizer.encode(texts) for texts in zip(*(example.texts for example in chunk), strict=True)]
            for example, *texts in zip(chunk, *columns, strict=True):
                if longest is not None and max(map(len, texts)) > longest:
                    self.rejections.add(f"longer than {longest} tokens", example.where)
                    continue
                label = [[numbers[example.label]]] if self.kind.labelled else []
                yield [*texts, [int(example.where.rpartition(":")[2])], *label]

    def _known_labels(self, examples: Iterator[Example]) -> Iterator[Example]:
        """What cannot be judged is left out: a class that was never learned has no number."""
        for example in examples:
            if self.kind.labelled and example.label not in self.classes:
                self.rejections.add(f'label "{example.label}" is not among those learned', example.where)
            else:
                yield example


def _to_json(example: Example) -> dict[str, Any]:
    return {"texts": list(example.texts), "where": example.where, "label": example.label}


def _open(directory: Path, fingerprint: str) -> Corpus | None:
    train = TokenStore.open(directory / "train", fingerprint)
    try:
        where = directory / "prepared.json"
        facts = parse_json_object(read_bounded(where, _LARGEST_VALID), where)
        lines = read_bounded(directory / "valid.jsonl", _LARGEST_VALID).decode().split("\n")[:-1]
        valid = [Example(tuple(value["texts"]), value["where"], value["label"]) for value in map(json.loads, lines)]
        tokenizer = Tokenizer.load(directory / "tokenizer.model")
        complete = facts["fingerprint"] == fingerprint and facts["valid_examples"] == len(valid)
    except (UnreadableError, BundleError, OSError, ValueError, KeyError, TypeError):
        return None
    return Corpus(tokenizer, train, valid, facts) if complete and train is not None else None
