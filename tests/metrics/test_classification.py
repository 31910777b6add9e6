"""Probabilities, temperatures, and what is counted."""

import numpy as np
import pytest

from jumok.metrics.classification import (
    SHARES,
    calibration_error,
    classification_scores,
    confusion,
    f1_scores,
    fit_share,
    fit_temperature,
    negative_log_likelihood,
    probabilities,
)


def drawn(count: int, temperature: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and answers drawn from softmax(scores / temperature)."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 3, (count, 3)).astype(np.float32)
    cumulated = probabilities(scores, temperature).cumsum(1)
    return scores, (rng.random((count, 1)) > cumulated).sum(1)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_that_made_the_answers_is_found(temperature: float) -> None:
    scores, answers = drawn(20_000, temperature)
    assert fit_temperature(scores, answers) == pytest.approx(temperature, rel=0.05)


def test_each_class_has_its_weight_in_the_likelihood() -> None:
    scores = np.log(np.array([[0.5, 0.5], [0.25, 0.75], [0.8, 0.2]], np.float32))
    labels = np.array([0, 0, 1])
    plain = -(np.log(0.5) + np.log(0.25) + np.log(0.2)) / 3
    weighted = -(np.log(0.5) + np.log(0.25) + 4 * np.log(0.2)) / 6
    assert negative_log_likelihood(scores, labels, 1.0) == pytest.approx(plain)
    assert negative_log_likelihood(scores, labels, 1.0, np.array([1, 4], np.float32)) == pytest.approx(weighted)


def test_no_other_temperature_is_better() -> None:
    scores, answers = drawn(5_000, 2.0)
    best = fit_temperature(scores, answers)
    at_best = negative_log_likelihood(scores, answers, best)
    for other in (0.5 * best, 0.9 * best, 1.1 * best, 2 * best):
        assert negative_log_likelihood(scores, answers, other) > at_best


def test_a_few_right_answers_make_nobody_certain() -> None:
    scores = np.array([[2.0, 0.0]] * 10, np.float32)
    probable = probabilities(scores, fit_temperature(scores, np.zeros(10, int)))[0, 0]
    assert 0.9 < probable < 0.99


def test_calibration_error_is_the_gap_between_confidence_and_accuracy() -> None:
    sure = np.array([[0.8, 0.2]] * 10)
    assert calibration_error(sure, np.array([0] * 8 + [1] * 2)) == pytest.approx(0.0)
    assert calibration_error(sure, np.array([0] * 5 + [1] * 5)) == pytest.approx(0.3)
    scores, answers = drawn(20_000, 2.0)
    assert calibration_error(probabilities(scores, 2.0), answers) < 0.02
    assert calibration_error(probabilities(scores), answers) > 0.02


def test_confusion_and_f1_by_hand() -> None:
    table = confusion(np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 0]), 3)
    assert table.tolist() == [[1, 1, 0], [1, 2, 0], [0, 0, 0]]
    assert f1_scores(table).tolist() == pytest.approx([0.5, 2 / 3, 0.0])


def test_a_class_that_does_not_occur_does_not_count() -> None:
    scores = np.array([[5.0, 0, 0], [0, 5.0, 0]], np.float32)
    found = classification_scores(scores, np.array([0, 1]), 1.0)
    assert found["accuracy"] == found["macro_f1"] == 1.0


def test_who_knows_more_has_more_to_say() -> None:
    draw = np.random.default_rng(0)
    answers = draw.integers(0, 2, 500)
    truth = np.eye(2, dtype=np.float32)[answers]
    knowing, guessing = (truth + draw.normal(0, noise, (500, 2)).astype(np.float32) for noise in (0.5, 50.0))
    assert fit_share(knowing, guessing, answers) == max(SHARES)
    assert fit_share(guessing, knowing, answers) == 0
    another = truth + draw.normal(0, 0.5, (500, 2)).astype(np.float32)
    assert 0.5 <= fit_share(knowing, another, answers) <= 2  # alike, and not of the same mind
