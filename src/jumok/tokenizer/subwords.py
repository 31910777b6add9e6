"""The tokenizer: text to subword ids and back."""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, Self

import sentencepiece

from jumok.errors import BundleError
from jumok.tokenizer.layout import FIRST_BYTE, FIRST_PIECE, SPACE_MARK, SPECIAL_PIECES, UNK, normalize
from jumok.tokenizer.vocabulary import TextStatistics, learn_vocabulary

SMALL_BATCH = 32  # below it, starting threads costs more than encoding
SEGMENTATIONS = 32  # the most probable ones of a word, from which sampling draws
CACHED_WORDS = 1 << 16  # whose segmentations are cached


class Tokenizer:
    """A trained subword vocabulary. Its bytes are the file `tokenizer.model` of a model directory."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        self._segmentations = lru_cache(CACHED_WORDS)(self._find_segmentations)
        self._pieces: list[str] = processor.id_to_piece(list(range(processor.get_piece_size())))

    @classmethod
    def train(cls, texts: Iterable[str], size: int | Callable[[TextStatistics], int], *, seed: int = 0) -> Self:
        """Learn one vocabulary from all texts, one line each; the same input gives the same bytes.

        `size`, or what it returns for the statistics of the texts, is an upper limit: a small corpus may give fewer
        tokens. Above half a million lines, a random sample of that many is used (chosen by `seed`).
        """
        return cls.from_bytes(learn_vocabulary(texts, size, seed))

    @classmethod
    def from_bytes(cls, data: bytes, origin: str = "tokenizer.model") -> Self:
        """Return the tokenizer that `to_bytes` wrote; `origin` names the file in the error if the bytes are damaged."""
        processor = sentencepiece.SentencePieceProcessor()
        try:
            if len(data) > 0 and processor.LoadFromSerializedProto(data) and _has_our_layout(processor):
                return cls(processor)
        except (RuntimeError, ValueError, UnicodeDecodeError):
            pass
        raise BundleError(
            f"{origin} is damaged or is not a Jumok tokenizer. Copy the model directory again, or train it again."
        )

    def to_bytes(self) -> bytes:
        """Return the tokenizer as bytes, for `from_bytes`."""
        return bytes(self._processor.serialized_model_proto())

    @property
    def size(self) -> int:
        """The number of ids; all ids are below it."""
        return int(self._processor.get_piece_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, without `<s>` and `</s>`. Large batches use all cores."""
        prepared, placeholders = self._prepare(texts)
        if len(prepared) < SMALL_BATCH:
            encoded = [self._processor.encode(text) for text in prepared]
        else:
            encoded = self._processor.encode(prepared, num_threads=-1)
        return _restore_space_marks(encoded, placeholders)

    def encode_sampled(self, texts: Sequence[str], alpha: float, seed: int) -> list[list[int]]:
        """Like `encode`, but with random segmentations (subword regularisation), which decode to the same text.

        Each word gets one of its SEGMENTATIONS most probable ones, drawn with probability ∝ P^alpha: 0.1 varies much,
        1 little. The result depends on the arguments alone. SentencePiece's own sampling draws differently in every
        process, whatever its seed. No token crosses words, so each word can be drawn separately.
        """
        prepared, placeholders = self._prepare(texts)
        draw = random.Random(seed)
        encoded = []
        for text in prepared:
            words = [self._segmentations(word, alpha) for word in text.split(" ")] if text else []
            drawn = [draw.choices(found, cum_weights=weights)[0] if weights else found[0] for found, weights in words]
            encoded.append([token for segmentation in drawn for token in segmentation])
        return _restore_space_marks(encoded, placeholders)

    def _find_segmentations(self, word: str, alpha: float) -> tuple[list[list[int]], list[float]]:
        """Return the segmentations of a word and their cumulative weights; no weights if there is only one."""
        if not word:  # between two spaces
            return [[self._processor.piece_to_id(SPACE_MARK)]], []
        found = self._processor.nbest_encode(word, nbest_size=SEGMENTATIONS, out_type=int)
        scores = [sum(map(self._processor.get_score, segmentation)) for segmentation in found]
        weights = accumulate(math.exp(alpha * (score - max(scores))) for score in scores)
        return found, list(weights) if len(found) > 1 else []

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each sequence, without `<pad>`, `<s>` and `</s>`; invalid UTF-8 bytes become U+FFFD."""
        # Each by itself: for a list SentencePiece starts threads, which takes longer than to decode hundreds.
        return [self._processor.decode([int(i) for i in sequence]) for sequence in ids]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the text form of each token: `▁` at its start is a space, `<0xE2>` a byte."""
        return [self._pieces[i] for i in ids]

    def _prepare(self, texts: Sequence[str]) -> tuple[list[str], dict[int, str]]:
        """Return normalised texts in which a placeholder replaces each real ▁, and the placeholder of each such row."""
        prepared = [normalize(text) for text in texts]
        placeholders = {}
        for row, text in enumerate(prepared):
            if SPACE_MARK in text:
                placeholders[row] = self._placeholder(text)
                prepared[row] = text.replace(SPACE_MARK, placeholders[row])
        return prepared, placeholders

    def _placeholder(self, text: str) -> str:
        """Return a private-use character that is in neither text nor vocabulary, so that it is encoded as bytes."""
        private_use = map(chr, range(0xF0000, 0x110000))
        return next(c for c in private_use if c not in text and self._processor.piece_to_id(c) == UNK)


def _restore_space_marks(encoded: list[list[int]], placeholders: dict[int, str]) -> list[list[int]]:
    """Replace the bytes of each placeholder by those of a real ▁, which every SentencePiece decoder returns as ▁."""
    for row, placeholder in placeholders.items():
        # A character for each id, because `str.replace` finds sequences.
        old, new = ("".join(chr(FIRST_BYTE + byte) for byte in c.encode()) for c in (placeholder, SPACE_MARK))
        encoded[row] = [ord(each) for each in "".join(map(chr, encoded[row])).replace(old, new)]
    return encoded


def _has_our_layout(processor: Any) -> bool:
    expected = [*SPECIAL_PIECES, *(f"<0x{byte:02X}>" for byte in range(256))]
    has_more = processor.get_piece_size() > FIRST_PIECE
    return has_more and bool(processor.id_to_piece(list(range(FIRST_PIECE))) == expected)
