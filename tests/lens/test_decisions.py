"""Attributions of a classifier: they add up to the difference of two scores, and n-grams get their exact part."""

from typing import Any

import numpy as np
import pytest
import torch
from small_models import SIZES, random_model

from jumok import lens
from jumok.engines.classifier.text import TextClassifier
from jumok.engines.classifier.torch import TorchClassifier
from jumok.errors import ConfigError, InputError
from jumok.model.classifier import Classifier
from jumok.model.config.classifier import ClassifierConfig
from jumok.model.ngram_table import LONGEST_NGRAM
from jumok.tokenizer import Tokenizer

SHORT = "The red horse likes the horse."
LONG = "The red horse likes the horse. The small dog sees the cat and the cat sees the small dog."


def make_classifier(tokenizer: Tokenizer, path: Any, **changes: Any) -> TextClassifier:
    config = ClassifierConfig.from_dict(
        {"vocabulary": tokenizer.size, "encoder_layers": 2, "classes": 3, "window": 12, **SIZES, **changes}
    )
    model = random_model(Classifier, config)
    if config.ngrams:
        model.encoder_share.fill_(0.7)
        for part in model.ngrams:
            part.scores += torch.randn(part.scores.shape, generator=torch.Generator().manual_seed(2))
    return TextClassifier(TorchClassifier(model), tokenizer, {"classes": {"bad": 1, "good": 1, "so-so": 1}}, path)


@pytest.mark.parametrize("text", [SHORT, LONG])
@pytest.mark.parametrize(
    "changes",
    [
        {"pooling": "mean"},
        {"pooling": "max", "norm": "pre"},
        {"pooling": "answers"},
        {"pooling": "mean", "ngrams": 1 << 12, "ngram_unit": "token"},
    ],
    ids=["mean", "max", "answers", "ngrams"],
)
def test_attributions_add_up_to_the_difference_of_the_scores(
    tokenizer: Tokenizer, tmp_path: Any, changes: dict[str, Any], text: str
) -> None:
    classifier = make_classifier(tokenizer, tmp_path, **changes)
    found = lens.attribution(classifier, text)
    [scores] = classifier.scores([text])
    named = dict(zip(classifier.classes, scores, strict=True))
    assert found.difference == pytest.approx(float(named[found.label] - named[found.other]), abs=1e-6)
    assert found.label == classifier.classify(text).label
    missing = found.difference - found.baseline - sum(found.totals)
    assert found.error == pytest.approx(missing, abs=1e-9)
    assert abs(missing) <= 2e-3 * max(1.0, abs(found.difference))
    assert len(found.tokens) == len(found.encoder) == len(found.ngrams)
    assert sum(word.attribution for word in found.words) == pytest.approx(sum(found.totals[:-1]))


@pytest.mark.parametrize("unit", ["both", "word+token", "word+token+ending"])
def test_the_part_of_ngrams_is_exact(tokenizer: Tokenizer, tmp_path: Any, unit: str) -> None:
    classifier = make_classifier(tokenizer, tmp_path, ngrams=1 << 12, ngram_unit=unit)
    model = classifier.engine.model  # type: ignore[attr-defined]
    found = lens.attribution(classifier, LONG, label="good", other="bad")
    [ids] = classifier.tokenizer.encode([LONG])
    [scores] = model.ngram_scores(torch.tensor([[*ids, 3]])).numpy()
    assert sum(found.ngrams) == pytest.approx(float(scores[1] - scores[0]), abs=1e-5)
    opposite = lens.attribution(classifier, LONG, label="bad", other="good")
    np.testing.assert_allclose(opposite.totals, [-value for value in found.totals], atol=1e-5)


def test_leaving_a_word_out_is_measured_by_the_model(tokenizer: Tokenizer, tmp_path: Any) -> None:
    classifier = make_classifier(tokenizer, tmp_path)
    found = lens.attribution(classifier, SHORT, label="good", other="bad")
    assert [word.text for word in found.words] == SHORT.split()
    [scores] = classifier.scores(["The horse likes the horse."])
    expected = found.difference - float(scores[1] - scores[0])
    assert found.words[1].left_out == pytest.approx(expected, abs=1e-5)


def test_a_linear_model_s_attribution_is_what_leaving_out_shows(
    tokenizer: Tokenizer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the encoder, and with unigrams that all weigh alike, both are the same thing in theory."""
    classifier = make_classifier(tokenizer, tmp_path, ngrams=1 << 12, ngram_unit="token")
    model = classifier.engine.model  # type: ignore[attr-defined]
    model.encoder_share.fill_(0.0)
    monkeypatch.setitem(LONGEST_NGRAM, "token", 1)
    model.ngrams[0].scale.fill_(0.0)  # no norm
    words = [piece[1:] for piece in tokenizer.pieces(range(tokenizer.size)) if piece[0] == "▁" and len(piece) > 3]
    text = " ".join(words[:4])  # each of one token: one that comes twice counts once, and is not missed when left out
    for word in lens.attribution(classifier, text).words:
        assert word.attribution == pytest.approx(word.left_out, abs=1e-4)


def test_bad_questions_are_refused(classifier: TextClassifier, translator: Any) -> None:
    with pytest.raises(ConfigError, match="label='great' is unknown"):
        lens.attribution(classifier, SHORT, label="great")
    with pytest.raises(ConfigError, match="the same class"):
        lens.attribution(classifier, SHORT, label="good", other="good")
    with pytest.raises(ConfigError, match="decision of a classifier"):
        lens.attribution(translator, SHORT)
    with pytest.raises(InputError, match="no tokens"):
        lens.attribution(classifier, "")
