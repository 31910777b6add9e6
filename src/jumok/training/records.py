"""What a run directory says of itself, read without PyTorch and also while somebody trains in it.

run/  .lock  run.json  log.jsonl  store/  checkpoints/  model/
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from jumok.errors import CheckpointError
from jumok.files import FORMAT, MAX_JSON_BYTES, UnreadableError, parse_json_object, read_bounded, regular_size
from jumok.training.settings import Settings

RUN, LOG, LOCK, STORE, CHECKPOINTS, MODEL = "run.json", "log.jsonl", ".lock", "store", "checkpoints", "model"


class _Record(BaseModel):
    """What run.json must say. What is not listed here is only shown."""

    model_config = ConfigDict(strict=True)

    asked: Settings
    settings: Settings
    fingerprint: str
    keeps_vocabulary: bool
    inputs: list[str] = []
    fixed: dict[str, Any] = {}  # a run of an older version does not say
    best_before: float | None = None


def read_run(path: Path) -> dict[str, Any] | None:
    """The run.json of a run directory, also of one that is being trained; None if there is none.

    Everything the program relies on is there and of the right type; settings that are new since have their default.
    """
    where = path / RUN
    if not os.path.lexists(where):
        return None
    restore = "Restore it from a copy, or choose another directory with -o."
    try:
        contents = parse_json_object(read_bounded(where, MAX_JSON_BYTES), where)
    except UnreadableError as error:
        raise CheckpointError(f"{error.problem} {error.advice or restore}") from error
    if contents.get("format") != FORMAT:
        raise CheckpointError(
            f"{where}: has format {contents.get('format')!r}, this Jumok reads {FORMAT}. Upgrade Jumok."
        )
    try:
        return contents | _Record.model_validate(contents).model_dump(by_alias=True)
    except ValidationError as error:
        wrong = error.errors()[0]
        name = ".".join(map(str, wrong["loc"]))
        raise CheckpointError(f"{where}: {name} cannot be used ({wrong['msg']}). {restore}") from error


def read_log(path: Path) -> list[dict[str, Any]]:
    """The entries of a run directory's log, also while it grows: a last line that is not complete yet is left out."""
    entries = []
    torn = None
    for number, _, entry in scan_log(path / LOG):
        if torn is not None:
            raise CheckpointError(f"{path / LOG}:{torn}: is damaged. Repair or remove the line.")
        if entry is None:
            torn = number
        else:
            entries.append(entry)
    return entries


def diff_settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What changed, one readable line for each setting by its dotted name; empty if nothing did."""
    before, after = dict(_dotted(old)), dict(_dotted(new))
    lines = []
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            lines.append(f"{name}: {_shown(before[name])} → not set")
        elif name not in before:
            lines.append(f"{name}: not set → {_shown(after[name])}")
        elif before[name] != after[name]:
            lines.append(f"{name}: {_shown(before[name])} → {_shown(after[name])}")
    return lines


def _dotted(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def scan_log(path: Path) -> Iterator[tuple[int, int, dict[str, Any] | None]]:
    """Line number, offset of the line's end, and the entry, None if the line is torn or damaged."""
    if not _log_size(path):
        return
    offset = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            offset += len(line)
            yield number, offset, _parse_entry(line, path)


def _parse_entry(line: bytes, path: Path) -> dict[str, Any] | None:
    """None unless it is whole and says what happened at which step."""
    try:
        entry = parse_json_object(line, path) if line.endswith(b"\n") else {}
    except UnreadableError:
        return None
    return entry if isinstance(entry.get("event"), str) and type(entry.get("step")) is int else None


def end_of_last_line(path: Path) -> int | None:
    """Where the torn last line of a log begins; None if it is whole. No line is longer than the longest JSON."""
    size = _log_size(path)
    if not size:
        return None
    with open(path, "rb") as file:
        file.seek(max(0, size - MAX_JSON_BYTES))
        tail = file.read()
    torn = len(tail) - (tail.rfind(b"\n") + 1)
    return size - torn if torn else None


def _log_size(path: Path) -> int:
    """0 if there is no log. A link is refused, since lines will be added and cut off: it could lead to any file."""
    try:
        return regular_size(path) if os.path.lexists(path) else 0
    except UnreadableError as error:
        advice = error.advice or "Move it away to begin a new log."
        raise CheckpointError(f"{error.problem} {advice}") from error
