"""What a watcher sees of a training."""

import io
import os
import sys
from typing import Any

import pytest
from rich.console import Console

from jumok.cli.panel import print_lines
from jumok.display.curve import draw_curve
from jumok.display.lines import Display, PlainLines
from jumok.display.messages import describe, describe_step, describe_warning
from jumok.display.opening import open_display
from jumok.display.panel import LivePanel
from jumok.display.status import Status, duration

SETTINGS = {"event": "settings", "settings": {"stop": {"steps": 100}}, "steps": 100}
SAMPLE = {"source": "a [bold]", "output": "b", "reference": "c"}


def train(step: int, tokens: int, seconds: float, loss: float = 2.5) -> dict[str, Any]:
    """An entry of the log."""
    position = {"step": step, "epoch": 1, "tokens": tokens, "seconds": seconds}
    return {"event": "train", **position, "loss": loss, "lr": 1e-3}


def at_step(step: int, tokens: int, seconds: float, left: float) -> dict[str, Any]:
    """What the trainer says every second."""
    position = {"step": step, "epoch": 1, "tokens": tokens, "seconds": seconds}
    return {"event": "step", **position, "seconds_left": left}


VALID = {"event": "valid", "step": 20, "epoch": 1, "score": 12.34, "best": True, "loss": 2.0, "samples": [SAMPLE]}
VALID |= {"bleu": 12.34, "chrf": 40.0}
RESUMED = {"event": "resumed", "step": 50, "changed": {}, "losses": [9.0, 5.0], "validations": [VALID]}
AVERAGE = VALID | {"averaged": "last", "best": False, "bleu": 12.0, "samples": []}


def on_screen(*events: dict[str, Any]) -> str:
    """What a terminal of 100 columns was sent while these happened."""
    screen = io.StringIO()
    with LivePanel("jumok train", terminal(screen)) as panel:
        for event in events:
            panel(event)
    return screen.getvalue()


def terminal(screen: io.StringIO) -> Console:
    return Console(file=screen, width=100, force_terminal=True, color_system=None)


def test_time_left_counts_down_between_two_forecasts_and_never_below_zero() -> None:
    now = 1000.0
    status = Status(clock=lambda: now)
    status.update(SETTINGS)
    assert status.seconds_left is None
    status.update(at_step(20, 4000, 10.0, left=90.0))
    seen = []
    for _ in range(3):
        seen.append(status.seconds_left)
        now += 40
    assert seen == [90, 50, 10]
    status.update({"event": "validating"})  # nothing is said for a while
    assert status.seconds_left == 0
    status.update(at_step(21, 4200, 10.5, left=70.0))
    assert status.seconds_left == 70


def test_the_step_and_the_speed_follow_every_second_and_not_only_the_log() -> None:
    status = Status()
    status.update(SETTINGS)
    for second in range(1, 31):
        status.update(at_step(second, 100 * second if second < 15 else 200 * second - 1400, float(second), left=5.0))
    assert (status.step, status.epoch) == (30, 1)
    assert status.speed == 200  # that of the last seconds, not of the beginning


def test_a_classifier_learns_texts_not_tokens() -> None:
    status = Status()
    status.update({"event": "corpus", "classes": {"good": 3, "bad": 4}})
    status.update(SETTINGS)
    status.update(train(20, 4000, 10.0))
    assert "400 texts/s" in describe_step(status)


def test_after_a_resume_the_curve_and_the_best_score_go_on() -> None:
    text = on_screen(SETTINGS, RESUMED, train(60, 6000, 300.0, loss=2.0))
    assert "loss █▄▁" in text or "loss #:_" in text
    assert "12.3" in text


def test_the_best_is_what_the_training_calls_so_even_if_an_earlier_version_scored_in_another_way() -> None:
    status = Status()
    status.update({"event": "valid", "step": 5, "score": 91.0, "best": True, "accuracy": 0.91})
    status.update({"event": "valid", "step": 10, "score": -0.2, "best": True, "accuracy": 0.93})
    status.update({"event": "valid", "step": 15, "score": -0.3, "best": False, "accuracy": 0.94})
    assert list(status.best.values()) == ["93.0%"]


def test_after_a_resume_only_what_was_done_since_counts() -> None:
    status = Status()
    status.update(SETTINGS)
    status.update(RESUMED)
    status.update(train(60, 6000, 300.0))
    assert status.speed is None  # nobody knows how much of the 300 seconds was before the stop
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
        ({"event": "unsaved", "path": "run/attention", "reason": "No space left"}, "run/attention: cannot be written"),
        (
            {"event": "restarted", "path": "run/checkpoints", "step": 2000},
            "no checkpoint, though the log had come to step 2,000",
        ),
        ({"event": "memory", "step": 0, "parts": 2}, "every batch is computed in 2 parts"),
        (RESUMED | {"changed": {"threads": [1, 2]}}, "threads 1 → 2"),
    ],
)
def test_what_went_wrong_is_said_even_when_quiet(event: dict[str, Any], said: str) -> None:
    warning = describe_warning(event)
    assert warning is not None
    assert said in warning


