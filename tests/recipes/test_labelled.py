"""What classifiers of texts and of pictures share: by which score the best of them is chosen."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jumok.data.examples import Example
from jumok.metrics.classification import ClassScores
from jumok.recipes.classifier import ClassifierRecipe
from jumok.recipes.image_classifier import ImageClassifierRecipe
from jumok.recipes.labelled import LabelledRecipe


def recipe_for(kind: type[LabelledRecipe], **counts: int) -> LabelledRecipe:
    """A recipe whose training examples have these labels."""
    recipe = kind.__new__(kind)
    corpus: Any = SimpleNamespace(classes=list(counts), facts={"classes": counts})
    recipe.corpus = corpus
    return recipe


def scored(recipe: LabelledRecipe, probabilities: list[float], labels: str) -> tuple[float, float]:
    """Accuracy and score of a model that gives "a" these probabilities, else "b"."""
    examples = [Example(("a text",), "file:1", label) for label in labels]
    shares = np.array(probabilities)
    scores: ClassScores = np.log(np.stack([shares, 1 - shares], 1)).astype(np.float32)
    metrics = recipe.metrics(scores, examples)
    return metrics["accuracy"], recipe.score(scores, examples, metrics)


@pytest.mark.parametrize("kind", [ClassifierRecipe, ImageClassifierRecipe])
def test_a_model_that_knows_more_is_better_than_one_that_was_lucky_once(kind: type[LabelledRecipe]) -> None:
    recipe = recipe_for(kind, a=10, b=10)
    lucky = scored(recipe, [0.51, 0.51, 0.51, 0.49, 0.49, 0.49], "aaabbb")
    knowing = scored(recipe, [0.95, 0.95, 0.49, 0.05, 0.05, 0.05], "aaabbb")
    assert knowing[0] < lucky[0]
    assert knowing[1] > lucky[1]
    assert max(knowing[1], lucky[1]) <= recipe.highest_score


def test_a_rare_class_counts_for_more() -> None:
    guesses = [0.9, 0.9, 0.9, 0.6], [0.8, 0.8, 0.8, 0.4]
    often_a, as_often = (
        [scored(recipe_for(ClassifierRecipe, **counts), shares, "aaab")[1] for shares in guesses]
        for counts in ({"a": 900, "b": 1}, {"a": 10, "b": 10})
    )
    assert often_a[1] - often_a[0] > as_often[1] - as_often[0]
