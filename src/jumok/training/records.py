"""Reading run.json and log.jsonl of a run directory, without PyTorch and also while it is being trained.

run/  .lock  run.json  log.jsonl  store/  checkpoints/  model/  attention/
"""

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
FIRST_STAGE = "first_stage"  # a run directory of its own, of a training with two stages
ATTENTION = "attention"  # of a few sentences at each validation; see lens/replay.py


class _SourceRecord(BaseModel):
    """A file of a corpus, as it was when it was read."""

    name: str
    bytes: int
    sha256: str


class _DataRecord(BaseModel):
    """What a run was trained on, as far as it is known."""

    files: list[_SourceRecord] = []
    valid_files: list[_SourceRecord] = []
    reading: dict[str, Any] = {}  # how they are read, as far as it was said: columns, encoding …
    kind: str = "examples"
    examples: int | None = None
    since: str = ""  # the local time when this data was first read


class _Record(BaseModel):
    """The fields of run.json that the program relies on. Others are only displayed."""

    model_config = ConfigDict(strict=True)

    asked: Settings
    settings: Settings
    fingerprint: str
    keeps_vocabulary: bool
    inputs: list[str] = []
    data: _DataRecord = _DataRecord()
    fixed: dict[str, Any] = {}  # this and `data` are absent in runs of older versions
    best_before: float | None = None
    length: list[list[int]] | None = None  # see training/length.py; None in a run of an older version
    note: str | None = None
    first_epoch: int = 0  # as log.jsonl counts them: older versions counted from 0, and their runs go on doing so


def read_run(path: Path, restore: str = "Restore it from a copy.") -> dict[str, Any] | None:
    """Return the validated run.json of a run directory or None. Settings newer than the file have their default.
    `restore` is what the error advises for a damaged file."""
    where = path / RUN
    if not os.path.lexists(where):
        return None
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
    """Return the entries of a run directory's log, without a last line that is not complete yet.
    Epochs are counted from 1, however the file counts them."""
    entries = []
    before_first = first_epoch(path) - 1
    torn = None
    for number, _, entry in scan_log(path / LOG):
        if torn is not None:
            raise CheckpointError(f"{path / LOG}:{torn}: is damaged. Repair or remove the line.")
        if entry is None:
            torn = number
        else:
            entries.append(entry | {"epoch": entry["epoch"] - before_first} if "epoch" in entry else entry)
    return entries


def past_results(path: Path) -> tuple[list[float], list[dict[str, Any]]]:
    """Return the losses in the log of a run directory, and its validations without their samples."""
    log = read_log(path)
    validations = [entry for entry in log if entry["event"] == "valid"]
    losses = [entry["loss"] for entry in log if entry["event"] == "train"]
    return losses, [{name: value for name, value in entry.items() if name != "samples"} for entry in validations]


def read_sample_inputs(path: Path) -> list[str]:
    """Return the inputs of the samples that the last validation in the log of a run directory showed."""
    validations = [entry for entry in read_log(path) if entry["event"] == "valid" and entry.get("samples")]
    samples = validations[-1]["samples"] if validations else []
    return [sample["source"] for sample in samples if isinstance(sample, dict) and "source" in sample]


def first_epoch(path: Path) -> int:
    """Return the number that the log of a run directory gives to the first epoch: 1, or 0 in a run that an older
    version began."""
    run = read_run(path)
    return 1 if run is None else int(run["first_epoch"])


def diff_settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return one readable line for each changed setting, by its dotted name."""
    before, after = (
        {name: json.dumps(value, ensure_ascii=False) for name, value in _dotted(values)} for values in (old, new)
    )
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return [f"{name}: {before.get(name, 'not set')} → {after.get(name, 'not set')}" for name in changed]


def _dotted(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def scan_log(path: Path) -> Iterator[tuple[int, int, dict[str, Any] | None]]:
    """Yield line number, offset of the line's end, and the entry, or None if the line is incomplete or damaged."""
    if not _log_size(path):
        return
    offset = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            offset += len(line)
            yield number, offset, _parse_entry(line, path)


def _parse_entry(line: bytes, path: Path) -> dict[str, Any] | None:
    """Return None unless the line is complete and has an event and a step."""
    try:
        entry = parse_json_object(line, path) if line.endswith(b"\n") else {}
    except UnreadableError:
        return None
    return entry if isinstance(entry.get("event"), str) and type(entry.get("step")) is int else None


def end_of_intact_lines(path: Path, saved_step: int | None) -> int | None:
    """Return where a log is to be cut off after a crash; None if nowhere. An incomplete last line is cut off, and so is
    everything from the first damaged line that follows the checkpoint of `saved_step`, the newest: lines after it were
    not synced yet, a power failure may have lost any of them, and a resumed training writes them again."""
    end, was_synced = 0, saved_step is None
    for _, size, entry in scan_log(path):
        if entry is None and was_synced:
            return end
        if entry is not None and (entry["event"], entry["step"]) == ("checkpoint", saved_step):
            was_synced = True
        end = size
    return _end_of_last_line(path)


def _end_of_last_line(path: Path) -> int | None:
    """Return where an incomplete last line of a log begins; None if all lines are complete."""
    size = _log_size(path)
    if not size:
        return None
    with open(path, "rb") as file:
        file.seek(max(0, size - MAX_JSON_BYTES))  # no line is longer
        tail = file.read()
    torn = len(tail) - (tail.rfind(b"\n") + 1)
    return size - torn if torn else None


def _log_size(path: Path) -> int:
    """Return 0 if there is no log. Refuse a link: lines will be added and cut off, and it could lead to any file."""
    try:
        return regular_size(path) if os.path.lexists(path) else 0
    except UnreadableError as error:
        advice = error.advice or "Move it away to begin a new log."
        raise CheckpointError(f"{error.problem} {advice}") from error
