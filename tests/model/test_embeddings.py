"""One matrix in and out, scaled on the way in."""

import math

import pytest
import torch

from jumok.errors import ShapeError
from jumok.model.embeddings import Embedder, TokenEmbedding
from jumok.model.positions import sinusoids


def test_rows_enter_times_the_root_of_the_width_and_leave_as_they_are() -> None:
    embedding = TokenEmbedding(7, 4)
    ids = torch.tensor([[0, 6, 3], [3, 3, 1]])
    torch.testing.assert_close(embedding(ids), embedding.weight[ids] * 2)
    states = torch.randn(2, 3, 4)
    torch.testing.assert_close(embedding.logits(states), states @ embedding.weight.T)
    assert [name for name, _ in embedding.named_parameters()] == ["weight"]


def test_both_ends_teach_the_one_matrix() -> None:
    embedding = TokenEmbedding(7, 4)
    embedding(torch.tensor([[2]])).sum().backward()
    assert embedding.weight.grad is not None
    assert embedding.weight.grad.abs().sum(1).nonzero().flatten().tolist() == [2]
    embedding.logits(torch.ones(1, 4)).sum().backward()
    assert bool((embedding.weight.grad != 0).all())


def test_vectors_start_with_length_about_one() -> None:
    lengths = TokenEmbedding(500, 64).weight.detach().norm(dim=1)
    assert float(lengths.mean()) == pytest.approx(1, abs=0.05)


def test_the_embedder_adds_the_position() -> None:
    embedder = Embedder(9, 6, positions="sinusoidal", max_length=10, dropout=0.5)
    ids = torch.tensor([[1, 2, 3]])
    expected = embedder.tokens.weight[ids] * math.sqrt(6) + sinusoids(3, 6, start=4)
    torch.testing.assert_close(embedder.eval()(ids, 4), expected)
    assert bool((embedder.train()(ids, 4) == 0).any())  # dropout comes after the sum


@pytest.mark.parametrize("wrong", [-1, 7, 10**12, -(2**63)])
def test_ids_outside_the_vocabulary(wrong: int) -> None:
    with pytest.raises(ShapeError, match=rf"id {wrong} .*vocabulary of 7.*0 to 6"):
        TokenEmbedding(7, 4)(torch.tensor([[1, wrong]]))
