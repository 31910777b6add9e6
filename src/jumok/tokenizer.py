"""Text ↔ subword ids, with nothing lost: SentencePiece (unigram, byte fallback), trained in process.

`decode(encode(x)) == normalize(x)` for every text: spaces, tabs and control characters included. Text is brought to
Unicode NFC (composed Korean syllables, composed accents) in training and encoding alike, and changed in no other way.
"""

from __future__ import annotations

import io
import random
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece

from jumok.errors import BundleError, ConfigError, InputError

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")
FIRST_BYTE = len(SPECIAL_PIECES)  # ids 4 … 259 are the 256 bytes, for characters that have no piece of their own
FIRST_PIECE = FIRST_BYTE + 256

SAMPLED_LINES = 500_000  # more text changes the vocabulary hardly at all; this bounds memory to some hundred MB
LONGEST_LINE = (
    1_000  # characters; SentencePiece would skip lines above 4,192 bytes, so longer ones are cut for training
)
# Pieces to begin with. SentencePiece's million takes longer, and ended with 2 % more tokens on the same text.
FEWEST_CANDIDATES = 50_000
RARE = 3  # a character seen less often than this teaches an embedding of its own nothing; bytes spell it
LOWEST_COVERAGE = 0.98  # SentencePiece accepts no lower one

# Results depend on how the work is divided, so the number is fixed: the same model on a laptop and on a server.
TRAINING_THREADS = 16
SMALL_BATCH = 32  # below it, starting threads costs more than encoding

SPACE_MARK = "▁"  # U+2581: SentencePiece writes spaces so, and would read a real one back as a space
# U+2585, NUL and tab have meanings of their own inside SentencePiece's trainer; encoding handles them well.
_NOT_FOR_TRAINING = str.maketrans(dict.fromkeys("▁▅\0\t\r\n", " "))
_sampling_lock = threading.Lock()


def normalize(text: str) -> str:
    """Unicode NFC: the only change ever made to a text. Refuses halves of surrogate pairs: no UTF-8 file has them."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"Character {error.start + 1} of a text is U+{ord(text[error.start]):04X}, half of a surrogate pair and no "
            "character. Decode the text as UTF-8 before giving it to Jumok."
        ) from None
    return unicodedata.normalize("NFC", text)


class Tokenizer:
    """A trained subword vocabulary. Its bytes are the file `tokenizer.model` of a model directory."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    @classmethod
    def train(cls, texts: Iterable[str], size: int, *, seed: int = 0) -> Tokenizer:
        """Learn one vocabulary for all the texts (one line each) together; the same input gives the same bytes.

        `size` is a ceiling: a small corpus has fewer pieces to offer, and `.size` says how many there are. Of corpora
        above half a million lines a random sample of that many is used (chosen by `seed`).
        """
        words = Counter(word for line in _sample_lines(texts, seed) for word in line.split(" ") if word)
        if not words:
            raise InputError("There is no text to learn a vocabulary from: every line is empty or blank.")
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_weighted_words(words),
                input_format="tsv",
                model_writer=model,
                model_type="unigram",
                vocab_size=max(size, FIRST_PIECE),
                hard_vocab_limit=False,
                seed_sentencepiece_size=max(FEWEST_CANDIDATES, 10 * size),
                byte_fallback=True,
                character_coverage=_character_coverage(words, size),
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                split_digits=True,  # numbers are spelled digit by digit: one never seen is as easy as a known one
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                num_threads=TRAINING_THREADS,
                minloglevel=2,
            )
        except RuntimeError as error:
            needed = re.search(r"required_chars\. \d+ vs (\d+)", str(error))
            if needed is None:
                raise
            raise ConfigError(
                f"tokenizer.size = {size} is too small for this text: 4 special ids, 256 bytes and its characters need "
                f"at least {needed[1]}. Give a larger size, or none to have it chosen."
            ) from None
        return cls.from_bytes(model.getvalue())

    @classmethod
    def from_bytes(cls, data: bytes, origin: str = "tokenizer.model") -> Tokenizer:
        """Read what `to_bytes` wrote; `origin` names the file in the error if the bytes are damaged."""
        processor = sentencepiece.SentencePieceProcessor()
        try:
            usable = len(data) > 0 and processor.LoadFromSerializedProto(data) and _has_our_layout(processor)
        except (RuntimeError, ValueError, UnicodeDecodeError):
            usable = False
        if not usable:
            raise BundleError(
                f"{origin} is damaged or is not a Jumok tokenizer. Copy the model directory again, or train anew."
            )
        return cls(processor)

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

        A segmentation is drawn with probability ∝ P(segmentation)^alpha: 0.1 varies much, 1 little. The result is a
        function of the arguments alone.
        """
        prepared, stand_ins = self._prepare(texts)
        # SentencePiece keeps one random generator per thread and seeds it when the thread draws for the first time. The
        # list form works in new threads; with exactly one of them, the seed decides everything.
        with _sampling_lock:
            sentencepiece.set_random_generator_seed(seed & 0xFFFFFFFF)
            encoded = self._processor.encode(prepared, num_threads=1, enable_sampling=True, alpha=alpha, nbest_size=-1)
        return _restore_space_marks(encoded, stand_ins)

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """The text of each sequence; `<pad>`, `<s>` and `</s>` give nothing, broken UTF-8 bytes give U+FFFD."""
        return list(self._processor.decode([[int(i) for i in sequence] for sequence in ids])) if len(ids) else []

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What each id stands for, readable: `▁` at the start of a piece is a space, `<0xE2>` a byte."""
        return [str(self._processor.id_to_piece(int(i))) for i in ids]

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


