"""Which pieces may translate which."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jumok.engines import shortlist
from jumok.engines.shortlist import count_together, make_shortlist
from jumok.tokenizer import FIRST_PIECE, Tokenizer

SIZE = 30
sentence = st.lists(st.integers(0, SIZE - 1), max_size=6)


@given(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=20))
def test_pieces_are_counted_once_a_pair(pairs: list[tuple[list[int], list[int]]]) -> None:
    before = shortlist.PAIRS_AT_A_TIME
    shortlist.PAIRS_AT_A_TIME = 3
    try:
        codes, counts, sources, targets = count_together(pairs, SIZE)
    finally:
        shortlist.PAIRS_AT_A_TIME = before
    found = dict(zip(codes.tolist(), counts.tolist(), strict=True))
    for source in range(SIZE):
        assert sources[source] == sum(source in pair[0] for pair in pairs)
        assert targets[source] == sum(source in pair[1] for pair in pairs)
        for target in range(SIZE):
            expected = sum(source in pair[0] and target in pair[1] for pair in pairs)
            assert found.get(source * SIZE + target, 0) == expected


def test_words_that_translate_each_other_are_listed() -> None:
    words = {"cat": "고양이", "dog": "강아지", "bird": "참새", "fish": "물고기"}
    rng = np.random.default_rng(0)
    drawn = [rng.choice(list(words), 2, replace=False) for _ in range(200)]
    sources = [f"the {one} sees the {other}" for one, other in drawn]
    targets = [f"{words[one]} {words[other]} 봐요" for one, other in drawn]
    tokenizer = Tokenizer.train(sources + targets, 400)
    pairs = list(zip(tokenizer.encode(sources), tokenizer.encode(targets), strict=True))
    lines = make_shortlist(pairs, tokenizer).decode().split("\n")[:-1]
    table = dict(line.split("\t") for line in lines)
    always = table.pop("").split(" ")
    assert "</s>" in always
    assert len(always) <= FIRST_PIECE + shortlist.FREQUENT
    for source, target in words.items():
        [ids], [wanted] = tokenizer.encode([source]), tokenizer.encode([target])
        offered = {*always, *(piece for piece in tokenizer.pieces(ids) for piece in table.get(piece, "").split(" "))}
        assert set(tokenizer.pieces(wanted)) <= offered
