"""Going on with a training that was begun before: whether it is the same one, finished, or may change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jumok.errors import BundleError, CheckpointError
from jumok.model.config import ModelConfig
from jumok.tokenizer import Tokenizer
from jumok.training.records import diff_settings, read_log
from jumok.training.run_directory import RunDirectory
from jumok.training.settings import Settings


def require_same(run: Path, before: Mapping[str, Any], asked: Settings) -> None:
    """Refuses other settings than the training was begun with, and shows which."""
    changes = diff_settings(Settings.from_dict(before).to_dict(), asked.to_dict())  # what is new since has its default
    if changes:
        raise CheckpointError(
            f"{run}: this training was begun with other settings:\n  " + "\n  ".join(changes) + "\n"
            "Give the old ones to go on, --fresh to start again, or --continue-with-changes to go on with the new ones."
        )


def require_same_data_settings(run: Path, before: Mapping[str, Any], asked: Settings) -> None:
    """Refuses another vocabulary, and another seed: it would hold out examples that were learned from."""
    now = asked.to_dict()
    fixed = [{"seed": values["seed"], "tokenizer.size": values["tokenizer"]["size"]} for values in (before, now)]
    _require_no_changes(run, diff_settings(*fixed))


def require_same_sizes(run: Path, before: ModelConfig, now: ModelConfig) -> None:
    """Refuses a model that the weights do not fit; only dropout can change."""
    comparable = replace(now, dropout=before.dropout, attention_dropout=before.attention_dropout)
    _require_no_changes(run, [f"model.{line}" for line in diff_settings(before.to_dict(), comparable.to_dict())])


def require_same_meaning(run: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuses data that gives other names to what was learned."""
    if before:  # a run of an older version does not say
        _require_no_changes(run, diff_settings(before, now))


def _require_no_changes(run: Path, changes: list[str]) -> None:
    if changes:
        raise CheckpointError(
            f"{run}: what was learned so far does not fit these changes:\n  " + "\n  ".join(changes) + "\n"
            "Give the old values, or start again with --fresh or in another directory."
        )


def already_finished(run: Path, settings: Settings) -> Mapping[str, Any] | None:
    """The last line of the log if it says that a training within these limits came to its end."""
    last = _last_if_done(run)
    if last is None:
        return None
    limits = {"steps": settings.stop.steps, "patience": settings.stop.patience}
    at_the_end = last["step"] >= (settings.stop.steps or 0) or last.get("limits") == limits
    return last if at_the_end else None


def best_before(run: Path, record: Mapping[str, Any] | None, *, going_on: bool) -> float | None:
    """The best score of a training that had come to its end and now goes on with changes.

    An average of checkpoints may have reached it: then no checkpoint knows of it. It is kept in run.json, because the
    end of the log will be written anew.
    """
    last = _last_if_done(run)
    if going_on and last is not None:
        score: float | None = last["best_score"]
        return score
    return record.get("best_before") if record else None


def _last_if_done(run: Path) -> Mapping[str, Any] | None:
    """The last line of the log if it says `done` and with which score; one that says less is not believed."""
    last = read_log(run)[-1:]
    is_done = bool(last) and last[0]["event"] == "done"
    return last[0] if is_done and isinstance(last[0].get("best_score", ""), float | int | None) else None


def kept_tokenizer(run: RunDirectory) -> Tokenizer | None:
    """The vocabulary of what was learned so far; None if nothing was."""
    if not run.checkpoints.is_dir() or not any(run.checkpoints.iterdir()):
        return None
    for directory in (run.model, run.store):
        try:
            return Tokenizer.load(directory / "tokenizer.model")
        except BundleError:
            continue
    raise CheckpointError(f"{run.path}: the vocabulary of this training is gone. Start again with --fresh.")
