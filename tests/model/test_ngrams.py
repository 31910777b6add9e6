"""Scores of runs of tokens, and texts longer than a window."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from jumok.model.classifier import Classifier
from jumok.model.config import preset
from jumok.model.ngrams import NgramScores, run_places

text_of_tokens = st.lists(st.integers(1, 40), min_size=1, max_size=12)


def runs_of(tokens: list[int]) -> set[tuple[int, ...]]:
    """All runs of one to four tokens, the slow way."""
    return {tuple(tokens[i : i + n]) for n in (1, 2, 3, 4) for i in range(len(tokens) - n + 1)}


@given(text_of_tokens)
def test_every_run_has_a_place_and_counts_once(tokens: list[int]) -> None:
    found, counted = run_places(torch.tensor([tokens]), 1 << 30)
    assert int(counted.sum()) == len(runs_of(tokens))  # in a billion places, none of these few meet
    assert len(set(found[counted].tolist())) == int(counted.sum())


@given(text_of_tokens, st.integers(0, 5))
def test_padding_and_neighbours_change_nothing(tokens: list[int], padding: int) -> None:
    layer = NgramScores(1 << 10, 3)
    torch.nn.init.normal_(layer.scores, generator=torch.Generator().manual_seed(1))
    alone = layer(torch.tensor([tokens]))
    padded = torch.tensor([tokens + [0] * padding, [7] * (len(tokens) + padding)])
    torch.testing.assert_close(layer(padded)[:1], alone)


def test_order_counts_and_an_empty_text_scores_nothing() -> None:
    layer = NgramScores(1 << 12, 2)
    torch.nn.init.normal_(layer.scores)
    assert not torch.allclose(layer(torch.tensor([[5, 6, 7]])), layer(torch.tensor([[7, 6, 5]])))
    assert layer(torch.zeros(2, 4, dtype=torch.long)).abs().max() == 0


def test_what_tokens_are_worth_adds_up_when_no_run_comes_twice() -> None:
    layer = NgramScores(1 << 16, 2)
    torch.nn.init.normal_(layer.scores)
    text = torch.tensor([[5, 6, 7, 8, 9]])
    scores = layer(text)[0]
    torch.testing.assert_close(layer.worth(text, 1).sum(), scores[1] - scores[0])


def small(**changes: object) -> Classifier:
    torch.manual_seed(0)
    sizes = {"d_model": 16, "heads": 2, "d_ff": 32, "encoder_layers": 2, "dropout": 0.0}
    return Classifier(preset("tiny", vocabulary=50, task="classifier", **(sizes | changes))).eval()


def test_a_text_within_the_window_is_read_as_without_one() -> None:
    text = torch.randint(1, 50, (3, 8))
    torch.testing.assert_close(small(window=8)(text), small()(text))


def test_a_longer_text_is_read_in_parts_and_whole() -> None:
    model = small(window=4)
    text = torch.randint(1, 50, (2, 10))
    states = model.encode(text)
    assert states.shape == (2, 10, 16)
    torch.testing.assert_close(states[:, 4:8], model.encode(text[:, 4:8]))
    changed = text.clone()
    changed[:, -1] = (changed[:, -1] % 49) + 1
    assert not torch.allclose(model(text), model(changed))  # the last token counts too


def test_padding_up_to_another_window_changes_nothing() -> None:
    model = small(window=4, ngrams=64)
    text = torch.randint(1, 50, (1, 6))
    padded = torch.nn.functional.pad(text, (0, 7))
    torch.testing.assert_close(model(padded), model(text))
