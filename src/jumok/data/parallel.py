"""A parallel corpus made ready for training: vocabulary learned, sentences held out, tokens stored.

    store/  tokenizer.model  train/  valid.jsonl  prepared.json

It is made once. When a file or a setting that matters has changed, or anything is missing, it is made again.
"""

from __future__ import annotations

import heapq
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from itertools import islice
from pathlib import Path
from typing import Any

from jumok.data.corpora import Pair, Rejections, read_pairs
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

LONGEST = 512  # tokens on either side of a pair that is learned from
HELD_OUT_SHARE, HELD_OUT_MOST = 0.05, 1000  # pairs for validation when none are given
CHUNK = 10_000  # pairs tokenized at a time, on all cores
_LARGEST_VALID = 1 << 30


@dataclass(frozen=True)
class ParallelCorpus:
    """Everything training and validation need of a corpus."""

    tokenizer: Tokenizer
    train: TokenStore  # columns source, target, line
    valid: list[tuple[str, str]]
    facts: dict[str, Any]  # fingerprint, tokenizer, rejected … : what the user is told and the card records


def prepare(
    directory: Path,
    paths: Sequence[str | Path],
    *,
    valid: Sequence[str | Path] | None = None,
    size: int | None = None,
    longest: int = LONGEST,
    seed: int = 0,
    expected: str | None = None,
    tokenizer: Tokenizer | None = None,
) -> ParallelCorpus:
    """The corpus in these files, from `directory` if it stands there already, else made and kept there.

    Raises ChangedDataError, with everything left as it is, if `expected` is given and is not the fingerprint. With a
    `tokenizer` none is learned, and `size` does not matter.
    """
    paths = [_kept(path, directory, alone=len(paths) == 1) for path in paths]
    files = [Path(path) for path in (*paths, *(valid or ()))]
    for path in files:
        if not path.is_file():
            raise InputError(f"{path}: is not a file. Give two aligned text files, or one TSV, CSV, JSONL or TMX file.")
    vocabulary = size if tokenizer is None else sha256(tokenizer.to_bytes()).hexdigest()
    fingerprint = fingerprint_of(files, len(paths), vocabulary, longest, seed)
    if expected not in (None, fingerprint):
        raise ChangedDataError(
            f"{', '.join(path.name for path in files)}: changed since this training began. Bring back the old files, "
            "start again with --fresh, or accept the new ones with --continue-with-changes."
        )
    known = _open(directory, fingerprint)
    return known or _make(directory, fingerprint, _Reader(paths, valid, seed), tokenizer or size, longest)


