"""Which shortlist an exported translator gets: the first that loses hardly any BLEU, or none."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jumok.engines.conversion import SHORTLIST
from jumok.recipes.certifying import translator

TOKENIZER = SimpleNamespace(size=9)
LISTS = [(1, 10, 1.0), (2, 20, 1.2), (3, 30, 1.6)]


class FakeLexicon:
    def shortlist(self, tokenizer: Any, candidates: int, frequent: int) -> bytes:
        assert tokenizer is TOKENIZER
        return b"%d %d" % (candidates, frequent)


class FakeStore:
    """Two training pairs."""

    def __len__(self) -> int:
        return 2

    def example(self, side: str, number: int) -> list[int]:
        return [number if side == "source" else 10 + number]


def learn_fake_lexicon(pairs: Any, size: int) -> FakeLexicon:
    assert sorted(pairs) == [([0], [10]), ([1], [11])]
    assert size == 9
    return FakeLexicon()


@pytest.mark.parametrize(
    ("fast", "chosen"),
    [
        ([40.0, 40.0, 40.0], 0),  # the fastest, though others lose as little
        ([39.91, 45.0, 45.0], 0),  # though others are better
        ([39.9, 45.0, 45.0], 0),
        ([39.89, 39.95, 40.0], 1),
        ([30.0, 39.89, 39.91], 2),
        ([39.89, 39.89, 39.89], None),
        ([float("nan")] * 3, None),
    ],
)
def test_the_first_that_loses_hardly_any_bleu_is_taken(
    fast: list[float], chosen: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = iter([40.0, *fast])
    tried: list[tuple[float | None, int]] = []

    def bleu(engine: Any, tokenizer: Any, probes: Any, beam: int) -> float:
        assert tokenizer is TOKENIZER
        assert engine.of is export
        assert len(probes) == 3
        tried.append((engine.fast, beam))
        return next(measured)

    monkeypatch.setattr(translator, "SHORTLISTS", LISTS)
    monkeypatch.setattr(translator, "_bleu", bleu)
    monkeypatch.setattr(translator, "MOST_FAST_PROBES", 3)
    monkeypatch.setattr(translator, "_exported", lambda given, *, fast=None: SimpleNamespace(fast=fast, of=given))
    monkeypatch.setattr(translator, "learn_lexicon", learn_fake_lexicon)
    export: Any = SimpleNamespace(encoder=TOKENIZER, probes=[("a", "b")] * 5, directory=tmp_path)
    values = translator._add_shortlist(export, FakeStore())  # type: ignore[arg-type]
    assert values["bleu_beam"] == 40.0
    last = len(LISTS) if chosen is None else chosen + 1
    assert tried == [(patience, 5) for patience in (None, *(patience for _, _, patience in LISTS[:last]))]
    if chosen is None:
        assert values["shortlist"] is None
        assert not (tmp_path / SHORTLIST).exists()
        return
    candidates, frequent, patience = LISTS[chosen]
    assert values["bleu_fast"] == fast[chosen]
    assert values["shortlist"] == {"candidates": candidates, "frequent": frequent, "patience": patience}
    assert (tmp_path / SHORTLIST).read_bytes() == b"%d %d" % (candidates, frequent)
