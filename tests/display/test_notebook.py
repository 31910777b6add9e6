"""A training in a notebook. IPython is imitated here; its names and calls are those of IPython 9 and ipykernel 7."""

import sys
from types import ModuleType
from typing import Any

import pytest

from jumok.display.opening import in_notebook, open_display
from jumok.display.panel import NotebookPanel

POSITION = {"step": 5, "epoch": 1, "tokens": 500, "seconds": 2.0}
EVENTS: list[dict[str, Any]] = [
    {"event": "reading"},
    {"event": "plan", "choices": [{"name": "preset", "value": "tiny", "why": "a < b"}]},
    {"event": "settings", "settings": {}, "steps": 10},
    {"event": "step", **POSITION, "seconds_left": 61.0},
    {"event": "finding", "what": "empty lines: 3", "where": "", "advice": ""},
    {"event": "finished"},
]


class Cell:
    """The output of a cell: what is shown there, and how often that changed."""

    def __init__(self) -> None:
        self.outputs: list[dict[str, str]] = []

    def display(self, shown: Any, *, display_id: bool) -> "Cell":
        assert display_id  # so that it can be updated
        self.update(shown)
        return self

    def update(self, shown: Any) -> None:
        self.outputs.append(dict(shown._repr_mimebundle_(include=None, exclude=None)))


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    """The cell that is run."""

    class ZMQInteractiveShell:
        pass

    cell, package, module = Cell(), ModuleType("IPython"), ModuleType("IPython.display")
    package.get_ipython = ZMQInteractiveShell  # type: ignore[attr-defined]
    module.display = cell.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return cell


def test_the_panel_is_updated_in_place_and_keeps_what_was_decided(
    cell: Cell, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_display("translator → run") as display:
        assert isinstance(display, NotebookPanel)
        for event in EVENTS:
            display(event)
    text, html = cell.outputs[-1]["text/plain"], cell.outputs[-1]["text/html"]
    for shown in ("preset = tiny  (a < b)", "5/10", "Done", "translator → run", "warning: empty lines: 3"):
        assert shown in text
    assert "(a &lt; b)" in html
    assert "\x1b" not in text
    assert capsys.readouterr() == ("", "")  # nothing beside the panel


def test_the_panel_is_not_redrawn_more_than_once_a_second_within_a_phase(cell: Cell) -> None:
    with open_display("translator → run") as display:
        display(EVENTS[2])
        for step in range(1, 200):
            display({"event": "step", **POSITION, "step": step, "seconds_left": 1.0})
    assert len(cell.outputs) < 10
    assert "199/10" in cell.outputs[-1]["text/plain"]  # what came last is shown in the end


def test_a_script_is_not_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not in_notebook()