def test_the_panel_shows_where_the_training_stands() -> None:
    text = on_screen(
        SETTINGS,
        {"event": "training"},
        at_step(20, 4000, 10.0, left=754.0),
        train(20, 4000, 10.0),
        VALID,
        {"event": "memory", "step": 20, "parts": 2},
    )
    numbers = ("20/100", "2.500", "400", "1.00e-03", "12.3", "40.0", "20%", "12:34", "Training")
    for shown in (*numbers, "a [bold]", "→ b", "= c", "warning:"):
        assert shown in text


@pytest.mark.parametrize(
    ("event", "phase"),
    [
        ({"event": "reading"}, "Reading and checking the corpus"),
        ({"event": "vocabulary"}, "Learning the vocabulary"),
        ({"event": "encoding"}, "Encoding the corpus"),
        (SETTINGS, "Preparing the model"),
        ({"event": "measuring"}, "Measuring the speed of this machine"),
        (train(20, 4000, 10.0), "Training"),
        ({"event": "validating"}, "Validating"),
        ({"event": "checkpoint", "step": 100, "epoch": 1, "tokens": 1, "seconds": 1.0}, "Saving a checkpoint"),
        ({"event": "averaging"}, "Averaging checkpoints"),
        ({"event": "exporting"}, "Exporting to CTranslate2"),
        ({"event": "certifying"}, "Certifying the export"),
        ({"event": "finished"}, "Done"),
        ({"event": "something new"}, "Training"),  # an unknown event changes nothing
    ],
)
def test_the_phase_says_what_happens_now(event: dict[str, Any], phase: str) -> None:
    status = Status()
    status.update(SETTINGS)
    status.update({"event": "training"})
    status.update(event)
    assert status.phase == phase


def test_done_is_said_last_and_only_at_the_end() -> None:
    events = (SETTINGS, train(100, 4000, 10.0), {"event": "done", "step": 100}, {"event": "exporting"})
    stopped = on_screen(*events)
    assert "Exporting to CTranslate2" in stopped
    assert "Done" not in stopped
    finished = on_screen(*events, {"event": "certifying"}, {"event": "finished"})
    assert finished.rindex("Done") > finished.rindex("Certifying the export")


def test_an_average_that_is_not_better_is_said_to_be_unused() -> None:
    assert "average of the last checkpoints: BLEU 12.0" in on_screen(SETTINGS, train(100, 4000, 10.0), AVERAGE)
    [line] = describe(AVERAGE, Status())
    assert "not better: it is not used" in line
    [line] = describe(AVERAGE | {"best": True}, Status())
    assert "it is the model" in line


def test_the_learning_curve_is_a_line_of_blocks() -> None:
    assert draw_curve([9.0, 5.0, 2.0], 30) == "█▄▁"
    assert draw_curve([1.0, 1.0], 30) == "▁▁"
    assert draw_curve([], 30) == ""
    assert draw_curve([4.0, 2.0, 1.0, 1.0], 2) == "█▁"  # each the mean of two
    assert draw_curve([1.0, 8.0], 30, ascii_only=True) == "_#"


@pytest.mark.parametrize(
    ("environment", "curve"),
    [
        ({"LC_ALL": "ko_KR.UTF-8", "TERM": "xterm-256color"}, "loss █▅▁"),
        ({"LC_ALL": "C", "TERM": "xterm-256color"}, "loss #=_"),
        ({"LC_ALL": "ko_KR.UTF-8", "TERM": "linux"}, "loss #=_"),  # the text console has no blocks
    ],
)
def test_the_panel_draws_the_curve_as_the_terminal_can(
    environment: dict[str, str], curve: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    losses = [train(step, 100 * step, float(step), loss) for step, loss in ((10, 9.0), (20, 6.0), (30, 2.0))]
    assert curve in on_screen(SETTINGS, *losses)


def test_what_is_not_a_terminal_gets_lines_with_every_phase() -> None:
    screen = io.StringIO()
    phases = ("reading", "vocabulary", "encoding", "measuring", "averaging", "exporting", "certifying")
    with open_display("jumok train", screen) as display:
        for phase in phases:
            display({"event": phase})
    assert len(screen.getvalue().splitlines()) == len(phases)
    assert "\x1b" not in screen.getvalue()


def test_messages_name_python_arguments_unless_another_wording_is_given() -> None:
    event = {"event": "already_done", "step": 5}
    assert "`fresh=True`" in Display().describe(event)[0]
    assert "--fresh" in Display(lambda message: message.replace("`fresh=True`", "--fresh")).describe(event)[0]


def test_a_training_does_not_end_because_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        watcher = PlainLines(print_lines)
        watcher(SETTINGS)
        for step in (10, 20):
            watcher(train(step, 100 * step, float(step)))
        assert watcher.status.step == 20
