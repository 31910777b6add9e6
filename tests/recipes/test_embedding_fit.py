import numpy as np
import pytest
import torch

from jumok.errors import ConfigError
from jumok.recipes.embedding_fit import MOST_TOKENS, cooccurrence_embeddings
from jumok.recipes.language_model import LanguageModelRecipe
from jumok.training.settings import Settings

WORDS, WIDTH = 60, 64  # of each of two languages


def pairs(count: int = 400) -> list[np.ndarray]:
    """Sentences of five words, and their translations: word w + WORDS is that of word w."""
    numbers = np.random.default_rng(1)
    return [np.concatenate([words, words + WORDS]) for words in numbers.integers(0, WORDS, (count, 5))]


def fitted(seed: int = 1, vocabulary: int = 2 * WORDS) -> torch.Tensor:
    return cooccurrence_embeddings(pairs(), vocabulary, WIDTH, seed)


def test_a_word_begins_more_like_its_translation_than_like_any_other() -> None:
    vectors = fitted()
    likeness = (vectors[:WORDS] @ vectors[WORDS:].T).argmax(1)
    assert (likeness == torch.arange(WORDS)).float().mean() > 0.9  # random vectors: one in sixty


def test_vectors_have_length_1_and_no_two_are_alike() -> None:
    vectors = fitted()
    assert torch.allclose(vectors.norm(dim=1), torch.ones(2 * WORDS))
    likeness = (vectors @ vectors.T).fill_diagonal_(0)
    assert likeness.max() < 0.95


def test_a_token_that_never_occurs_gets_a_vector_by_chance() -> None:
    more = fitted(vocabulary=2 * WORDS + 3)
    assert torch.allclose(more.norm(dim=1), torch.ones(2 * WORDS + 3))
    assert (more[-3:] @ more[:-3].T).abs().max() < 0.9


def test_it_depends_on_the_seed_and_disturbs_no_other_random_numbers() -> None:
    torch.manual_seed(5)
    first = fitted()
    drawn = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(3))
    assert torch.equal(first, fitted())
    assert not torch.equal(first, fitted(seed=2))


def test_a_vocabulary_smaller_than_the_width_and_no_examples_are_no_problem() -> None:
    assert cooccurrence_embeddings(pairs(), 2 * WORDS, 200, 1).shape == (2 * WORDS, 200)
    alone = cooccurrence_embeddings([], 10, 4, 1)
    assert torch.allclose(alone.norm(dim=1), torch.ones(10))


def test_of_a_long_example_only_some_pairs_of_tokens_are_counted() -> None:
    """Otherwise memory and time would grow with the square of its length."""
    long = np.arange(MOST_TOKENS * 50, dtype=np.int64) % 2000
    assert cooccurrence_embeddings([long], 2000, 4, 1).isfinite().all()


def test_a_task_that_cannot_fit_them_refuses() -> None:
    with pytest.raises(ConfigError, match=r"init\.embeddings has no effect on a language model"):
        LanguageModelRecipe.check_settings(Settings.from_dict({"init": {"embeddings": "cooccurrence"}}))
    with pytest.raises(ConfigError, match=r'Unknown way to begin "cooccurence"\. Did you mean "cooccurrence"\?$'):
        Settings.from_dict({"init": {"embeddings": "cooccurence"}})


def test_rounding_changes_little() -> None:
    """Another number of threads rounds otherwise. In a corpus where many tokens are alike, singular vectors would then
    be quite different ones."""
    threads = torch.get_num_threads()
    examples = [np.array([number, number + WORDS]) for number in range(WORDS)]
    try:
        torch.set_num_threads(1)
        one = cooccurrence_embeddings(examples, 2 * WORDS, WIDTH, 1)
        torch.set_num_threads(2)
        two = cooccurrence_embeddings(examples, 2 * WORDS, WIDTH, 1)
    finally:
        torch.set_num_threads(threads)
    assert torch.allclose(one, two, atol=1e-4)
