"""Learning a vocabulary from a corpus, and choosing how large it is to be."""

from __future__ import annotations

import io
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import sentencepiece

from jumok.errors import ConfigError, InputError
from jumok.tokenizer.layout import BOS, EOS, FIRST_PIECE, PAD, SPACE_MARK, UNK, normalize

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

# U+2585, NUL and tab have meanings of their own inside SentencePiece's trainer; encoding handles them well.
_NOT_FOR_TRAINING = str.maketrans(dict.fromkeys("▁▅\0\t\r\n", " "))
_SPECIAL = re.compile("[▁▅\0\t\r\n]")
_COUNTED_AT_A_TIME = 1 << 20  # characters


@dataclass(frozen=True)
class TextStatistics:
    """What the choice of a vocabulary size looks at."""

    lines: int
    bytes: int  # in UTF-8: three Latin letters and one Korean syllable or Chinese character say about as much
    alphabet: int  # different characters seen at least RARE times


class TextMeter:
    """Gathers the statistics of texts while somebody else reads them, in bounded memory."""

    def __init__(self) -> None:
        self._lines = self._bytes = self._waiting_characters = 0
        self._waiting: list[str] = []
        self._characters = np.zeros(sys.maxunicode + 1, np.int64)

    def count(self, texts: Iterable[str]) -> Iterator[str]:
        """The same texts, counted as they are taken."""
        for text in texts:
            self._lines += 1
            self._waiting.append(text)
            self._waiting_characters += len(text)
            if self._waiting_characters >= _COUNTED_AT_A_TIME:
                self._count_waiting()
            yield text

    def statistics(self) -> TextStatistics:
        """Statistics of the texts taken so far."""
        self._count_waiting()
        return TextStatistics(self._lines, self._bytes, alphabet=int((self._characters >= RARE).sum()))

    def _count_waiting(self) -> None:
        text = "".join(self._waiting)
        self._bytes += len(text.encode())
        codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        self._characters += np.bincount(codes, minlength=len(self._characters))
        self._waiting, self._waiting_characters = [], 0


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


def learn_vocabulary(texts: Iterable[str], size: int | Callable[[TextStatistics], int], seed: int) -> bytes:
    """A SentencePiece model with at most `size` pieces for these texts; `Tokenizer.train` says more."""
    meter = TextMeter()
    texts = map(normalize, texts)
    sample = _sample_lines(texts if isinstance(size, int) else meter.count(texts), seed)
    words = Counter(word for line in sample for word in line.split(" ") if word)
    if not words:
        raise InputError("There is no text to learn a vocabulary from: every line is empty or blank.")
    if not isinstance(size, int):
        size = size(meter.statistics())
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
    return model.getvalue()


def _sample_lines(texts: Iterable[str], seed: int) -> list[str]:
    """At most SAMPLED_LINES lines of normalized texts, each equally likely, in bounded memory (reservoir sampling)."""
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
        line = text.translate(_NOT_FOR_TRAINING) if _SPECIAL.search(text) else text
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
