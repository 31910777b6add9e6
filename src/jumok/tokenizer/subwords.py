"""The tokenizer: text to subword ids and back."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import sentencepiece

from jumok.errors import BundleError
from jumok.tokenizer.layout import FIRST_BYTE, FIRST_PIECE, SPACE_MARK, SPECIAL_PIECES, UNK, normalize
from jumok.tokenizer.vocabulary import TextStatistics, learn_vocabulary

SMALL_BATCH = 32  # below it, starting threads costs more than encoding
CUTS = 32  # ways to cut a word that sampling draws from
KNOWN_WORDS = 1 << 16  # whose ways to be cut are remembered


class Tokenizer:
    """A trained subword vocabulary. Its bytes are the file `tokenizer.model` of a model directory."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        self._ways_to_cut = lru_cache(KNOWN_WORDS)(self._cut)
        self._pieces: list[str] = processor.id_to_piece(list(range(processor.get_piece_size())))

    @classmethod
    def train(cls, texts: Iterable[str], size: int | Callable[[TextStatistics], int], *, seed: int = 0) -> Tokenizer:
        """Learn one vocabulary for all the texts (one line each) together; the same input gives the same bytes.

        `size`, or what it returns for the statistics of the texts, is a ceiling: a small corpus has fewer pieces to
        offer, and `.size` says how many there are. Of corpora above half a million lines a random sample of that many
        is used (chosen by `seed`).
        """
        return cls.from_bytes(learn_vocabulary(texts, size, seed))

    @classmethod
    def from_bytes(cls, data: bytes, origin: str = "tokenizer.model") -> Tokenizer:
        """Read what `to_bytes` wrote; `origin` names the file in the error if the bytes are damaged."""
        processor = sentencepiece.SentencePieceProcessor()
        try:
            if len(data) > 0 and processor.LoadFromSerializedProto(data) and _has_our_layout(processor):
                return cls(processor)
        except (RuntimeError, ValueError, UnicodeDecodeError):
            pass
        raise BundleError(
            f"{origin} is damaged or is not a Jumok tokenizer. Copy the model directory again, or train anew."
        )

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Read a `tokenizer.model` file."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise BundleError(f"Cannot read the tokenizer {path}: {error.strerror}.") from error
        return cls.from_bytes(data, origin=str(path))

    def to_bytes(self) -> bytes:
        """The whole tokenizer, for `from_bytes`."""
        return bytes(self._processor.serialized_model_proto())

    @property
    def size(self) -> int:
        """Number of ids: every id of `encode` is below it."""
        return int(self._processor.get_piece_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, without `<s>` and `</s>`; runs on all cores."""
        prepared, stand_ins = self._prepare(texts)
        if len(prepared) < SMALL_BATCH:
            encoded = [self._processor.encode(text) for text in prepared]
        else:
            encoded = self._processor.encode(prepared, num_threads=-1)
        return _restore_space_marks(encoded, stand_ins)

    def encode_sampled(self, texts: Sequence[str], alpha: float, seed: int) -> list[list[int]]:
        """Like `encode`, but each text is cut into pieces at random; decodes to the same text.

        A word is cut in one of its CUTS most probable ways, drawn with probability ∝ P(way)^alpha: 0.1 varies much, 1
        little. The result is a function of the arguments alone. (SentencePiece's own sampling is not: it draws
        differently in every process, whatever its seed. No piece goes beyond a word, so words can be drawn one by one.)
        """
        prepared, stand_ins = self._prepare(texts)
        draw = random.Random(seed)
        encoded = []
        for text in prepared:
            words = [self._ways_to_cut(word, alpha) for word in text.split(" ")] if text else []
            drawn = [draw.choices(ways, cum_weights=weights)[0] if weights else ways[0] for ways, weights in words]
            encoded.append([piece for way in drawn for piece in way])
        return _restore_space_marks(encoded, stand_ins)

    def _cut(self, word: str, alpha: float) -> tuple[list[list[int]], list[float]]:
        """The ways to cut a word, and the sums of their weights up to each; none if there is but one way."""
        if not word:  # between two spaces
            return [[self._processor.piece_to_id(SPACE_MARK)]], []
        ways = self._processor.nbest_encode(word, nbest_size=CUTS, out_type=int)
        scores = [sum(map(self._processor.get_score, way)) for way in ways]
        weights = accumulate(math.exp(alpha * (score - max(scores))) for score in scores)
        return ways, list(weights) if len(ways) > 1 else []

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """The text of each sequence; `<pad>`, `<s>` and `</s>` give nothing, broken UTF-8 bytes give U+FFFD."""
        return list(self._processor.decode([[int(i) for i in sequence] for sequence in ids])) if len(ids) else []

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What each id stands for, readable: `▁` at the start of a piece is a space, `<0xE2>` a byte."""
        known = self._pieces
        return [known[i] for i in ids]

    def _prepare(self, texts: Sequence[str]) -> tuple[list[str], dict[int, str]]:
        """Normalised texts; where one holds a real ▁, with a stand-in for it, listed by row."""
        prepared = [normalize(text) for text in texts]
        stand_ins = {}
        for row, text in enumerate(prepared):
            if SPACE_MARK in text:
                stand_ins[row] = self._stand_in(text)
                prepared[row] = text.replace(SPACE_MARK, stand_ins[row])
        return prepared, stand_ins

    def _stand_in(self, text: str) -> str:
        """A private-use character that is neither in the text nor in the vocabulary, so that bytes will spell it."""
        private_use = map(chr, range(0xF0000, 0x110000))
        return next(c for c in private_use if c not in text and self._processor.piece_to_id(c) == UNK)


def _byte_ids(character: str) -> list[int]:
    return [FIRST_BYTE + byte for byte in character.encode()]


def _restore_space_marks(encoded: list[list[int]], stand_ins: dict[int, str]) -> list[list[int]]:
    """Turn the bytes of each stand-in into those of a real ▁, which every SentencePiece decoder reads back as ▁."""
    for row, stand_in in stand_ins.items():
        encoded[row] = _replace_run(encoded[row], _byte_ids(stand_in), _byte_ids(SPACE_MARK))
    return encoded


def _replace_run(ids: list[int], old: list[int], new: list[int]) -> list[int]:
    result: list[int] = []
    position = 0
    while position < len(ids):
        found = ids[position : position + len(old)] == old
        result += new if found else [ids[position]]
        position += len(old) if found else 1
    return result


def _has_our_layout(processor: Any) -> bool:
    if processor.get_piece_size() <= FIRST_PIECE:
        return False
    special = tuple(processor.id_to_piece(i) for i in range(FIRST_BYTE))
    return special == SPECIAL_PIECES and all(
        processor.id_to_piece(FIRST_BYTE + byte) == f"<0x{byte:02X}>" for byte in range(256)
    )
