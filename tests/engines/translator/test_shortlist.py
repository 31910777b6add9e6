"""Which pieces may translate which."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.engines.translator import shortlist
from jumok.engines.translator.shortlist import learn_lexicon
from jumok.tokenizer import FIRST_PIECE, Tokenizer

SIZE = 30
FREQUENT = 1
sentence = st.lists(st.integers(0, SIZE - 1), max_size=6)


@given(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=20))
def test_what_stands_together_is_listed_once(pairs: list[tuple[list[int], list[int]]]) -> None:
    lexicon = learn_lexicon(pairs, SIZE)
    listed = list(zip(lexicon.sources.tolist(), lexicon.targets.tolist(), strict=True))
    assert sorted(listed) == sorted({(one, other) for source, target in pairs for one in source for other in target})
    for piece in range(SIZE):
        assert lexicon.target_counts[piece] == sum(piece in target for _, target in pairs)


def test_company_is_explained_away() -> None:
    # 21 stands beside 10 as often as 22 does and hardly ever without it, but only because 11 stands for it.
    pairs = [([10, 11], [22, 21])] * 9 + [([11], [21])] + [([12], [22])] * 30
    lexicon = learn_lexicon(pairs, SIZE)
    first = {source: lexicon.targets[lexicon.sources.tolist().index(source)] for source in (10, 11)}
    assert first == {10: 22, 11: 21}


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortlist, "MOST_ENTRIES", 100)
    pairs = iter([([10, 11], [20, 21, 22])] * 1000)
    learn_lexicon(pairs, SIZE)
    assert len(list(pairs)) == 1000 - (100 // 6 + 1)


def test_words_that_translate_each_other_are_listed() -> None:
    words = {"cat": "고양이", "dog": "강아지", "bird": "참새", "fish": "물고기"}
    rng = np.random.default_rng(0)
    drawn = [rng.choice(list(words), 2, replace=False) for _ in range(200)]
    sources = [f"the {one} sees the {other}" for one, other in drawn]
    targets = [f"{words[one]} {words[other]} 봐요" for one, other in drawn]
    tokenizer = Tokenizer.train(sources + targets, 400)
    pairs = list(zip(tokenizer.encode(sources), tokenizer.encode(targets), strict=True))
    lines = learn_lexicon(pairs, tokenizer.size).shortlist(tokenizer, 4, FREQUENT).decode().split("\n")[:-1]
    table = dict(line.split("\t") for line in lines)
    always = table.pop("").split(" ")
    assert "</s>" in always
    assert len(always) <= FIRST_PIECE + FREQUENT
    assert all(len(candidates.split(" ")) <= 5 for candidates in table.values())
    for source, target in words.items():
        [ids], [wanted] = tokenizer.encode([source]), tokenizer.encode([target])
        offered = {*always, *(piece for piece in tokenizer.pieces(ids) for piece in table.get(piece, "").split(" "))}
        assert set(tokenizer.pieces(wanted)) <= offered
