"""Learning a vocabulary from a corpus, and choosing its size."""

import io
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import sentencepiece

from jumok.errors import ConfigError, InputError, counted
from jumok.tokenizer.layout import BOS, EOS, FIRST_PIECE, PAD, SPACE_MARK, UNK, normalize

SAMPLED_LINES = 500_000  # more text hardly changes the vocabulary; this limits memory to some hundred MB
LONGEST_LINE = 1_000  # characters; longer lines are split, because SentencePiece skips those above 4,192 bytes
# Candidates to begin with. SentencePiece's million takes longer, and ended with 2 % more tokens on the same text.
FEWEST_CANDIDATES = 50_000
RARE = 3  # a character seen less often is encoded as bytes: too few examples for an embedding of its own
LOWEST_COVERAGE = 0.98  # SentencePiece accepts no lower one

# The result depends on the number of threads, so it is fixed: every machine learns the same vocabulary.
TRAINING_THREADS = 16

# These have special meanings in SentencePiece's trainer (not in its encoder), so they are replaced by spaces there.
_NOT_FOR_TRAINING = str.maketrans(dict.fromkeys("▁▅\0\t\r\n", " "))
_SPECIAL = re.compile("[▁▅\0\t\r\n]")
_COUNTED_AT_A_TIME = 1 << 20  # characters


@dataclass(frozen=True)
class TextStatistics:
    """The facts from which the vocabulary size is chosen."""

    lines: int
    bytes: int  # in UTF-8: three Latin letters carry about as much as one Korean syllable or Chinese character
    alphabet: int  # different characters seen at least RARE times


class TextMeter:
    """Collects the statistics of texts while they are iterated over, in bounded memory."""

    def __init__(self) -> None:
        self._lines = self._bytes = self._waiting_characters = 0
        self._waiting: list[str] = []
        self._characters = np.zeros(sys.maxunicode + 1, np.int64)

    def count(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield the same texts and count them."""
        for text in texts:
            self._lines += 1
            self._waiting.append(text)
            self._waiting_characters += len(text)
            if self._waiting_characters >= _COUNTED_AT_A_TIME:
                self._count_waiting()
            yield text

    def statistics(self) -> TextStatistics:
        """Return the statistics of the texts counted so far."""
        self._count_waiting()
        return TextStatistics(self._lines, self._bytes, alphabet=int((self._characters >= RARE).sum()))

    def _count_waiting(self) -> None:
        text = "".join(self._waiting)
        self._bytes += len(text.encode())
        codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        self._characters += np.bincount(codes, minlength=len(self._characters))
        self._waiting, self._waiting_characters = [], 0


def choose_size(statistics: TextStatistics, *, two_languages: bool = False) -> tuple[int, str]:
    """Return a vocabulary size for a corpus and the reason as text.

    Every token must occur often enough to be learned, so the size grows with the text, but more slowly: 4,000 for 4 MB,
    6,000 if two languages share them (30,000 short pairs; "Vocabulary" in benchmarks/multi30k.md), ×2.8 for every ×10,
    1,000 to 32,000. At least half is left for tokens of several characters.
    """
    by_volume = (6_000 if two_languages else 4_000) * (statistics.bytes / 4e6) ** 0.45
    by_alphabet = FIRST_PIECE + 2 * statistics.alphabet
    size = min(32_000, max(1_000, by_volume, by_alphabet))
    rounded = round(size / 500) * 500 if size > 1_000 else 1_000
    why = "its characters" if by_alphabet >= max(1_000, by_volume) else "its size"
    text = f"{counted(statistics.lines, 'line')}, {_size(statistics.bytes)}"
    characters = counted(statistics.alphabet, "different character")
    return rounded, f"at most {rounded:,} suit {why}: {text}, {characters}"


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size / 1e3:,.1f} kB"


def learn_vocabulary(texts: Iterable[str], size: int | Callable[[TextStatistics], int], seed: int) -> bytes:
    """Return the bytes of a SentencePiece model with at most `size` tokens; see `Tokenizer.train`."""
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
            split_digits=True,  # one token a digit, so that numbers never seen in training can be read and written
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
            f"at least {needed[1]}. Give a larger size, or leave it out to have it chosen."
        ) from None
    return model.getvalue()


def _sample_lines(texts: Iterable[str], seed: int) -> list[str]:
    """Return at most SAMPLED_LINES normalised lines, drawn uniformly in bounded memory (reservoir sampling)."""
    draw = random.Random(seed)
    sample: list[str] = []
    for seen, line in enumerate(_training_lines(texts)):
        if seen < SAMPLED_LINES:
            sample.append(line)
        elif (index := draw.randrange(seen + 1)) < SAMPLED_LINES:
            sample[index] = line
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
    """Yield each word with its count. Given lines, SentencePiece takes hours where many of them are the same.
    It finds candidates by the number of entries that contain them, so a frequent word is split into several entries
    that share its count; as many as the logarithm of the count suffice."""
    for word, count in words.items():
        entries = count.bit_length()
        yield f"{word}\t{count - entries + 1}"
        yield from (f"{word}\t1" for _ in range(entries - 1))


def _character_coverage(words: Counter[str], size: int) -> float:
    """Return the share of characters that get their own tokens: the frequent ones, up to half of the vocabulary."""
    totals: Counter[str] = Counter({SPACE_MARK: words.total()})  # SentencePiece puts one before every word
    for word, count in words.items():
        for character in word:
            totals[character] += count
    counts = np.sort(np.fromiter(totals.values(), dtype=np.int64))[::-1]
    kept = max(1, min((size - FIRST_PIECE) // 2, int((counts >= RARE).sum())))
    # SentencePiece takes characters until the share is reached: half-way into the last one avoids rounding errors.
    share = (counts[:kept].sum() - counts[kept - 1] / 2) / counts.sum()
    return max(LOWEST_COVERAGE, float(share))
