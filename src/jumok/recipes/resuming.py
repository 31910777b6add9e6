"""Resuming a training: whether it is the same one, whether it is finished, and what may change."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from jumok.data.examples import InputEncoder
from jumok.errors import BundleError, ChangedDataError, CheckpointError
from jumok.model.config import BaseConfig
from jumok.tasks import ENCODERS, resolve
from jumok.training.records import diff_settings, read_log
from jumok.training.run_directory import RunDirectory
from jumok.training.settings import Settings


def require_same(run: Path, before: Mapping[str, Any], asked: Settings) -> None:
    """Refuse other settings than the training was started with, and show which."""
    started = Settings.from_dict(before).on_hardware_of(asked)  # settings new since: their default
    changes = diff_settings(started.to_dict(), asked.to_dict())
    if changes:
        raise CheckpointError(
            f"{run}: this training was started with other settings:\n  " + "\n  ".join(changes) + "\n"
            "Give the old ones to resume, `fresh=True` to start again, or `continue_with_changes=True` to continue "
            "with the new ones."
        )


def require_same_data_settings(run: Path, before: Mapping[str, Any], asked: Settings) -> None:
    """Refuse another vocabulary, and another seed: it would hold out examples that were trained on."""
    now = asked.to_dict()
    fixed = [{"seed": values["seed"], "tokenizer.size": values["tokenizer"]["size"]} for values in (before, now)]
    _require_no_changes(run, diff_settings(*fixed))


def require_same_sizes(run: Path, before: BaseConfig, now: BaseConfig) -> None:
    """Refuse a model that the weights do not fit; only dropout can change."""
    sizes = [
        {name: value for name, value in config.to_dict().items() if not name.endswith("dropout")}
        for config in (before, now)
    ]
    _require_no_changes(run, [f"model.{line}" for line in diff_settings(*sizes)])


def require_same_meaning(run: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse data that gives other names to what was learned."""
    if before:  # a run of an older version does not say
        _require_no_changes(run, diff_settings(before, now))


def _require_no_changes(run: Path, changes: list[str]) -> None:
    if changes:
        raise CheckpointError(
            f"{run}: the model trained so far does not fit these changes:\n  " + "\n  ".join(changes) + "\n"
            "Give the old values, or start again with `fresh=True` or in another directory."
        )


