"""Which shortlist an exported translator gets: the first that loses hardly any BLEU, or none."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jumok.engines.conversion import SHORTLIST
from jumok.recipes.certifying import translator

LISTS = [(1, 10, 1.0), (2, 20, 1.2), (3, 30, 1.6)]


class FakeLexicon:
    def shortlist(self, _tokenizer: Any, candidates: int, frequent: int) -> bytes:
        return b"%d %d" % (candidates, frequent)


@pytest.mark.parametrize(
    ("fast", "chosen"),
    [
        ([40.0, 40.0, 40.0], 0),  # the fastest, though others lose as little
        ([39.91, 45.0, 45.0], 0),  # though others are better
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
    beams = []

    def bleu(_engine: Any, _tokenizer: Any, _probes: Any, beam: int) -> float:
        beams.append(beam)
        return next(measured)

    monkeypatch.setattr(translator, "SHORTLISTS", LISTS)
    monkeypatch.setattr(translator, "_bleu", bleu)
    monkeypatch.setattr(translator, "_exported", lambda *_arguments, **_options: None)
    monkeypatch.setattr(translator, "learn_lexicon", lambda *_: FakeLexicon())
    export: Any = SimpleNamespace(encoder=SimpleNamespace(size=9), probes=[("a", "b")], directory=tmp_path)
    values = translator._add_shortlist(export, train=[])  # type: ignore[arg-type]
    assert values["bleu_beam"] == 40.0
    assert set(beams) == {translator.FAST_BEAM}
    if chosen is None:
        assert values["shortlist"] is None
        assert not (tmp_path / SHORTLIST).exists()
        return
    candidates, frequent, patience = LISTS[chosen]
    assert values["bleu_fast"] == fast[chosen]
    assert values["shortlist"] == {"candidates": candidates, "frequent": frequent, "patience": patience}
    assert (tmp_path / SHORTLIST).read_bytes() == b"%d %d" % (candidates, frequent)
