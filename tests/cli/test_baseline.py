"""jumok train classifier --baseline: the comparison with TF-IDF is about the same texts."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from commands import SMALL, Jumok

# Not `importorskip`: scikit-learn takes a second to import, in every process that collects the tests.
pytestmark = pytest.mark.skipif(
    find_spec("sklearn") is None, reason='the baseline needs scikit-learn: pip install "jumok[baseline]"'
)

STEPS = ["--steps=2", *(setting for setting in SMALL if "decoder" not in setting)]
REVIEWS = "".join(f"{'good' if n % 2 else 'bad'}\t{'fine' if n % 2 else 'dull'} film number {n}\n" for n in range(60))


@pytest.mark.parametrize("texts", [("tea", "rain", "moon", "sand"), ("a", "b", "c", "d"), ("!", "?", "♥", "…")])
def test_a_few_texts_with_nothing_in_common_are_enough(jumok: Jumok, tmp_path: Path, texts: tuple[str, ...]) -> None:
    rows = zip(("x", "x", "y", "y"), texts, strict=True)
    (tmp_path / "a.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows), encoding="utf-8")
    ended = jumok("train", "classifier", tmp_path / "a.tsv", "-o", tmp_path / "run", *STEPS, "--baseline")
    assert ended.code == 0, ended.err
    assert "TF-IDF + logistic regression on the same texts: " in ended.out


def test_what_came_from_standard_input_is_compared_too(jumok: Jumok, tmp_path: Path) -> None:
    ended = jumok("train", "classifier", "-", "-o", tmp_path / "run", *STEPS, "--baseline", "--json", stdin=REVIEWS)
    assert ended.code == 0, ended.err
    assert json.loads(ended.out.splitlines()[-1]) == {"event": "baseline", "accuracy": 1.0, "macro_f1": 1.0}


def test_it_is_measured_on_what_the_training_measures_on(jumok: Jumok, tmp_path: Path) -> None:
    """Every other text of those whose class was learned; the second half of them has the wrong label."""
    labels = ["good"] * 4 + ["unknown"] + ["bad"] * 4
    valid = "".join(f"{label}\tfine film number {n + 100}\n" for n, label in enumerate(labels))
    (tmp_path / "a.tsv").write_text(REVIEWS, encoding="utf-8")
    (tmp_path / "valid.tsv").write_text(valid, encoding="utf-8")
    arguments = ["-o", tmp_path / "run", "--valid", tmp_path / "valid.tsv", "--set=validate.sentences=4", *STEPS]
    ended = jumok("train", "classifier", tmp_path / "a.tsv", *arguments, "--baseline", "--json")
    assert ended.code == 0, ended.err
    scores = json.loads(ended.out.splitlines()[-1])
    assert scores["accuracy"] == 0.5
    assert scores["macro_f1"] == pytest.approx(1 / 3)  # 2/3 for the one answer ever given, 0 for the other
