"""A classifier's metrics, and probabilities calibrated by one temperature fitted on validation texts: of the texts that
are positive with probability 80 %, 80 % are positive. Axes: B texts, C classes."""

import math

import numpy as np
import numpy.typing as npt

ClassScores = npt.NDArray[np.float32]  # [B, C], before the softmax
Labels = npt.NDArray[np.int64]  # [B]

BINS = 15  # of confidence, for the calibration error
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.05, 20.0
SHARES: list[float] = [0.0, *(math.sqrt(2) ** power for power in range(-8, 9))]
_GOLDEN = (math.sqrt(5) - 1) / 2


def probabilities(scores: ClassScores, temperature: float = 1.0) -> npt.NDArray[np.float64]:
    """softmax(scores / temperature) [B, C]."""
    scaled = scores.astype(np.float64) / temperature
    powers = np.exp(scaled - scaled.max(1, keepdims=True))
    result: npt.NDArray[np.float64] = powers / powers.sum(1, keepdims=True)
    return result


def negative_log_likelihood(
    scores: ClassScores, labels: Labels, temperature: float, weights: npt.NDArray[np.float32] | None = None
) -> float:
    """The mean of -log p(label); with `weights` [C], that of each class counts so much."""
    chosen = probabilities(scores, temperature)[np.arange(len(labels)), labels]
    losses = -np.log(np.maximum(chosen, 1e-300))
    return float(np.average(losses, weights=None if weights is None else weights[labels]))


def fit_temperature(scores: ClassScores, labels: Labels, *, rounds: int = 40) -> float:
    """The temperature that makes the labels most probable, by golden-section search: there is one minimum.
    Labels are smoothed as in Platt scaling, with weight 1 / (n + 2) for n texts: otherwise a few texts that are all
    classified correctly would make the model certain of everything."""
    low, high = math.log(LOWEST_TEMPERATURE), math.log(HIGHEST_TEMPERATURE)
    for _ in range(rounds):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        better_left = _smoothed_loss(scores, labels, math.exp(left)) < _smoothed_loss(scores, labels, math.exp(right))
        low, high = (low, right) if better_left else (left, high)
    return math.exp((low + high) / 2)


def fit_share(scores: ClassScores, others: ClassScores, labels: Labels) -> float:
    """The factor in `factor * scores + others` under which the labels are most probable, at the best temperature."""

    def best_loss(share: float) -> float:
        total = share * scores + others
        return _smoothed_loss(total, labels, fit_temperature(total, labels, rounds=10))

    return min(SHARES, key=best_loss)


def _smoothed_loss(scores: ClassScores, labels: Labels, temperature: float) -> float:
    smoothing = 1 / (len(labels) + 2)
    uniform = -np.log(np.maximum(probabilities(scores, temperature), 1e-300)).mean()
    return (1 - smoothing) * negative_log_likelihood(scores, labels, temperature) + smoothing * float(uniform)


def calibration_error(probs: npt.NDArray[np.float64], labels: Labels) -> float:
    """Expected calibration error: the mean difference of confidence and accuracy over bins of confidence."""
    confidence = probs.max(1)
    right = probs.argmax(1) == labels
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(bins, confidence - right)).sum() / len(labels))


def confusion(predicted: Labels, labels: Labels, classes: int) -> npt.NDArray[np.int64]:
    """The confusion matrix [C, C]: texts of the class of the row that were predicted as that of the column."""
    cells = np.bincount(labels * classes + predicted, minlength=classes * classes)
    return cells.reshape(classes, classes)


def f1_scores(table: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """[C] the harmonic mean of precision and recall of each class; 0 if it neither occurs nor is predicted."""
    right = np.diag(table)
    both = table.sum(0) + table.sum(1)
    scores: npt.NDArray[np.float64] = 2 * right / np.maximum(both, 1)
    return scores


def classification_scores(scores: ClassScores, labels: Labels, temperature: float) -> dict[str, float]:
    """Accuracy, macro-F1 over the classes that occur, loss and calibration error with and without the temperature."""
    table = confusion(scores.argmax(1), labels, scores.shape[1])
    present = table.sum(1) > 0
    return {
        "loss": negative_log_likelihood(scores, labels, temperature),
        "accuracy": float(np.diag(table).sum() / len(labels)),
        "macro_f1": float(f1_scores(table)[present].mean()),
        "ece": calibration_error(probabilities(scores, temperature), labels),
        "ece_uncalibrated": calibration_error(probabilities(scores), labels),
    }
