"""The facts of `jumok info` in lines of text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jumok.display.curve import can_draw_blocks, draw_curve
from jumok.display.status import describe_metrics, duration
from jumok.errors import ConfigError, counted
from jumok.tasks import task_of_config

_CURVE_WIDTH = 60
# Fields of the card that have a line of their own, or say again what another line says.
_SHOWN_ELSEWHERE = ("metrics", "versions", "task", "parameters", "created", "note", "all_weights_sha256")


def describe_facts(facts: Mapping[str, Any]) -> Iterator[str]:
    """What is known of a run, of its model, or of both."""
    if "run" in facts:
        yield from _run_lines(facts["run"])
        yield ""
    if "model" in facts:
        yield from _model_lines(facts["model"])
    else:
        yield "model        none yet; there is one after the first validation"


def _run_lines(run: Mapping[str, Any]) -> Iterator[str]:
    yield f"run          {run['path']}  ({_title(run)}, from {', '.join(run['inputs'] or ['?'])})"
    state = "finished" if run["finished"] else f"{duration(run['seconds_left'])} of training left"
    total = f" of {run['steps']:,}" if run["steps"] else ""
    yield f"progress     step {run['step']:,}{total}, epoch {run['epoch']}: {state}"
    if run["last_losses"]:
        yield f"loss         {draw_curve(run['losses'], _CURVE_WIDTH, ascii_only=not can_draw_blocks())}"
        yield "             " + "  ".join(f"{entry['step']:,}: {entry['loss']:.3f}" for entry in run["last_losses"])
    for entry in run["last_validations"]:
        which = f" (average of the {entry['averaged']} checkpoints{_unused(entry)})" if "averaged" in entry else ""
        yield f"validation   step {entry['step']:,}{which}: {describe_metrics(entry)}"
    yield f"checkpoints  {', '.join(run['checkpoints']) or 'none'}"


def _unused(average: Mapping[str, Any]) -> str:
    return "" if average.get("best", True) else ", not better and not used"


def _model_lines(model: Mapping[str, Any]) -> Iterator[str]:
    config, card = model["config"], model["card"]
    copy = ", a runtime-only copy" if model["runtime_only"] else ""
    yield f"model        {model['path']}  ({_title(config)}{copy})"
    yield f"id           {model['id']}"
    yield f"created      {model['created'] or 'not recorded'}"
    if model["note"]:
        yield f"note         {model['note']}"
    yield f"parameters   {model['parameters']:,}" if model["parameters"] is not None else "parameters   not recorded"
    yield f"config       {_pairs(config, without=('task',))}"
    metrics = card.get("metrics", {})
    yield f"metrics      {_pairs(metrics, without=('signatures',))}"
    for signature in metrics.get("signatures", []):
        yield f"             {signature}"
    yield f"card         {_pairs(card, without=_SHOWN_ELSEWHERE)}"
    yield f"export       {_export(model['export'], config)}"
    yield f"versions     {_pairs(card.get('versions', {}))}"
    yield f"files        {_files(model['files'])}"


def _export(export: Mapping[str, Any] | None, config: Mapping[str, Any]) -> str:
    """The CTranslate2 model and its certificate in one line."""
    if export is None:
        return "none; `jumok export` makes one" if _can_be_exported(config) else "none; it runs with PyTorch"
    if "problem" in export:
        return str(export["problem"])
    certificate = export["certificate"]
    probes = counted(certificate.get("sources", 0), "probe")
    ties = f", {certificate['ties']:,} differ by a tie" if certificate.get("ties") else ""
    certified = f"certified: equal outputs for {certificate.get('equal', 0):,} of {probes}{ties}"
    return f"CTranslate2, {certificate.get('quantization')}, {_size(sum(export['files'].values()))}; {certified}"


def _can_be_exported(config: Mapping[str, Any]) -> bool:
    try:
        return task_of_config(config).conversion is not None
    except ConfigError:
        return False


def _title(values: Mapping[str, Any]) -> str:
    """What a config, or a run, says that it is."""
    try:
        return task_of_config(values).title
    except ConfigError:
        return str(values.get("task"))


def _pairs(values: Mapping[str, Any], without: Sequence[str] = ()) -> str:
    shown = {name: value for name, value in values.items() if name not in without and value is not None}
    return ", ".join(f"{name} {_readable(value)}" for name, value in shown.items())


def _readable(value: Any) -> str:
    """A value without the quotes and brackets of a programming language."""
    if isinstance(value, list | tuple):
        return " ".join(map(_readable, value))
    if isinstance(value, dict):
        return "(" + ", ".join(f"{name} {_readable(each)}" for name, each in value.items()) + ")"
    return f"{value:.4g}" if isinstance(value, float) else f"{value}"


def _files(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {_size(size)}" for name, size in sizes.items())


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size / 1e3:,.1f} kB"
