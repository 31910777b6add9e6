"""A baseline for classifiers: TF-IDF with logistic regression, on the same texts."""

from pathlib import Path
from typing import Any

import numpy as np

from jumok.errors import MissingExtraError
from jumok.metrics.classification import classification_scores
from jumok.recipes.classifier import ClassifierRecipe
from jumok.tokenizer import normalize
from jumok.training.records import STORE, read_run


def require_scikit_learn() -> None:
    """Raises if it is not installed: better before a training than after it."""
    try:
        import sklearn  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError("scikit-learn", "baseline", "The baseline") from error


def baseline_scores(run: Path) -> dict[str, float]:
    """Accuracy and macro-F1 on the validation texts of the classifier trained in `run`. Features: words and pairs of
    words, and characters within words, which unspaced or inflected languages need; all else as scikit-learn has it."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_union

    record = read_run(run)
    assert record is not None, "a training leaves a record"
    recipe = ClassifierRecipe(())
    recipe.reopen(run / STORE, record["fingerprint"])
    texts, labels = _training_texts(recipe)
    words = {"ngram_range": (1, 2), "sublinear_tf": True}
    characters = {"analyzer": "char_wb", "ngram_range": (2, 4), "sublinear_tf": True}
    features: Any = make_union(TfidfVectorizer(**words, min_df=2), TfidfVectorizer(**characters, min_df=3))
    try:
        known = features.fit_transform(texts)
    except ValueError:  # too few texts: no word occurs that often, but some characters do
        features = TfidfVectorizer(**characters)
        known = features.fit_transform(texts)
    model: Any = LogisticRegression(C=4.0, max_iter=1000).fit(known, labels)
    measured = recipe.validation_examples(record["settings"]["validate"]["sentences"])
    log_probs = model.predict_log_proba(features.transform([normalize(example.inputs[0]) for example in measured]))
    scores = classification_scores(log_probs.astype(np.float32), recipe.labels(measured), temperature=1.0)
    return {name: scores[name] for name in ("accuracy", "macro_f1")}


def _training_texts(recipe: ClassifierRecipe) -> tuple[list[str], list[int]]:
    """The texts and their class numbers, decoded from the run's store: a corpus from a pipe exists nowhere else."""
    train = recipe.corpus.train
    texts = recipe.corpus.tokenizer.decode([train.example("text", place) for place in range(len(train))])
    return texts, [int(train.example("label", place)[0]) for place in range(len(train))]