@dataclass(frozen=True)
class TextStatistics:
    """What the choice of a vocabulary size looks at."""

    lines: int
    bytes: int  # in UTF-8: three Latin letters and one Korean syllable or Chinese character say about as much
    alphabet: int  # different characters seen at least RARE times


def measure_texts(texts: Iterable[str]) -> TextStatistics:
    """Read the texts once, in bounded memory."""
    lines = volume = 0
    characters: Counter[str] = Counter()
    for text in map(normalize, texts):
        lines += 1
        volume += len(text.encode())
        characters.update(text)
    return TextStatistics(lines, volume, alphabet=sum(count >= RARE for count in characters.values()))


def choose_size(statistics: TextStatistics) -> tuple[int, str]:
    """A vocabulary size for a corpus, and the reason in words.

    Every piece has to be seen often enough to be learned, so the size grows with the text, but slower than it: 4,000
    for 4 MB (30,000 short sentence pairs), ×2.8 for every ×10, between 1,000 and 32,000; and at least half of it is
    left for pieces longer than one character.
    """
    by_volume = 4_000 * (statistics.bytes / 4e6) ** 0.45
    by_alphabet = FIRST_PIECE + 2 * statistics.alphabet
    size = min(32_000, max(1_000, by_volume, by_alphabet))
    rounded = round(size / 500) * 500 if size > 1_000 else 1_000
    why = "its alphabet" if by_alphabet >= max(1_000, by_volume) else "its length"
    reason = (
        f"{rounded:,} pieces, chosen by {why}: {statistics.lines:,} lines, {statistics.bytes / 1e6:,.1f} MB of text, "
        f"{statistics.alphabet:,} characters in use"
    )
    return rounded, reason


def _sample_lines(texts: Iterable[str], seed: int) -> list[str]:
    """At most SAMPLED_LINES lines, each equally likely to be among them, in bounded memory (reservoir sampling)."""
    draw = random.Random(seed)
    sample: list[str] = []
    for seen, line in enumerate(_training_lines(texts)):
        if seen < SAMPLED_LINES:
            sample.append(line)
        elif (place := draw.randrange(seen + 1)) < SAMPLED_LINES:
            sample[place] = line
    return sample


def _training_lines(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        line = normalize(text).translate(_NOT_FOR_TRAINING)
        while len(line) > LONGEST_LINE:
            cut = line.rfind(" ", 1, LONGEST_LINE)
            cut = cut if cut > 0 else LONGEST_LINE
            yield line[:cut]
            line = line[cut:]
        if line:
            yield line


def _weighted_words(words: Counter[str]) -> Iterator[str]:
    """Each word with its count. Given whole lines, SentencePiece takes hours where many of them are the same.

    A frequent word comes as several entries that share its count, because the first candidates for pieces are found by
    how many entries they stand in; the logarithm is enough, and keeps the work small.
    """
    for word, count in words.items():
        entries = count.bit_length()
        yield f"{word}\t{count - entries + 1}"
        yield from (f"{word}\t1" for _ in range(entries - 1))


def _character_coverage(words: Counter[str], size: int) -> float:
    """The share of characters that get their own pieces: the frequent ones, as far as half of the vocabulary goes."""
    totals: Counter[str] = Counter({SPACE_MARK: words.total()})  # SentencePiece puts one before every word
    for word, count in words.items():
        for character in word:
            totals[character] += count
    counts = np.sort(np.fromiter(totals.values(), dtype=np.int64))[::-1]
    kept = max(1, min((size - FIRST_PIECE) // 2, int((counts >= RARE).sum())))
    # SentencePiece takes characters until the share is reached: half-way into the last one is safe from rounding.
    share = (counts[:kept].sum() - counts[kept - 1] / 2) / counts.sum()
    return max(LOWEST_COVERAGE, float(share))


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
