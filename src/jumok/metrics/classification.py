"""What a classifier's scores say: probabilities that mean what they say, and how often the best one is right.

Axes: B texts, C classes. A temperature for all scores, fitted on texts that were not learned from, makes probabilities
of them: of the texts that are 80 % positive, 80 % are positive.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float32]
Answers = npt.NDArray[np.int64]

BINS = 15  # of confidence, for the calibration error
COLDEST, HOTTEST = 0.05, 20.0
SHARES: list[float] = [0.0, *(math.sqrt(2) ** power for power in range(-8, 9))]
_GOLDEN = (math.sqrt(5) - 1) / 2


def probabilities(scores: Scores, temperature: float = 1.0) -> npt.NDArray[np.float64]:
    """softmax(scores / temperature) [B, C]."""
    scaled = scores.astype(np.float64) / temperature
    powers = np.exp(scaled - scaled.max(1, keepdims=True))
    result: npt.NDArray[np.float64] = powers / powers.sum(1, keepdims=True)
    return result


def negative_log_likelihood(scores: Scores, answers: Answers, temperature: float) -> float:
    """The mean of -log p(answer)."""
    chosen = probabilities(scores, temperature)[np.arange(len(answers)), answers]
    return float(-np.log(np.maximum(chosen, 1e-300)).mean())


def fit_temperature(scores: Scores, answers: Answers, *, rounds: int = 40) -> float:
    """The temperature under which the answers are most probable, by golden-section search: there is one minimum.

    After Platt, no answer is taken for wholly certain: with n texts, every class could still have one of n + 2. Without
    that, a few texts that are all right would make the model certain of everything.
    """
    low, high = math.log(COLDEST), math.log(HOTTEST)
    for _ in range(rounds):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        better_left = _doubtful_loss(scores, answers, math.exp(left)) < _doubtful_loss(scores, answers, math.exp(right))
        low, high = (low, right) if better_left else (left, high)
    return math.exp((low + high) / 2)


def fit_share(scores: Scores, others: Scores, answers: Answers) -> float:
    """How much of `scores` to add to `others`, so that the answers are most probable; at the best temperature each."""
    losses = {share: _best_loss(share * scores + others, answers) for share in SHARES}
    return min(losses, key=lambda share: losses[share])


def _best_loss(scores: Scores, answers: Answers) -> float:
    return _doubtful_loss(scores, answers, fit_temperature(scores, answers, rounds=10))


def _doubtful_loss(scores: Scores, answers: Answers, temperature: float) -> float:
    doubt = 1 / (len(answers) + 2)
    everything = -np.log(np.maximum(probabilities(scores, temperature), 1e-300)).mean()
    return (1 - doubt) * negative_log_likelihood(scores, answers, temperature) + doubt * float(everything)


def calibration_error(probs: npt.NDArray[np.float64], answers: Answers) -> float:
    """Expected calibration error: how far confidence and accuracy lie apart, over bins of about equal confidence."""
    confidence = probs.max(1)
    right = probs.argmax(1) == answers
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    error = 0.0
    for number in range(BINS):
        inside = bins == number
        if inside.any():
            error += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    return float(error)


def confusion(predicted: Answers, answers: Answers, classes: int) -> npt.NDArray[np.int64]:
    """[C, C]: how many texts of the class of the row were taken for that of the column."""
    cells = np.bincount(answers * classes + predicted, minlength=classes * classes)
    return cells.reshape(classes, classes)


def f1_scores(table: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """[C] the harmonic mean of precision and recall of each class; 0 for one that is neither there nor predicted."""
    right = np.diag(table)
    both = table.sum(0) + table.sum(1)
    scores: npt.NDArray[np.float64] = 2 * right / np.maximum(both, 1)
    return scores


def classification_scores(scores: Scores, answers: Answers, temperature: float) -> dict[str, float]:
    """Accuracy, macro-F1 over the classes that occur, loss and calibration error with and without the temperature."""
    table = confusion(scores.argmax(1), answers, scores.shape[1])
    present = table.sum(1) > 0
    return {
        "loss": negative_log_likelihood(scores, answers, temperature),
        "accuracy": float(np.diag(table).sum() / len(answers)),
        "macro_f1": float(f1_scores(table)[present].mean()),
        "ece": calibration_error(probabilities(scores, temperature), answers),
        "ece_uncalibrated": calibration_error(probabilities(scores), answers),
    }
