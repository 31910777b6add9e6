"""jumok info: what a model directory or a run directory contains."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from jumok.cli.info_text import describe_facts
from jumok.cli.options import JSON, PATH, print_json
from jumok.display.status import METRICS
from jumok.training.records import FIRST_STAGE


@click.command(epilog="Example: jumok info run")
@click.argument("path", type=PATH, required=False, metavar="MODEL", help="A model directory or a run directory.")
@click.option("-m", "--model", type=PATH, metavar="MODEL", help="The same as the argument MODEL.")
@click.option("--note", metavar="TEXT", help="First record TEXT as the note of the model; '' removes the note.")
@JSON
def command(path: Path | None, model: Path | None, note: str | None, as_json: bool) -> None:
    """Show what a model directory or a run directory contains.

    A model's id, date, note, sizes, scores, export, versions and files; a training's progress and the time left.
    """
    if (path is None) == (model is None):
        raise click.UsageError("Give one model directory or run directory: jumok info MODEL")
    where = path or model
    assert where is not None
    if note is not None:
        _record_note(where, note)
    facts: dict[str, Any] = {}
    first_stage = where / FIRST_STAGE
    if os.path.exists(where / "run.json"):
        facts["run"] = _run_facts(where)
    elif os.path.exists(first_stage / "run.json"):  # the second one has not begun
        facts["run"] = _run_facts(first_stage)
        where = first_stage
    if "run" not in facts or facts["run"]["has_model"]:
        facts["model"] = _model_facts(where)
    if as_json:
        print_json(facts, indent=1)
    else:
        print("\n".join(describe_facts(facts)))


def _record_note(path: Path, note: str) -> None:
    """Write the note into the card of a model; for the model of a run also into run.json, which a training reads."""
    from jumok.engines.copying import write_note
    from jumok.training.records import MODEL, read_run

    directory = Path(os.path.abspath(path))
    run = directory.parent if directory.name == MODEL and read_run(directory) is None else directory
    record = read_run(run)
    if record is None:
        write_note(path, note)
        return
    from jumok.training.run_directory import RunDirectory

    with RunDirectory.open(run, record["task"]) as locked:  # a training would replace the model
        locked.record(note=note or None)
        if os.path.exists(locked.model):
            write_note(locked.model, note)


def _model_facts(path: Path) -> dict[str, Any]:
    from jumok.bundle import load_bundle
    from jumok.files import MANIFEST

    bundle = load_bundle(path)
    sizes = {name: record.size for name, record in bundle.records.items()}
    counted = bundle.card.get("parameters")
    return {
        "path": str(bundle.path),
        "id": bundle.id,
        "created": bundle.card.get("created"),
        "note": bundle.card.get("note"),
        "runtime_only": bundle.runtime_only,
        "parameters": counted if bundle.runtime_only else sum(array.size for array in bundle.weights().values()),
        "config": bundle.config,
        "card": bundle.card,
        "export": _export_facts(bundle),
        "files": sizes | {MANIFEST: (bundle.path / MANIFEST).stat().st_size},
    }


def _export_facts(bundle: Any) -> dict[str, Any] | None:
    """The CTranslate2 export: its files and its certificate; or what is wrong with it; None if there is none."""
    from jumok.engines.opening import DIRECTORY, exported_model, read_certificate
    from jumok.errors import BundleError
    from jumok.files import read_manifest

    try:
        directory = exported_model(bundle)
    except BundleError as error:
        return {"path": str(bundle.path / DIRECTORY), "problem": str(error)}
    if directory is None:
        if not (bundle.path / DIRECTORY).is_dir():
            return None
        return {"path": str(bundle.path / DIRECTORY), "problem": "It was made from other weights and is not used."}
    return {
        "path": str(directory),
        "certificate": read_certificate(directory),
        "files": {name: record.size for name, record in read_manifest(directory).items()},
    }


def _run_facts(path: Path) -> dict[str, Any]:
    from jumok.training.records import CHECKPOINTS, read_log, read_run

    run, log = read_run(path) or {}, read_log(path)
    settings = run.get("settings", {})
    stop = settings.get("stop", {})
    trained, first_stage = (
        [entry for entry in entries if entry["event"] == "train"] for entries in (log, read_log(path / FIRST_STAGE))
    )
    last = trained[-1] if trained else {"step": 0, "epoch": 1, "seconds": 0.0, "tokens": 0}
    validation_keys = ("step", "averaged", "best", "loss", *(key for key, _, _ in METRICS))
    validations = [entry for entry in log if entry["event"] == "valid"][-5:]
    finished = bool(log) and log[-1]["event"] == "done"
    return {
        "path": str(path),
        "task": run.get("task"),
        "inputs": run.get("inputs"),
        "note": run.get("note"),
        "finished": finished,
        "step": last["step"],
        "steps": stop.get("steps"),
        "epoch": last["epoch"],
        "tokens": last["tokens"],
        "seconds": last["seconds"],
        "seconds_left": 0.0 if finished else _seconds_left(stop, last, first_stage[-1:]),
        "losses": [entry["loss"] for entry in trained],
        "last_losses": [{"step": entry["step"], "loss": entry["loss"]} for entry in trained[-5:]],
        "last_validations": [{key: entry[key] for key in validation_keys if key in entry} for entry in validations],
        "checkpoints": sorted(entry.name for entry in (path / CHECKPOINTS).glob("step-*")),
        "has_model": (path / "model").exists() or (path / ".next-model").exists(),
        "settings": settings,
        "versions": run.get("versions", {}),
    }


def _seconds_left(
    stop: Mapping[str, Any], last: Mapping[str, Any], first_stage: Sequence[Mapping[str, Any]]
) -> float | None:
    """Training time left, by the number of steps if it is known, else by the minutes asked for. `first_stage` is the
    last entry of its log, if there is one."""
    if stop.get("steps") is None:
        spent = last["seconds"] + sum(entry["seconds"] for entry in first_stage)
        return max(0.0, 60 * stop["minutes"] - spent) if stop.get("minutes") else None
    return last["seconds"] / last["step"] * (stop["steps"] - last["step"]) if last["step"] else None