def described_data(facts: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """What run.json says of the data: its files, the number of examples, and since when it is trained on."""
    if before and before["fingerprint"] == facts["fingerprint"]:
        return dict(before["data"])
    # A store that an older version prepared does not name its files.
    described = {"files": facts.get("files", []), "valid_files": facts.get("valid_files", [])}
    since = datetime.now().isoformat(sep=" ", timespec="minutes")
    reading = {"reading": facts.get("reading", {})}
    return {**described, **reading, "kind": facts["kind"], "examples": facts["examples"], "since": since}


def changed_data_explained(
    run: Path,
    before: Mapping[str, Any],
    error: ChangedDataError,
    why_read_otherwise: Callable[[Mapping[str, Any]], str],
) -> ChangedDataError:
    """The error with what the run was trained on, and what is different now. If the files are the same,
    `why_read_otherwise` says it; it gets how they were read."""
    data = before["data"]
    facts = [] if data["examples"] is None else [f"{data['examples']:,} {data['kind']}"]
    facts += [f"since {data['since']}"] if data["since"] else []
    described = f" ({', '.join(facts)})" if facts else ""
    names = [file["name"] for file in data["files"]] or before["inputs"]
    valid = [file["name"] for file in data["valid_files"]]
    validated = f", validated on {', '.join(valid)}" if valid else ""
    reading = data.get("reading", {})
    changes = _changes([*data["files"], *data["valid_files"]], error.files) or why_read_otherwise(reading)
    return ChangedDataError(
        error.files,
        f"{run}: was trained on other data: {', '.join(names)}{described}{validated}"
        f"{_reading_explained(reading)}.\n"
        f"{changes}\n"
        "Give the old files to resume, choose another directory with `out=`, start again with `fresh=True`, or train "
        "the model further on the new data with `continue_with_changes=True`.",
    )


def _changes(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> str:
    """Which files are given instead of others, or have changed since; empty if they are the same."""
    if [file["name"] for file in before] != [file["name"] for file in now]:
        return f"Now given: {', '.join(file['name'] for file in now)}."
    changed = [
        f"{new['name']} ({old['bytes']:,} bytes then, {new['bytes']:,} now)"
        for old, new in zip(before, now, strict=True)
        if old["sha256"] != new["sha256"]
    ]
    return f"Changed since: {', '.join(changed)}." if changed else ""


def _reading_explained(reading: Mapping[str, Any]) -> str:
    """How the files were read, as the arguments that say so."""
    arguments = (
        f"`{name}={tuple(value) if isinstance(value, list) else json.dumps(value, ensure_ascii=False)}`"
        for name, value in reading.items()
    )
    return f", read with {', '.join(arguments)}" if reading else ""


def sizes_of_the_model(
    asked: Settings, before: Mapping[str, Any], config: Mapping[str, Any], *, predicts_tokens: bool
) -> Settings:
    """What was asked for, with the sizes, the optimizer and the loss of the existing model, which has this config,
    where none were: the corpus, or another version of Jumok, may suggest others now."""
    sizes = ("encoder_layers", "decoder_layers", "d_model", "d_ff", "rotary")
    names = (*sizes, "window", "ngrams", "ngram_unit", "ngram_fingerprints")
    own = {name: config[name] for name in names if name in config}
    kept = own | {name: value for name, value in before["model"].items() if name != "dropout"}
    kept = {f"model.{name}": value for name, value in kept.items()}
    kept["optimizer.name"] = before["optimizer"].get("name") or "adam"
    if kept["optimizer.name"] == "muon" and asked.optimizer.name != "adam":
        kept["optimizer.every"] = before["optimizer"].get("every") or 1
    if predicts_tokens:
        kept["loss.candidates"] = before["loss"].get("candidates") or config["vocabulary"]
    if (diversify := before.get("augment", {}).get("diversify")) is not None:
        kept["augment.diversify"] = diversify
    kept["init.embeddings"] = before.get("init", {}).get("embeddings", "random")  # what it began with
    kept = {name: value for name, value in kept.items() if not asked.has(name)}
    return asked.changed(kept | ({"preset": before["preset"]} if asked.preset == "auto" else {}))


def with_recorded_stages(asked: Settings, before: Mapping[str, Any] | None) -> Settings:
    """What was asked for, with the stages that the run has been trained in, if it was begun before."""
    if before is None or asked.has("augment.diversify"):
        return asked
    recorded = Settings.from_dict(before["settings"]).augment.diversify
    return asked.changed({"augment.diversify": bool(recorded)})


def already_finished(run: Path, limits: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The last entry of the log if it says that a training within these limits came to its end."""
    last = _last_if_done(run)
    if last is None:
        return None
    enough_steps = "steps" in limits and last["step"] >= limits["steps"]
    return last if enough_steps or last.get("limits") == limits else None


def best_before(run: Path, record: Mapping[str, Any] | None, *, resumed: bool) -> float | None:
    """The best score of a finished training that is now continued with changes. An average of checkpoints, of which no
    checkpoint knows, may have reached it. It is kept in run.json, because the end of the log will be rewritten."""
    last = _last_if_done(run)
    if resumed and last is not None:
        score: float | None = last["best_score"]
        return score
    return record.get("best_before") if record else None


def _last_if_done(run: Path) -> Mapping[str, Any] | None:
    """The last entry of the log if it is `done` and complete."""
    last = read_log(run)[-1:]
    is_done = bool(last) and last[0]["event"] == "done"
    return last[0] if is_done and isinstance(last[0].get("best_score", ""), float | int | None) else None


def kept_encoder(run: RunDirectory, name: str) -> InputEncoder | None:
    """The encoder of the model trained so far; None if there is no checkpoint."""
    if not run.checkpoints.is_dir() or not any(run.checkpoints.iterdir()):
        return None
    entry = ENCODERS[name]
    for file in (run.model / entry.file, run.store / entry.file):
        try:
            encoder: InputEncoder = resolve(entry.reference).from_bytes(file.read_bytes(), origin=str(file))
            return encoder
        except (BundleError, OSError):
            continue
    raise CheckpointError(f"{run.path}: the encoder of this training is gone. Start again with `fresh=True`.")
