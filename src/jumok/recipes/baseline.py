"""What somebody would use instead of a Transformer: TF-IDF with logistic regression, on the same texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from jumok.errors import MissingExtraError
from jumok.metrics.classification import classification_scores
from jumok.recipes.classifier import ClassifierTask
from jumok.tokenizer import normalize
from jumok.training.records import STORE, read_run


def require_scikit_learn() -> None:
    """Raises if it is not installed: better before a training than after it."""
    try:
        import sklearn  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError("scikit-learn", "baseline", "The baseline") from error


def baseline_scores(run: Path) -> dict[str, float]:
    """Accuracy and macro-F1 on the very texts that the classifier trained in `run` is measured on.

    Words and pairs of words for spaced text, and characters within words beside them, which unspaced or inflected
    languages need; everything else as scikit-learn has it.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_union

    record = read_run(run)
    assert record is not None, "a training leaves a record"
    task = ClassifierTask((), None)
    task.reopen(run / STORE, record["fingerprint"])
    texts, labels = _learned_from(task)
    words = {"ngram_range": (1, 2), "sublinear_tf": True}
    characters = {"analyzer": "char_wb", "ngram_range": (2, 4), "sublinear_tf": True}
    features: Any = make_union(TfidfVectorizer(**words, min_df=2), TfidfVectorizer(**characters, min_df=3))
    try:
        known = features.fit_transform(texts)
    except ValueError:  # nothing comes that often in so few texts; some characters there always are
        features = TfidfVectorizer(**characters)
        known = features.fit_transform(texts)
    model: Any = LogisticRegression(C=4.0, max_iter=1000).fit(known, labels)
    measured = task.measured(record["settings"]["validate"]["sentences"])
    chances = model.predict_log_proba(features.transform([normalize(example.inputs[0]) for example in measured]))
    scores = classification_scores(chances.astype(np.float32), task.answers(measured), temperature=1.0)
    return {name: scores[name] for name in ("accuracy", "macro_f1")}


def _learned_from(task: ClassifierTask) -> tuple[list[str], list[int]]:
    """The texts and the numbers of their classes, as the training has kept them: what came from a pipe is gone."""
    train = task.corpus.train
    texts = task.tokenizer.decode([train.example("text", place) for place in range(len(train))])
    return texts, [int(train.example("label", place)[0]) for place in range(len(train))]
