"""What somebody would use instead of a Transformer: TF-IDF with logistic regression, on the same texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jumok.data.corpora import Rejections
from jumok.data.held_out import Example, Reader
from jumok.data.labelled import TEXTS_WITH_LABELS
from jumok.errors import MissingExtraError
from jumok.recipes.request import PathLike


def require_scikit_learn() -> None:
    """Raises if it is not installed: better before a training than after it."""
    try:
        import sklearn  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError("scikit-learn", "baseline", "The baseline") from error


def baseline_scores(data: list[PathLike], valid: list[Path] | None, seed: int) -> dict[str, float]:
    """Accuracy and macro-F1 on the validation texts of a training with the same files and seed.

    Words and pairs of words for spaced text, and characters within words beside them, which unspaced or inflected
    languages need; everything else as scikit-learn has it.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, f1_score
    from sklearn.pipeline import make_pipeline, make_union

    reader = Reader(TEXTS_WITH_LABELS.read, data, valid, seed)
    train, held_out = list(reader.train()), list(reader.valid(Rejections()))
    features = make_union(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, min_df=3),
    )
    model: Any = make_pipeline(features, LogisticRegression(C=4.0, max_iter=1000))
    model.fit([_text(example) for example in train], [example.label for example in train])
    answers = model.predict([_text(example) for example in held_out])
    wanted = [example.label for example in held_out]
    return {
        "accuracy": float(accuracy_score(wanted, answers)),
        "macro_f1": float(f1_score(wanted, answers, average="macro")),
    }


def _text(example: Example) -> str:
    return example.texts[0]
