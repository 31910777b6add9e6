"""The scores of n-grams: the minimum of logistic regression, found in one go."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from jumok.data.batch import LabelledBatch
from jumok.model.config import preset
from jumok.model.ngram_table import LONGEST_NGRAM, hash_ngrams, unpack_fingerprints
from jumok.model.ngrams import NgramScores
from jumok.recipes.ngram_fit import INVERSE_PENALTY, USUAL_NGRAMS, fit_ngram_scores, has_many_characters, spelling_of
from jumok.tokenizer import EOS, FIRST_BYTE, PAD, Tokenizer

PLACES = 1 << 12
EVEN = torch.ones(2)


def batches(count: int = 300, seed: int = 0) -> Iterator[LabelledBatch]:
    """Texts of ten tokens; `7 8` makes one of class 1, `8 7` does not, and there is noise."""
    draw = np.random.default_rng(seed)
    for _ in range(count // 50):
        text = draw.integers(1, 7, size=(50, 10))
        labels = draw.integers(0, 2, size=50)
        for row, label in zip(text, labels, strict=True):
            place = draw.integers(0, 9)
            row[place : place + 2] = (7, 8) if label else (8, 7)
        yield LabelledBatch(text=text, labels=labels, lines=np.zeros(50, np.int64))


def fitted(fingerprints: bool = True, places: int = PLACES) -> NgramScores:
    options = {"classes": 2, "ngrams": places, "ngram_fingerprints": fingerprints}
    layer = NgramScores(preset("tiny", vocabulary=10, task="classifier", **options), "token")
    fit_ngram_scores(batches(), layer, EVEN)
    return layer


def test_order_of_words_is_learned() -> None:
    layer = fitted()
    for batch in batches(seed=1):
        answers = layer(torch.from_numpy(batch.text)).argmax(1)
        assert float((answers == torch.from_numpy(batch.labels)).float().mean()) > 0.95


@pytest.mark.parametrize("usual", [USUAL_NGRAMS, 10])
@pytest.mark.parametrize("fingerprints", [True, False])
def test_it_is_the_minimum_with_a_smaller_penalty_for_longer_texts(
    fingerprints: bool, usual: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Autograd finds no slope where the search ended."""
    monkeypatch.setattr("jumok.recipes.ngram_fit.USUAL_NGRAMS", usual)
    layer = fitted(fingerprints)
    counts = torch.cat([layer.rows(torch.from_numpy(batch.text))[1].sum(1) for batch in batches()])
    inverse_penalty = INVERSE_PENALTY * max(1.0, float(counts.double().mean()) / usual)
    assert (inverse_penalty > INVERSE_PENALTY) == (usual == 10)
    loud = layer.scale.sqrt()
    weights = (layer.scores / loud.clamp(min=1e-9)[:, None]).requires_grad_()
    loss = weights.square().sum() / 2
    for batch in batches():
        found, counted = layer.rows(torch.from_numpy(batch.text))
        values = loud[found] * counted
        values = values / values.norm(dim=1, keepdim=True)
        logits = (weights[found] * values[..., None]).sum(1)
        loss = loss + inverse_penalty * torch.nn.functional.cross_entropy(
            logits, torch.from_numpy(batch.labels), reduction="sum"
        )
    [slope] = torch.autograd.grad(loss, weights)
    assert float(slope.norm()) < 0.01 * float(loss.detach())


def test_a_row_belongs_to_the_ngram_that_is_in_most_texts() -> None:
    layer = fitted(places=16)
    seen: Counter[tuple[int, int]] = Counter()
    for batch in batches():
        for text in batch.text:
            hashes, fingerprints, complete = hash_ngrams(text[None], LONGEST_NGRAM["token"], 16)
            seen.update(set(zip(hashes[complete].tolist(), fingerprints[complete].tolist(), strict=True)))
    most = {row: max(count for (other, _), count in seen.items() if other == row) for row in range(16)}
    found = unpack_fingerprints(layer.get_buffer("fingerprints").numpy(), np.arange(16)).tolist()
    assert [seen[row, mark] for row, mark in enumerate(found)] == [most[row] for row in range(16)]
    assert len(seen) > 16  # several meet


def test_tokens_are_spelled_as_their_text_is() -> None:
    """However a text is cut, its characters are the same; bytes and the end of a text are characters of their own."""
    tokenizer = Tokenizer.train(["정말 재미있는 영화", "재미없는 영화였다", "영화가 정말 좋았다"] * 20, 300)
    table = spelling_of(tokenizer)
    text = "정말 좋은 영화 뷁"
    cuts = [*tokenizer.encode([text]), *(tokenizer.encode_sampled([text], 0.1, seed)[0] for seed in range(20))]
    spellings = {tuple(int(c) for token in cut for c in table[token] if c) for cut in cuts}
    assert len({tuple(cut) for cut in cuts}) > 1
    assert len(spellings) == 1
    assert bytes(c - 0x110000 - FIRST_BYTE for c in max(spellings) if c >= 0x110000).decode() == "은뷁"
    assert int(table[PAD].count_nonzero()) == 0
    assert int(table[EOS].count_nonzero()) == 1


def test_spaces_are_left_out_for_ngrams_across_them() -> None:
    tokenizer = Tokenizer.train(["정말 재미있는 영화", "재미없는 영화였다", "영화가 정말 좋았다"] * 20, 300)
    table = spelling_of(tokenizer, "spaceless")
    [apart, together] = (
        [int(c) for token in ids for c in table[token] if c] for ids in tokenizer.encode(["정말 영화", "정말영화"])
    )
    assert apart == together == [ord(character) for character in "정말영화"]


def test_words_are_spelled_in_small_letters_and_apart_from_punctuation() -> None:
    tokenizer = Tokenizer.train(["Good film, good cast.", "It is not that good!"] * 20, 300)
    table = spelling_of(tokenizer, "word")
    [ids] = tokenizer.encode(["Good, not é"])
    letters = [int(c) for token in ids for c in table[token] if c]
    assert letters[: len("▁good,▁not▁")] == [ord(c) if c != "," else -ord(c) for c in "▁good,▁not▁"]
    assert all(made_up < -0x110000 for made_up in letters[len("▁good,▁not▁") :])  # the bytes of an unknown letter


def test_scripts_with_many_characters_are_recognised() -> None:
    syllables = [chr(0xAC00 + 7 * number) for number in range(900)]
    korean = ["".join(syllables[start : start + 30]) for start in range(0, 900, 30)] * 4
    assert has_many_characters(Tokenizer.train(korean, 2500))
    english = [f"{chr(97 + a)}{chr(97 + b)} and {chr(97 + b)}" for a in range(26) for b in range(26)] * 4
    assert not has_many_characters(Tokenizer.train(english, 2500))
