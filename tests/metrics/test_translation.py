"""Scores against sacreBLEU itself, and what is refused."""

import math
import sys

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from jumok.errors import ConfigError, InputError, MissingExtraError
from jumok.metrics.translation import (
    PairScore,
    choose_tokenization,
    corpus_scores,
    exact_match,
    pair_scores,
    total_score,
)

REFERENCES = ["The cat sat on the mat.", "It is raining today, isn't it?", "We will stay at home."]
HYPOTHESES = ["The cat sat on a mat.", "It rains today, isn't it?", "We will stay at home."]
KOREAN = ["고양이가 매트 위에 앉았다.", "오늘은 비가 온다.", "우리는 집에 있을 것이다."]


def test_scores_are_sacrebleus() -> None:
    scores = corpus_scores(HYPOTHESES, REFERENCES)
    assert scores.bleu == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert scores.chrf == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert "tok:13a" in scores.bleu_signature
    assert "nrefs:1" in scores.bleu_signature
    assert sacrebleu.__version__ in scores.chrf_signature


def test_a_perfect_corpus_has_100() -> None:
    for references in (REFERENCES, KOREAN):
        scores = corpus_scores(references, references)
        assert scores.bleu == pytest.approx(100)
        assert scores.chrf == pytest.approx(100)


def test_the_tokenisation_asked_for_is_used() -> None:
    scores = corpus_scores(HYPOTHESES, REFERENCES, tokenize="none")
    assert scores.bleu == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="none").score
    assert "tok:none" in scores.bleu_signature


@pytest.mark.parametrize(
    ("references", "expected"),
    [
        (REFERENCES, "13a"),
        (KOREAN, "char"),
        (["猫坐在垫子上。", "今天下雨。"], "zh"),
        (["猫がマットに座った。", "今日は雨だ。"], "char"),
        (["Кошка сидит.", "Идёт дождь."], "13a"),
        (["1 2 3", "?!"], "13a"),
    ],
)
def test_the_script_chooses_the_tokenisation(references: list[str], expected: str) -> None:
    assert choose_tokenization(references) == expected
    assert f"tok:{expected}" in corpus_scores(references, references).bleu_signature


def test_text_that_looks_tokenised_causes_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    corpus_scores(["the cat ."] * 200, ["the cat ."] * 200)
    assert not caplog.records


@pytest.mark.parametrize("measure", [corpus_scores, exact_match])
def test_unequal_and_empty_corpora_are_refused(measure) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="2 translations, but 3 references"):
        measure(HYPOTHESES[:2], REFERENCES)
    with pytest.raises(InputError, match="nothing to evaluate"):
        measure([], [])


def test_an_unknown_tokenisation_is_refused() -> None:
    with pytest.raises(ConfigError, match='Unknown tokenisation "13b"'):
        corpus_scores(HYPOTHESES, REFERENCES, tokenize="13b")


def test_a_tokenisation_that_needs_more_says_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mecab_ko", None)
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ko_mecab", raising=False)
    with pytest.raises(ConfigError, match=r'"ko-mecab" cannot be used: .*pip install sacrebleu\[ko\]'):
        corpus_scores(HYPOTHESES, REFERENCES, tokenize="ko-mecab")


def test_without_sacrebleu_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    with pytest.raises(MissingExtraError, match=r"needs sacrebleu.*jumok\[train\]"):
        corpus_scores(HYPOTHESES, REFERENCES)


def test_exact_match_is_a_share() -> None:
    assert exact_match([" a b ", "c", "d"], ["a b", "c ", "e"]) == pytest.approx(2 / 3)


@given(st.lists(st.lists(st.floats(-20, 0), min_size=1, max_size=8), min_size=1, max_size=5))
def test_the_total_is_of_all_tokens(log_probs: list[list[float]]) -> None:
    scores = pair_scores(log_probs)
    total = total_score(scores)
    flat = [value for row in log_probs for value in row]
    assert total.tokens == len(flat)
    assert total.log_prob == pytest.approx(sum(flat))
    assert total.perplexity == pytest.approx(math.exp(-sum(flat) / len(flat)))
    assert min(s.perplexity for s in scores) <= total.perplexity * (1 + 1e-9)
    assert max(s.perplexity for s in scores) >= total.perplexity * (1 - 1e-9)


def test_perplexity_of_a_uniform_guess_is_the_number_of_choices() -> None:
    assert PairScore(3 * math.log(1 / 50), 3).perplexity == pytest.approx(50)
    assert PairScore(-1e6, 1).perplexity == math.inf


def test_no_pairs_have_no_score() -> None:
    with pytest.raises(InputError, match="no pairs"):
        total_score([])
