"""Fits a classifier's n-gram scores: log-count ratios of n-grams (Wang and Manning, 2012), weighted by logistic
regression: convex, solved in seconds with L-BFGS. Axes: N texts, P hashed n-grams, C classes."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jumok.data.batch import LabelledBatch
from jumok.model.ngram_table import FINGERPRINT_BITS, OF_WORDS, SPACE, IntArray, pack_fingerprints
from jumok.model.ngrams import LONGEST_TOKEN, NgramScores
from jumok.tokenizer import FIRST_PIECE, PAD, Tokenizer, lower_case
from jumok.training.optimizer import LBFGS

# scikit-learn's C, of the loss against the squared weights, for texts of up to so many n-grams. The values of a text
# have the length 1 together, so those of longer texts are smaller, and need larger weights.
INVERSE_PENALTY, USUAL_NGRAMS = 8.0, 128
ITERATIONS = 60
HISTORY = 6  # updates that L-BFGS remembers
# N-grams of all texts together, and texts times classes: texts beyond are not fitted, to bound the memory.
MOST_NGRAMS, MOST_SCORES = 40_000_000, 50_000_000
MANY_CHARACTERS = 800  # single-character tokens: more than any alphabet has
_BEYOND_UNICODE = 0x110000


@dataclass(frozen=True)
class _TextNgrams:
    """The n-grams of every text."""

    hashes: Tensor  # [R] int32, text by text
    counts: Tensor  # [N] the number of n-grams of each text
    labels: Tensor  # [N]

    @property
    def texts(self) -> Tensor:
        """[R] the text of each n-gram."""
        return torch.repeat_interleave(torch.arange(len(self.counts), dtype=torch.int32), self.counts)


def fit_ngram_scores(batches: Iterable[LabelledBatch], ngrams: NgramScores, class_weights: Tensor) -> None:
    """Fit the scores and the scale of the n-grams, in place."""
    found = _collect(batches, ngrams, MOST_SCORES // len(class_weights))
    ratios = _log_count_ratios(found, *ngrams.scores.shape)
    scale = ratios.norm(dim=1)
    weights = _logistic_regression(found, scale, class_weights)
    ngrams.scores.copy_(weights * scale[:, None])
    ngrams.scale.copy_(scale.square())


def spelling_of(tokenizer: Tokenizer, unit: str = "character") -> Tensor:
    """[V, LONGEST_TOKEN] the code points of every token, then zeros; a special token is one made-up code point.
    Without spaces for the unit "spaceless"; for words in small letters, those that stand alone negative."""
    table = torch.zeros(tokenizer.size, LONGEST_TOKEN)
    for token, piece in enumerate(tokenizer.pieces(range(tokenizer.size))):
        characters = [ord(character) for character in piece] if token >= FIRST_PIECE else [_BEYOND_UNICODE + token]
        if unit in OF_WORDS:
            characters = _for_words(piece) if token >= FIRST_PIECE else [-characters[0]]
        elif unit == "spaceless":
            characters = [character for character in characters if character != SPACE]
        table[token, : len(characters)] = torch.tensor(characters)
    table[PAD] = 0
    return table


def _for_words(piece: str) -> list[int]:
    """The code points of a token as `number_words` takes them: punctuation is not part of a word."""
    in_words = [character.isalnum() or ord(character) == SPACE for character in piece]
    return [ord(c) if joined else -ord(c) for c, joined in zip(lower_case(piece), in_words, strict=True)]


def has_many_characters(tokenizer: Tokenizer) -> bool:
    """Whether the script has syllables or words as characters (Korean, Chinese): then n-grams of characters help."""
    return sum(len(piece) == 1 for piece in tokenizer.pieces(range(FIRST_PIECE, tokenizer.size))) >= MANY_CHARACTERS


def _collect(batches: Iterable[LabelledBatch], ngrams: NgramScores, most_texts: int) -> _TextNgrams:
    """The n-grams of the texts. With fingerprints, each row of the table first gets that of its most frequent n-gram,
    and the others are left out."""
    keys: list[npt.NDArray[np.uint32]] = []
    counts: list[IntArray] = []
    labels: list[IntArray] = []
    table = ngrams.table()
    total = texts = 0
    for batch in batches:
        of_text, counted = table.rows(batch.text) if table.fingerprints is None else table.keys(batch.text)
        keys.append(of_text[counted].astype(np.uint32))
        counts.append(counted.sum(1))
        labels.append(batch.labels)
        total, texts = total + len(keys[-1]), texts + len(batch.labels)
        if total >= MOST_NGRAMS or texts >= most_texts:
            break
    found: npt.NDArray[np.uint32] = np.concatenate(keys)
    count = np.concatenate(counts)
    if ngrams.fingerprints is not None:
        fingerprints = _most_frequent(found, len(ngrams.scores))
        ngrams.fingerprints.copy_(torch.from_numpy(pack_fingerprints(fingerprints)))
        known = fingerprints[found >> FINGERPRINT_BITS] == found & ((1 << FINGERPRINT_BITS) - 1)
        count = np.bincount(np.repeat(np.arange(len(count)), count)[known], minlength=len(count))
        found = found[known] >> np.uint32(FINGERPRINT_BITS)
    return _TextNgrams(*map(torch.from_numpy, (found.astype(np.int32), count, np.concatenate(labels))))


def _most_frequent(keys: npt.NDArray[np.uint32], rows: int) -> IntArray:
    """[P] the fingerprint of the n-gram of each row that is in most texts. `keys` are those of `NgramTable.keys`, the
    n-grams of all texts."""
    different, frequency = np.unique(keys, return_counts=True)
    by_frequency = different[np.lexsort((different, frequency))]
    result = np.zeros(rows, np.int64)
    # Of several for one row, the last one stays.
    result[by_frequency >> FINGERPRINT_BITS] = by_frequency & ((1 << FINGERPRINT_BITS) - 1)
    return result


def _log_count_ratios(found: _TextNgrams, places: int, classes: int) -> Tensor:
    """[P, C] log of how much more frequent an n-gram is in a class than in the mean of all classes."""
    cells = found.hashes.long() * classes + torch.repeat_interleave(found.labels, found.counts)
    counts = np.bincount(cells.numpy(), minlength=places * classes).reshape(places, classes)
    logs = np.log((counts + 1) / (counts + 1).sum(0))
    ratios = logs - logs.mean(1, keepdims=True)
    return torch.from_numpy(ratios * (counts.sum(1, keepdims=True) > 0)).float()  # 0 for n-grams that were never seen


def _logistic_regression(found: _TextNgrams, scale: Tensor, class_weights: Tensor) -> Tensor:
    """[P, C] the weights of a multinomial logistic regression."""
    values = scale[found.hashes]
    norms = torch.zeros(len(found.counts)).index_add_(0, found.texts, values.square()).sqrt()
    values /= norms.clamp(min=1e-6)[found.texts]
    order = found.hashes.argsort(stable=True)
    text_starts = _starts(found.counts)
    hash_starts = _starts(torch.bincount(found.hashes, minlength=len(scale)))
    text_of_hash, value_of_hash = found.texts[order], values[order]
    inverse_penalty = INVERSE_PENALTY * max(1.0, found.counts.double().mean().item() / USUAL_NGRAMS)
    loss_weights = inverse_penalty * class_weights[found.labels]
    weights = nn.Parameter(torch.zeros(len(scale), len(class_weights)))
    search = LBFGS([weights], max_iter=ITERATIONS, history_size=HISTORY, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        logits = _sums(weights, found.hashes, text_starts, values)
        losses = nn.functional.cross_entropy(logits, found.labels, reduction="none")
        errors = logits.softmax(1)
        errors[torch.arange(len(errors)), found.labels] -= 1
        weights.grad = _sums(errors * loss_weights[:, None], text_of_hash, hash_starts, value_of_hash) + weights
        return (losses * loss_weights).sum() + weights.square().sum() / 2

    with torch.no_grad():
        search.step(loss)  # type: ignore[no-untyped-call]
    return weights.detach()


def _starts(counts: Tensor) -> Tensor:
    return torch.cat((torch.zeros(1, dtype=torch.int32), counts.cumsum(0)[:-1].int()))


def _sums(table: Tensor, rows: Tensor, starts: Tensor, values: Tensor) -> Tensor:
    """For each group of `rows` the sum of these rows of the table, each times its value."""
    result: Tensor = nn.functional.embedding_bag(rows, table, starts, mode="sum", per_sample_weights=values)
    return result
