"""jumok info: what a model directory or a run directory contains."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from jumok.cli.options import JSON, MODEL, print_json
from jumok.display.status import METRICS, describe_metrics, duration
from jumok.tasks import TASKS


@click.command(epilog="Example: jumok info -m run")
@MODEL
@JSON
def command(model: Path, as_json: bool) -> None:
    """Show what a model directory or a run directory contains.

    Sizes, scores, versions and files; of a training also its progress and the time left.
    """
    facts: dict[str, Any] = {}
    if os.path.exists(model / "run.json"):
        facts["run"] = _run_facts(model)
    if "run" not in facts or facts["run"]["has_model"]:
        facts["model"] = _model_facts(model)
    if as_json:
        print_json(facts, indent=1)
    else:
        print("\n".join(_lines(facts)))


def _model_facts(path: Path) -> dict[str, Any]:
    from jumok.bundle import load_bundle
    from jumok.files import MANIFEST, read_manifest

    bundle = load_bundle(path)
    sizes = {name: record.size for name, record in read_manifest(bundle.path).items()}
    return {
        "path": str(bundle.path),
        "parameters": sum(array.size for array in bundle.weights().values()),
        "config": bundle.config,
        "card": bundle.card,
        "files": sizes | {MANIFEST: (bundle.path / MANIFEST).stat().st_size},
    }


def _run_facts(path: Path) -> dict[str, Any]:
    from jumok.training.records import CHECKPOINTS, read_log, read_run

    run, log = read_run(path) or {}, read_log(path)
    settings = run.get("settings", {})
    stop = settings.get("stop", {})
    trained = [entry for entry in log if entry["event"] == "train"]
    last = trained[-1] if trained else {"step": 0, "epoch": 1, "seconds": 0.0, "tokens": 0}
    validation_keys = ("step", "averaged", "loss", *(key for key, _, _ in METRICS))
    validations = [entry for entry in log if entry["event"] == "valid"][-5:]
    return {
        "path": str(path),
        "task": run.get("task"),
        "inputs": run.get("inputs"),
        "finished": bool(log) and log[-1]["event"] == "done",
        "step": last["step"],
        "steps": stop.get("steps"),
        "epoch": last["epoch"],
        "tokens": last["tokens"],
        "seconds": last["seconds"],
        "seconds_left": _seconds_left(stop, last),
        "last_losses": [{"step": entry["step"], "loss": entry["loss"]} for entry in trained[-5:]],
        "last_validations": [{key: entry[key] for key in validation_keys if key in entry} for entry in validations],
        "checkpoints": sorted(entry.name for entry in (path / CHECKPOINTS).glob("step-*")),
        "has_model": (path / "model").exists() or (path / ".next-model").exists(),
        "settings": settings,
        "versions": run.get("versions", {}),
    }


def _seconds_left(stop: Mapping[str, Any], last: Mapping[str, Any]) -> float | None:
    """Training time left, by the number of steps if it is known, else by the minutes asked for."""
    if stop.get("steps") is None:
        return max(0.0, 60 * stop["minutes"] - last["seconds"]) if stop.get("minutes") else None
    return last["seconds"] / last["step"] * (stop["steps"] - last["step"]) if last["step"] else None


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    if "run" in facts:
        yield from _run_lines(facts["run"])
    if "run" in facts and "model" in facts:
        yield ""
    if "model" in facts:
        yield from _model_lines(facts["model"])
    else:
        yield "model        none yet; there is one after the first validation"


def _run_lines(run: Mapping[str, Any]) -> Iterator[str]:
    yield f"run          {run['path']}  ({_title(run['task'])}, from {', '.join(run['inputs'] or ['?'])})"
    state = "finished" if run["finished"] else f"{duration(run['seconds_left'])} of training left"
    total = f" of {run['steps']:,}" if run["steps"] else ""
    yield f"progress     step {run['step']:,}{total}, epoch {run['epoch']}: {state}"
    if run["last_losses"]:
        yield "losses       " + "  ".join(f"{entry['step']:,}: {entry['loss']:.3f}" for entry in run["last_losses"])
    for entry in run["last_validations"]:
        which = f" (average of the {entry['averaged']})" if "averaged" in entry else ""
        yield f"validation   step {entry['step']:,}{which}: {describe_metrics(entry)}"
    yield f"checkpoints  {', '.join(run['checkpoints']) or 'none'}"


def _model_lines(model: Mapping[str, Any]) -> Iterator[str]:
    config, card = model["config"], model["card"]
    yield f"model        {model['path']}  ({_title(config.get('task'))})"
    yield f"parameters   {model['parameters']:,}"
    yield f"config       {_pairs(config, without=('task',))}"
    metrics = card.get("metrics", {})
    yield f"metrics      {_pairs(metrics, without=('signatures',))}"
    for signature in metrics.get("signatures", []):
        yield f"             {signature}"
    yield f"card         {_pairs(card, without=('metrics', 'versions', 'task', 'parameters'))}"
    yield f"versions     {_pairs(card.get('versions', {}))}"
    yield f"files        {', '.join(f'{name} {_size(size)}' for name, size in model['files'].items())}"


def _title(task: Any) -> str:
    return TASKS[task].title if task in TASKS else str(task)


def _pairs(values: Mapping[str, Any], without: Sequence[str] = ()) -> str:
    shown = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in values.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items() if name not in without and value is not None)


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size / 1e3:,.1f} kB"
