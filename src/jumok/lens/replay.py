"""Attention over the course of a training: each validation records what the model attends to in the same sentences."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as write_tensors

from jumok.engines.torch_models import padded
from jumok.errors import InputError, UnreadableError
from jumok.files import read_bounded
from jumok.lens.traces import Trace
from jumok.lens.tracing import Recording
from jumok.tokenizer import BOS, EOS

DIRECTORY = "attention"  # in a run directory: step-00000400.safetensors …
LONGEST = 40  # tokens of a side; a longer sentence is not recorded
LARGEST_FILE = 1 << 26  # bytes


def record_attention(engine: Any, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> bytes:
    """The attention weights [H, query, key] of a translator for pairs of source and target ids, as float16: one
    safetensors file with names such as `0/decoder.1.cross`, `0/source` and `0/target`."""
    tensors: dict[str, Any] = {}
    for number, (source, target) in enumerate(pairs):
        if max(len(source), len(target)) >= LONGEST:
            continue
        rows = [*source, EOS], [BOS, *target]
        recording = Recording(engine)
        recording.run(lambda rows=rows: engine.model.states(*(padded([row], engine.device) for row in rows)), LONGEST)
        trace = Trace("translator", "", "", recording.tensors, {"encoder": (), "decoder": ()})
        found = trace.find("*.weights").items()
        for name, weights in found:
            tensors[f"{number}/{name.removesuffix('.weights')}"] = weights.values.astype(np.float16)
        if found:  # a recurrent network may have no attention
            tensors |= {f"{number}/source": np.array(rows[0]), f"{number}/target": np.array(rows[1])}
    return write_tensors(tensors) if tensors else b""


def recorded_steps(run: Path, log: Sequence[dict[str, Any]]) -> list[int]:
    """The steps of the validations whose attention is there, in order."""
    steps = sorted({int(entry["step"]) for entry in log if entry["event"] == "valid"})
    return [step for step in steps if _file(run, step).is_file()]


def recorded_attention(run: Path, step: int, tokenizer: Any) -> list[dict[str, Any]]:
    """The sentences of a validation: tokens of both sides, and for each attention its shape and float16 in base64."""
    path = _file(run, step)
    if not path.is_file():
        raise InputError(f"The attention of step {step} was not recorded.")
    try:
        tensors = read_tensors(read_bounded(path, LARGEST_FILE))
    except (SafetensorError, ValueError) as error:
        raise UnreadableError(path, f"is damaged ({error})") from error
    found = []
    for number in sorted({name.split("/")[0] for name in tensors}):
        own = {name.split("/")[1]: values for name, values in tensors.items() if name.startswith(f"{number}/")}
        source, target = (tokenizer.pieces(own.pop(side).tolist()) for side in ("source", "target"))
        arrays = {name: {"shape": values.shape, "data": _encoded(values)} for name, values in sorted(own.items())}
        found.append({"number": int(number), "source": source, "target": target, "arrays": arrays})
    return found


def _encoded(values: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f2").tobytes()).decode("ascii")


def _file(run: Path, step: int) -> Path:
    return run / DIRECTORY / f"step-{step:08d}.safetensors"
