"""Doubtful outputs: measured on validation sentences, recorded in the card, marked in results."""

import math
from typing import Any

import pytest
from echo_engine import EchoEngine

from jumok.engines.options import DecodingOptions, Sampling, SearchOptions
from jumok.engines.translator.confidence import Confidence, tokens_per_character
from jumok.engines.translator.text import TextTranslator
from jumok.search.hypothesis import Hypothesis
from jumok.tokenizer import Tokenizer

CARD = {"confidence": {"score": -1.0, "tokens_per_character": 0.6}}


def output(score: float, length: int = 3, *, finished: bool = True) -> Hypothesis:
    return Hypothesis([300] * length, score, [], finished)


def test_hardly_any_sentence_like_those_of_validation_is_outside_of_the_bounds() -> None:
    scores = [-0.2 - 0.001 * n for n in range(1000)]
    texts, sources = ["cat dog"] * 1000, [[300] * 2] * 1000
    confidence = Confidence.measure(texts, sources, [output(score) for score in scores])
    marked = [
        confidence.is_low(text, source, output(score), SearchOptions())
        for text, source, score in zip(texts, sources, scores, strict=True)
    ]
    assert sum(marked) <= 5
    assert confidence.is_low("cat dog", [300] * 2, output(-1.4), SearchOptions())


def test_few_validation_sentences_give_wide_bounds() -> None:
    scores = [-0.1, -0.2, -0.3, -0.4]
    confidence = Confidence.measure(["cat"] * 4, [[300]] * 4, [output(score) for score in scores])
    assert -0.8 < confidence.score < -0.5


def test_bounds_survive_the_card() -> None:
    confidence = Confidence(-1.0, 0.6)
    assert Confidence.from_card(confidence.to_card()) == confidence == Confidence.from_card(CARD)
    for card in ({}, {"confidence": 3}, {"confidence": {"score": "x"}}):
        assert Confidence.from_card(card) is None


def test_the_length_penalty_of_a_score_is_undone() -> None:
    total, length = -6.0, 7  # with </s>
    for penalty in (0.0, 0.6, 1.0, 2.0):
        hypothesis = output(total / (length + 1) ** penalty, length)
        options = SearchOptions(length_penalty=penalty)
        assert Confidence(-0.74, 1.0).is_low("cat", [300], hypothesis, options)
        assert not Confidence(-0.76, 1.0).is_low("cat", [300], hypothesis, options)


def test_numbers_are_not_foreign() -> None:
    assert tokens_per_character("cat 1234567", [300, *range(400, 407)]) == pytest.approx(1 / 3)
    assert tokens_per_character("2026", [300] * 4) == 0.0


@pytest.fixture
def confident(echo: EchoEngine, tokenizer: Tokenizer) -> TextTranslator:
    return TextTranslator(echo, tokenizer, CARD)


@pytest.mark.parametrize("foreign", ["ελληνικά", "😀🎉😀", "tca gdo xqzj", "Größenwahn überall"])
def test_what_the_vocabulary_must_spell_is_marked(foreign: str, confident: TextTranslator) -> None:
    known, marked = confident.translate_batch(["cat dog bird .", f"cat dog bird . {foreign}"])
    assert (known.low_confidence, marked.low_confidence) == (False, True)


def test_a_low_score_and_a_cut_output_are_marked_with_their_sentence(
    echo: EchoEngine, confident: TextTranslator, tokenizer: Tokenizer
) -> None:
    low, cut = tokenizer.encode(["dog bird .", "bird cat ."])
    echo.answers[tuple(low)] = {False: Hypothesis(low, -1.5, [], True)}
    echo.answers[tuple(cut)] = dict.fromkeys((False, True), Hypothesis(cut, -0.1, [], False))
    fine, *marked = confident.translate_batch(["cat .", "cat . dog bird .", "bird cat ."])
    assert fine.low_confidence is False
    assert [[part.low_confidence for part in result.parts] for result in marked] == [[False, True], [True]]
    assert all(result.low_confidence for result in marked)


@pytest.mark.parametrize(
    ("card", "options"),
    [({}, {}), (CARD, {"sampling": Sampling()}), (CARD, {"prefix": "cat"}), (CARD, {"bias": {"cat": 1.0}})],
)
def test_nothing_is_marked_where_usual_scores_are_not_known(
    card: dict[str, Any], options: dict[str, Any], echo: EchoEngine, tokenizer: Tokenizer
) -> None:
    results = TextTranslator(echo, tokenizer, card).translate_batch(["😀🎉😀", ""], DecodingOptions.of(**options))
    assert [result.low_confidence for result in results] == [None, None]


def test_an_output_without_a_score_is_not_called_safe(
    echo: EchoEngine, confident: TextTranslator, tokenizer: Tokenizer
) -> None:
    [source] = tokenizer.encode(["dog bird ."])
    echo.answers[tuple(source)] = {False: Hypothesis(source, math.nan, [], True)}
    [result] = confident.translate_batch(["dog bird ."], scores=False)
    assert result.low_confidence is None
