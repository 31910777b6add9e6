"""The tree of a search is the search: its outputs, its scores, and a reason for everything that went no further."""

import math
from random import Random

import pytest
from small_translator import make_pair, train_small_translator

from jumok import lens
from jumok.engines.translator.text import TextTranslator
from jumok.engines.translator.torch import TorchTranslator
from jumok.lens.beams import FINISHED, KEPT, PRUNED, STOPPED, Search
from jumok.tokenizer import EOS, Tokenizer


@pytest.fixture(scope="module")
def trained(tokenizer: Tokenizer) -> TextTranslator:
    return TextTranslator(TorchTranslator(train_small_translator(tokenizer)), tokenizer)


def search_of(translator: TextTranslator, text: str, **options: object) -> Search:
    found = lens.trace(translator, text, **options).search
    assert found is not None
    return found


def test_totals_are_sums_along_the_path_and_scores_divide_them(trained: TextTranslator) -> None:
    search = search_of(trained, "cat dog tree .", beam=4, length_penalty=0.6)
    for node in search.nodes[1:]:
        parent = search.nodes[node.parent]
        assert parent.step == node.step - 1
        assert node.total == pytest.approx(parent.total + node.log_prob, abs=1e-5)
        assert node.score == pytest.approx(node.total / (node.step + 1) ** 0.6, abs=1e-5)


@pytest.mark.parametrize("beam", [1, 3, 5])
def test_the_best_node_is_the_translation(trained: TextTranslator, beam: int) -> None:
    rng = Random(5)
    for _ in range(3):
        text, _ = make_pair(rng)
        search = search_of(trained, text, beam=beam)
        best = search.nodes[search.best]
        assert (best.fate, best.token) == (FINISHED, EOS)
        assert trained.tokenizer.decode([search.path(search.best)[:-1]]) == [trained.translate(text, beam=beam)]
        finished = [node for node in search.nodes if node.fate == FINISHED]
        assert best.score == max(node.score for node in finished)


def test_at_most_beam_hypotheses_go_on_and_every_other_has_a_reason(trained: TextTranslator) -> None:
    search = search_of(trained, "cat dog tree river .", beam=3)
    for step in range(search.steps):
        nodes = [node for node in search.nodes if node.step == step]
        assert len([node for node in nodes if node.fate in (KEPT, STOPPED)]) <= 3
        for node in nodes:
            assert bool(node.reason) == (node.fate in (PRUNED, STOPPED))
            if node.fate == PRUNED and node.token != EOS:
                kept = [other.total for other in nodes if other.fate in (KEPT, STOPPED)]
                assert node.total <= min(kept)


def test_the_most_probable_tokens_of_a_node_are_the_model_s(trained: TextTranslator) -> None:
    trace = lens.trace(trained, "cat dog .", beam=2)
    assert trace.search is not None
    node, path = trace.search.nodes[trace.search.best], []
    while node.parent >= 0:
        node = trace.search.nodes[node.parent]
        path.append(node)
    probabilities = trace["probabilities"].values
    for row, node in zip(probabilities, reversed(path), strict=True):
        for token, text, log_prob in node.top[:3]:
            assert trained.tokenizer.pieces([token]) == [text]
            if node.step >= 0:  # an empty output is not allowed, so `</s>` cannot be first
                assert math.exp(log_prob) == pytest.approx(float(row[token]), rel=1e-3, abs=1e-6)


def test_a_forced_prefix_is_marked(trained: TextTranslator) -> None:
    search = search_of(trained, "cat dog tree .", prefix="개", beam=2)
    first = search.nodes[1]
    assert (first.text, first.reason) == ("▁개", "forced")
    assert search.path(search.best)[0] == first.token
