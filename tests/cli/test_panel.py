"""What a watcher sees of a training."""

import io
import os
import sys
from typing import Any

import pytest
from rich.console import Console

from jumok.cli.panel import LivePanel, PlainLines
from jumok.cli.status import Status, describe_step, describe_warning, duration

SETTINGS = {"event": "settings", "settings": {"stop": {"steps": 100}}, "steps": 100}
SAMPLE = {"source": "a [bold]", "output": "b", "reference": "c"}


def train(step: int, tokens: int, seconds: float) -> dict[str, Any]:
    """An entry of the log."""
    return {
        "event": "train",
        "step": step,
        "epoch": 0,
        "tokens": tokens,
        "seconds": seconds,
        "loss": 2.5,
        "lr": 1e-3,
    }


VALID = {"event": "valid", "step": 20, "epoch": 0, "score": 12.34, "loss": 2.0, "samples": [SAMPLE]}
VALID |= {"bleu": 12.34, "chrf": 40.0}


def test_time_left_is_the_time_so_far_carried_on() -> None:
    now = 1000.0
    status = Status(clock=lambda: now)
    assert status.remaining is None
    status.update(SETTINGS)
    assert status.remaining is None
    now += 30
    status.update(train(20, 4000, 10.0))
    assert status.remaining == 30 / 20 * 80
    assert status.speed == 400
    status.update({"event": "schedule", "step": 20, "last_step": 60})  # fewer steps fit into the minutes asked for
    assert status.remaining == 30 / 20 * 40


def test_a_classifier_learns_texts_not_tokens() -> None:
    status = Status()
    status.update({"event": "corpus", "classes": {"good": 3, "bad": 4}})
    status.update(SETTINGS)
    status.update(train(20, 4000, 10.0))
    assert "400 texts/s" in describe_step(status)


def test_after_a_resume_only_what_was_done_since_counts() -> None:
    now = 0.0
    status = Status(clock=lambda: now)
    status.update(SETTINGS)
    status.update({"event": "resumed", "step": 50, "changed": {}})
    now += 10
    status.update(train(60, 6000, 300.0))
    assert status.speed is None  # nobody knows how much of the 300 seconds was before the stop
    assert status.remaining == 40
    status.update(train(70, 7000, 310.0))
    assert status.speed == 100


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "–"), (0, "0:00"), (59.6, "1:00"), (187, "3:07"), (8100, "2:15:00")]
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"event": "rejected", "path": "run/checkpoints/step-1", "reason": "is damaged"}, "step-1: is damaged"),
        (
            {"event": "restarted", "path": "run/checkpoints", "step": 2000},
            "no checkpoint, though the log had come to step 2,000",
        ),
        ({"event": "memory", "step": 0, "parts": 2}, "every batch is computed in 2 parts"),
        ({"event": "resumed", "step": 5, "changed": {"threads": [1, 2]}}, "threads 1 → 2"),
    ],
)
def test_what_went_wrong_is_said_even_when_quiet(event: dict[str, Any], said: str) -> None:
    warning = describe_warning(event)
    assert warning is not None
    assert said in warning


def test_the_panel_shows_where_the_training_stands() -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=100, force_terminal=True, color_system=None)
    with LivePanel("jumok train", console) as panel:
        for event in (
            SETTINGS,
            {"event": "training"},
            train(20, 4000, 10.0),
            VALID,
            {"event": "memory", "step": 20, "parts": 2},
        ):
            panel(event)
        console.print(panel.draw())
    text = screen.getvalue()
    for shown in (
        "20/100",
        "2.500",
        "400",
        "1.00e-03",
        "12.3",
        "40.0",
        "a [bold]",
        "→ b",
        "= c",
        "20%",
        "Training",
        "warning:",
    ):
        assert shown in text


@pytest.mark.parametrize(
    ("event", "phase"),
    [
        ({"event": "reading"}, "Reading and checking the corpus"),
        ({"event": "vocabulary"}, "Learning the vocabulary"),
        ({"event": "encoding"}, "Encoding the corpus"),
        (SETTINGS, "Preparing the model"),
        ({"event": "measuring"}, "Measuring this machine"),
        (train(20, 4000, 10.0), "Training"),
        ({"event": "validating", "step": 20}, "Validating"),
        (train(100, 20000, 50.0), "Finishing"),
        ({"event": "averaging", "step": 100}, "Averaging checkpoints"),
        ({"event": "exporting"}, "Exporting to CTranslate2"),
        ({"event": "certifying"}, "Certifying the export"),
        ({"event": "something new"}, "Training"),  # an unknown event changes nothing
    ],
)
def test_the_phase_says_what_happens_now(event: dict[str, Any], phase: str) -> None:
    status = Status()
    status.update(SETTINGS)
    status.update({"event": "training"})
    status.update(event)
    assert status.phase == phase


def test_the_panel_says_done_only_at_the_end() -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=100, force_terminal=True, color_system=None)
    with LivePanel("jumok train", console) as panel:
        for event in (SETTINGS, train(100, 4000, 10.0), {"event": "done", "step": 100}, {"event": "exporting"}):
            panel(event)
        assert "Exporting to CTranslate2" in screen.getvalue()
        assert "Done" not in screen.getvalue()
    assert "Done" in screen.getvalue()


def test_a_training_that_was_stopped_is_not_called_done() -> None:
    screen = io.StringIO()
    with LivePanel("jumok train", Console(file=screen, width=100, force_terminal=True)) as panel:
        panel(SETTINGS)
        panel(train(20, 4000, 10.0))
    assert "Done" not in screen.getvalue()


def test_a_training_does_not_end_because_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        watcher = PlainLines()
        watcher(SETTINGS)
        for step in (10, 20):
            watcher(train(step, 100 * step, float(step)))
        assert watcher.status.step == 20
