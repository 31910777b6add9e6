"""Scores of n-grams, and texts longer than a window."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumok.model.classifier import Classifier
from jumok.model.config import preset
from jumok.model.ngram_table import (
    ENDING_TOKENS,
    LONGEST_NGRAM,
    SPACE,
    NgramTable,
    hash_ngrams,
    join_words,
    last_tokens,
    number_words,
    pack_fingerprints,
    spell,
    unpack_fingerprints,
)
from jumok.model.ngrams import LONGEST_TOKEN, NgramScores

text_of_tokens = st.lists(st.integers(1, 40), min_size=1, max_size=12)


def ngram_scores(places: int, classes: int, unit: str = "token", **options: Any) -> NgramScores:
    sizes: dict[str, Any] = {"ngrams": places, "classes": classes, **options}
    return NgramScores(preset("tiny", vocabulary=41, task="classifier", **sizes), unit)


def ngrams_of(tokens: list[int]) -> set[tuple[int, ...]]:
    """All n-grams of one to four tokens, the slow way."""
    return {tuple(tokens[i : i + n]) for n in (1, 2, 3, 4) for i in range(len(tokens) - n + 1)}


@given(text_of_tokens.filter(lambda tokens: len(tokens) > 1))  # one alone would be `</s>`
def test_every_ngram_has_a_row_and_counts_once(tokens: list[int]) -> None:
    nothing = np.zeros((1, 1), np.float32)
    table = NgramTable(np.broadcast_to(nothing, (1 << 30, 1)), np.broadcast_to(nothing[0], 1 << 30), longest=4)
    found, counted = table.rows(np.array([tokens]))
    assert int(counted.sum()) == len(ngrams_of(tokens))  # in a billion rows, none of these few meet
    assert len(set(found[counted].tolist())) == int(counted.sum())


def test_the_row_of_an_ngram_is_part_of_the_format() -> None:
    """The scores of saved models stand in these rows: another hash would read them from others."""
    rows, fingerprints, complete = hash_ngrams(np.array([[5, 6, 7]]), 3, 1 << 20)
    assert rows[:, 0].tolist() == [[927507, 903294, 879080], [869176, 633267, 591066], [452953, 626744, 227455]]
    assert fingerprints[:, 0].tolist() == [[51, 35, 20], [40, 41, 37], [40, 58, 27]]
    assert complete[:, 0].tolist() == [[True] * 3, [True, True, False], [True, False, False]]


def test_the_lengths_of_ngrams_and_of_endings_are_part_of_the_format() -> None:
    assert LONGEST_NGRAM == {"token": 4, "character": 6, "spaceless": 6, "word": 3, "ending": 3}
    assert ENDING_TOKENS == 64


@pytest.mark.parametrize("places", [1, 2, 4])
def test_in_a_small_table_every_row_is_in_range_and_counts_once(places: int) -> None:
    scores = np.arange(places, dtype=np.float32)[:, None]
    table = NgramTable(scores, np.ones(places, np.float32), longest=4)
    text = np.array([[5, 6, 7, 8, 9, 0], [11, 12, 0, 0, 0, 0]])
    found, counted = table.rows(text)
    assert ((found >= 0) & (found < places)).all()
    for row, tokens in enumerate(([5, 6, 7, 8, 9], [11, 12])):
        hashes, _, complete = hash_ngrams(np.array([tokens]), 4, places)
        assert found[row][counted[row]].tolist() == sorted(set(hashes[complete].tolist()))


@given(st.lists(st.integers(0, 63), min_size=1, max_size=9))
def test_fingerprints_are_packed_without_loss(fingerprints: list[int]) -> None:
    packed = pack_fingerprints(np.array(fingerprints))
    assert packed.dtype == np.float32
    assert unpack_fingerprints(packed, np.arange(len(fingerprints))).tolist() == fingerprints


def test_of_ngrams_that_meet_in_a_row_only_the_one_it_belongs_to_counts() -> None:
    """All n-grams meet in a table of one row."""
    _, [[[owner, other, another]]], _ = hash_ngrams(np.array([[5, 6, 7]]), 1, 1)
    assert owner not in (other, another)
    scores, scale = np.ones((1, 1), np.float32), np.ones(1, np.float32)
    table = NgramTable(scores, scale, longest=1, fingerprints=pack_fingerprints(np.array([owner])))
    assert table(np.array([[5, 6], [6, 7], [7, 5]])).tolist() == [[1.0], [0.0], [1.0]]


@pytest.mark.parametrize("size", [0.01, 1.0])
def test_scores_are_divided_by_the_norm_of_the_scales(size: float) -> None:
    layer = ngram_scores(1 << 10, 3)
    torch.nn.init.normal_(layer.scores)
    torch.nn.init.uniform_(layer.scale, 0.5 * size, size)
    text = torch.tensor([[5, 6, 7, 8, 9], [11, 12, 13, 0, 0]])
    for row, (found, counted) in enumerate(zip(*layer.rows(text), strict=True)):
        expected = layer.scores[found[counted]].sum(0) / layer.scale[found[counted]].sum().sqrt()
        torch.testing.assert_close(layer(text)[row], expected)


@given(text_of_tokens, st.integers(0, 5))
def test_padding_and_neighbours_change_nothing(tokens: list[int], padding: int) -> None:
    layer = ngram_scores(1 << 10, 3)
    torch.nn.init.normal_(layer.scores, generator=torch.Generator().manual_seed(1))
    alone = layer(torch.tensor([tokens]))
    padded = torch.tensor([tokens + [0] * padding, [7] * (len(tokens) + padding)])
    torch.testing.assert_close(layer(padded)[:1], alone)


def test_order_counts_and_an_empty_text_scores_nothing() -> None:
    layer = ngram_scores(1 << 12, 2)
    torch.nn.init.normal_(layer.scores)
    assert not torch.allclose(layer(torch.tensor([[5, 6, 7]])), layer(torch.tensor([[7, 6, 5]])))
    assert layer(torch.zeros(2, 4, dtype=torch.long)).abs().max() == 0
    assert layer(torch.tensor([[3, 0, 0]])).abs().max() == 0  # every text has an end, and this one nothing else


@pytest.mark.parametrize("tokens", [[5, 6, 7, 8, 9], [5, 6, 5, 6, 5, 6, 7], [4, 4, 4, 4, 4, 4]])
def test_attributions_add_up_although_an_ngram_that_comes_twice_counts_once(tokens: list[int]) -> None:
    for places, classes in ((1 << 16, 2), (1 << 16, 3), (2, 2)):  # in two rows nearly all n-grams meet others
        layer = ngram_scores(places, classes)
        torch.nn.init.normal_(layer.scores)
        text = torch.tensor([tokens])
        scores = layer(text)[0]
        others = (scores.sum() - scores[1]) / (classes - 1)
        torch.testing.assert_close(layer.attribution(text, 1).sum(), scores[1] - others)


def test_ngrams_that_a_row_does_not_belong_to_have_no_part_in_the_attribution() -> None:
    layer, text = ngram_scores(1 << 16, 2, ngram_fingerprints=True), torch.tensor([[5, 6, 7, 8, 9]])
    torch.nn.init.normal_(layer.scores)
    assert int(layer.rows(text)[1].sum()) == 0  # of these, none has the fingerprint 0
    hashes, fingerprints, complete = hash_ngrams(text.numpy(), 4, 1 << 16)
    belongs = np.zeros(1 << 16, np.int64)
    belongs[hashes[1:][complete[1:]]] = fingerprints[1:][complete[1:]]  # not to single tokens
    layer.get_buffer("fingerprints").copy_(torch.from_numpy(pack_fingerprints(belongs)))
    assert int(layer.rows(text)[1].sum()) == 4 + 3 + 2
    scores = layer(text)[0]
    torch.testing.assert_close(layer.attribution(text, 1).sum(), scores[1] - scores[0])


SPELLING = torch.zeros(41, LONGEST_TOKEN)  # token 7 is written 70 71, token 3 is written 30
for token in range(1, 41):
    for place in range(1 + token % 3):
        SPELLING[token, place] = 10 * token + place


@given(st.lists(text_of_tokens, min_size=1, max_size=4))
def test_texts_are_spelled_one_character_after_another(texts: list[list[int]]) -> None:
    longest = max(map(len, texts))
    padded = np.array([tokens + [0] * (longest - len(tokens)) for tokens in texts])
    slowly = [[int(c) for token in tokens for c in SPELLING[token] if c] for tokens in texts]
    found = spell(padded, SPELLING.numpy())
    assert [[int(c) for c in row if c] for row in found] == slowly
    assert found.shape[1] == max(map(len, slowly))


def spelling_layer() -> NgramScores:
    layer = ngram_scores(1 << 16, 2, unit="character")
    assert layer.spelling is not None
    layer.spelling.copy_(SPELLING)
    torch.nn.init.normal_(layer.scores, generator=torch.Generator().manual_seed(1))
    return layer


def test_runs_of_characters_do_not_ask_how_a_text_was_cut() -> None:
    layer = spelling_layer()
    layer.get_buffer("spelling")[40, :2] = torch.tensor([70.0, 71.0])  # now another token is written as token 7 is
    text, other = torch.tensor([[5, 7, 9]]), torch.tensor([[5, 40, 9]])
    torch.testing.assert_close(layer(text), layer(other))
    assert not torch.allclose(layer(text), layer(torch.tensor([[5, 6, 9]])))


def test_tokens_get_the_attribution_of_their_characters() -> None:
    layer = spelling_layer()
    text = torch.tensor([[5, 6, 7, 8, 9]])
    scores = layer(text)[0]
    attribution = layer.attribution(text, 1)
    assert attribution.shape == (5,)
    torch.testing.assert_close(attribution.sum(), scores[1] - scores[0])


def test_a_token_without_characters_has_no_part_in_the_attribution() -> None:
    layer = spelling_layer()
    layer.get_buffer("spelling")[3] = 0
    assert (layer.attribution(torch.tensor([[5, 6, 3]]), 1) == 0).tolist() == [False, False, True]


def characters_of(*texts: str) -> Any:
    """The code points of texts as a spelling for words has them, padded."""
    rows = [[SPACE if c == " " else ord(c) if c.isalnum() else -ord(c) for c in text] for text in texts]
    return np.array([row + [0] * (max(map(len, rows)) - len(row)) for row in rows], np.int64)


def test_words_end_at_spaces_and_punctuation_stands_alone() -> None:
    numbers = number_words(characters_of("it's so-so", " no."))
    assert numbers.tolist() == [[1, 1, 2, 3, 0, 4, 4, 5, 6, 6], [0, 1, 1, 2, 0, 0, 0, 0, 0, 0]]


@given(st.lists(st.text("ab .", max_size=9), min_size=1, max_size=5))
def test_words_have_the_same_hash_wherever_they_stand_and_others_another(texts: list[str]) -> None:
    characters = characters_of(*texts)
    found = join_words(characters, number_words(characters))
    words = [text.replace(".", " . ").split() for text in texts]
    assert [np.count_nonzero(row) for row in found] == list(map(len, words))
    pairs = [zip(own, row[: len(own)].tolist(), strict=True) for row, own in zip(found, words, strict=True)]
    seen = {pair for of_text in pairs for pair in of_text}
    assert len(seen) == len({word for word, _ in seen}) == len({value for _, value in seen})


def test_the_hash_of_a_word_is_part_of_the_format() -> None:
    characters = characters_of("not good.")
    assert join_words(characters, number_words(characters)).tolist() == [
        [-1855424247209790766, 7167542945617878275, -2030669038300653805]
    ]


def test_tokens_get_the_attribution_of_their_words() -> None:
    layer = ngram_scores(1 << 16, 2, unit="word")
    layer.get_buffer("spelling").copy_(SPELLING)
    layer.get_buffer("spelling")[7, 0] = SPACE  # a space, then the first letter of the next word
    torch.nn.init.normal_(layer.scores, generator=torch.Generator().manual_seed(1))
    text = torch.tensor([[5, 6, 7, 8, 9]])
    scores, attribution = layer(text)[0], layer.attribution(text, 1)
    torch.testing.assert_close(attribution.sum(), scores[1] - scores[0])
    assert float(attribution[0]) == pytest.approx(3 * float(attribution[1]))  # 3 letters and 1 letter of the same word


@given(text_of_tokens, st.integers(1, 15), st.integers(0, 3))
def test_the_last_tokens_of_a_text_are_those_before_its_padding(tokens: list[int], count: int, padding: int) -> None:
    text = np.array([[*tokens, *[0] * padding], [1] * (len(tokens) + padding)])
    found = last_tokens(text, count)
    assert found.shape == (2, min(count, text.shape[1]))
    assert [number for number in found[0] if number] == tokens[-count:]
    assert found[1].all()


def test_only_the_words_at_the_end_of_a_text_are_scored_by_its_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.model.ngram_table.ENDING_TOKENS", 3)
    ending, word = (ngram_scores(1 << 16, 2, unit=unit) for unit in ("ending", "word"))
    for layer in (ending, word):
        layer.get_buffer("spelling").copy_(SPELLING)
        torch.nn.init.normal_(layer.scores, generator=torch.Generator().manual_seed(1))
    text = torch.tensor([[9, 8, 5, 6, 7, 0, 0], [6, 9, 5, 6, 7, 0, 0]])
    scores = ending(text)
    torch.testing.assert_close(scores[0], scores[1])
    torch.testing.assert_close(scores[:1], word(text[:1, 2:]))
    short = torch.tensor([[5, 6, 0, 0]])
    torch.testing.assert_close(ending(short), word(short))
    attribution = ending.attribution(text[:1], 1)
    torch.testing.assert_close(attribution, torch.cat((torch.zeros(2), word.attribution(text[:1, 2:], 1))))
    assert attribution[2:5].all()


@pytest.mark.parametrize("unit", ["character", "word", "ending"])
def test_the_end_alone_has_no_attribution(unit: str) -> None:
    layer = ngram_scores(1 << 16, 2, unit=unit)
    layer.get_buffer("spelling").copy_(SPELLING)
    assert layer.attribution(torch.tensor([[3]]), 1).tolist() == [0.0]


def test_no_text_at_all_scores_nothing() -> None:
    layer = spelling_layer()
    assert layer(torch.zeros(2, 4, dtype=torch.long)).abs().max() == 0
    assert layer(torch.zeros(0, 4, dtype=torch.long)).shape == (0, 2)
    assert spell(np.zeros((2, 4), np.int64), SPELLING.numpy()).shape == (2, 0)


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
    torch.testing.assert_close(states[:, 8:], model.encode(text[:, 8:]))  # the last part is shorter than a window
    assert [model.attended(length) for length in (3, 4, 9)] == [3, 4, 4]
    assert small().attended(9) == 9
    changed = text.clone()
    changed[:, -1] = (changed[:, -1] % 49) + 1
    assert not torch.allclose(model(text), model(changed))  # the last token counts too


def test_padding_up_to_another_window_changes_nothing() -> None:
    model = small(window=4, ngrams=64, ngram_unit="both")
    text = torch.randint(1, 50, (1, 6))
    padded = torch.nn.functional.pad(text, (0, 7))
    torch.testing.assert_close(model(padded), model(text))


def test_scores_of_the_encoder_are_weighed_and_those_of_all_ngrams_added() -> None:
    model, text = small(ngrams=64, ngram_unit="both"), torch.randint(1, 50, (3, 6))
    for part in model.ngrams:
        torch.nn.init.normal_(part.scores)
        assert not part.scores.requires_grad
    assert model.encoder_share is not None
    assert (float(model.encoder_share), model.encoder_share.requires_grad) == (1.0, False)
    model.encoder_share.fill_(0.3)
    characters, tokens = model.ngrams
    torch.testing.assert_close(model(text), 0.3 * model.encoder_scores(text) + characters(text) + tokens(text))
    assert small().encoder_share is None