def _kept(path: str | Path, directory: Path, *, alone: bool) -> str | Path:
    """The same path, but for standard input a file with what came from it: a corpus is read several times."""
    if str(path) != STANDARD_INPUT:
        return path
    make_directory_durably(REAL_FILES, directory)
    copy = directory / ("standard-input.tsv" if alone else "standard-input.txt")
    with open(copy, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return copy


class _Reader:
    """Reads a corpus several times, always with the same pairs held out."""

    def __init__(self, paths: Sequence[str | Path], valid: Sequence[str | Path] | None, seed: int) -> None:
        self.paths, self.valid_paths, self.seed = paths, valid, seed
        self.rejections = Rejections()
        self.threshold = -1
        if valid is None:
            self.threshold = self._choose_threshold()

    def train(self, rejections: Rejections | None = None) -> Iterator[Pair]:
        for pair in read_pairs(self.paths, rejections if rejections is not None else Rejections()):
            if self._hash(pair.source) > self.threshold:
                yield pair

    def valid(self) -> Iterator[Pair]:
        if self.valid_paths is not None:
            yield from read_pairs(self.valid_paths, self.rejections)
        else:
            yield from (p for p in read_pairs(self.paths, Rejections()) if self._hash(p.source) <= self.threshold)

    def _choose_threshold(self) -> int:
        """The pairs whose sources have the smallest hashes are held out: repeated sentences stay on one side."""
        total, seen = 0, set[int]()
        smallest: list[int] = []  # a heap of the negative hashes, the largest hash on top
        for pair in read_pairs(self.paths, Rejections()):
            total += 1
            number = self._hash(pair.source)
            if number in seen or (len(smallest) == HELD_OUT_MOST and number > -smallest[0]):
                continue
            seen.add(number)
            heapq.heappush(smallest, -number)
            if len(smallest) > HELD_OUT_MOST:
                seen.discard(-heapq.heappop(smallest))
        if len(seen) < 2:
            raise InputError(
                f"{self.paths[0]}: {total:,} usable pair(s), all with the same source: nothing to learn from and to "
                "measure on. Give at least two different sentences."
            )
        wanted = min(max(1, int(total * HELD_OUT_SHARE)), len(seen) - 1, HELD_OUT_MOST)
        return sorted(seen)[wanted - 1]

    def _hash(self, source: str) -> int:
        key = self.seed.to_bytes(8, "little")
        return int.from_bytes(blake2b(source.encode(), digest_size=8, key=key).digest(), "little")


def _make(
    directory: Path, fingerprint: str, reader: _Reader, vocabulary: Tokenizer | int | None, longest: int
) -> ParallelCorpus:
    tokenizer, reason = _vocabulary(reader, vocabulary)
    rejections = reader.rejections
    train = TokenStore.build(
        directory / "train",
        _encode(reader.train(rejections), tokenizer, longest, rejections),
        columns=("source", "target", "line"),
        fingerprint=fingerprint,
    )
    if not len(train):
        raise InputError(f"{reader.paths[0]}: no pair is left to learn from:\n{rejections.render()}")
    valid = [(pair.source, pair.target) for pair in reader.valid()]
    facts = {
        "fingerprint": fingerprint,
        "tokenizer": {"size": tokenizer.size, "why": reason},
        "pairs": len(train),
        "target_tokens": int(train.lengths("target").sum()) + len(train),
        "valid_pairs": len(valid),
        "rejected": rejections.to_json(),
    }
    lines = "".join(json.dumps({"src": source, "tgt": target}, ensure_ascii=False) + "\n" for source, target in valid)
    replace_file_durably(REAL_FILES, directory / "valid.jsonl", lines.encode())
    replace_file_durably(REAL_FILES, directory / "tokenizer.model", tokenizer.to_bytes())
    replace_file_durably(REAL_FILES, directory / "prepared.json", format_json(facts))
    return ParallelCorpus(tokenizer, train, valid, facts)


def _vocabulary(reader: _Reader, given: Tokenizer | int | None) -> tuple[Tokenizer, str]:
    """The tokenizer, and why it has the size it has."""
    if isinstance(given, Tokenizer):
        return given, "as it was, because the model knows no other"
    size, reason = (given, f"{given:,} asked for") if given else choose_size(measure_texts(_texts(reader.train())))
    tokenizer = Tokenizer.train(_texts(reader.train()), size, seed=reader.seed)
    if tokenizer.size < size:
        reason += "; the text has no more to offer"
    return tokenizer, reason


def _open(directory: Path, fingerprint: str) -> ParallelCorpus | None:
    train = TokenStore.open(directory / "train", fingerprint)
    try:
        facts = parse_json_object(
            read_bounded(directory / "prepared.json", _LARGEST_VALID), directory / "prepared.json"
        )
        lines = read_bounded(directory / "valid.jsonl", _LARGEST_VALID).decode().split("\n")[:-1]
        valid = [(pair["src"], pair["tgt"]) for pair in map(json.loads, lines)]
        tokenizer = Tokenizer.load(directory / "tokenizer.model")
    except (UnreadableError, BundleError, OSError, ValueError, KeyError):
        return None
    complete = train is not None and facts["fingerprint"] == fingerprint and facts["valid_pairs"] == len(valid)
    return ParallelCorpus(tokenizer, train, valid, facts) if complete and train is not None else None


def _texts(pairs: Iterator[Pair]) -> Iterator[str]:
    for pair in pairs:
        yield pair.source
        yield pair.target


def _encode(
    pairs: Iterator[Pair], tokenizer: Tokenizer, longest: int, rejections: Rejections
) -> Iterator[tuple[list[int], list[int], list[int]]]:
    while chunk := list(islice(pairs, CHUNK)):
        sources = tokenizer.encode([pair.source for pair in chunk])
        targets = tokenizer.encode([pair.target for pair in chunk])
        for pair, source, target in zip(chunk, sources, targets, strict=True):
            if max(len(source), len(target)) > longest:
                rejections.add(f"longer than {longest} tokens", pair.where)
            else:
                yield source, target, [int(pair.where.rpartition(":")[2])]
