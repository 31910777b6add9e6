"""Checkpoints: the complete state of a training, from which it resumes with the same bits.

    checkpoints/step-00012000/  <group>.safetensors …  state.json  MANIFEST.json  (sharded trainings: blocks.json)

A second checkpoint of the same step is `step-00012000.2`. There is no pickle, so loading cannot run code.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from jumok import files
from jumok.bundle import current_weight_name
from jumok.errors import CheckpointError
from jumok.files import REAL_FILES, FileRecord, FileSystem, UnreadableError
from jumok.training.checkpoint_parts import BLOCKS, BlockSums, Rows, read_rows

STATE = "state.json"

_MAX_STATE_BYTES = 16 << 20
_NAME = re.compile(r"step-(\d{8,})(?:\.(\d+))?")
_GROUP = re.compile(r"[a-z][a-z_]*")
_SUFFIX = ".safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint in memory, compared with its manifest."""

    path: Path
    step: int
    tensors: dict[str, dict[str, Tensor]]
    state: dict[str, Any]


def save_checkpoint(
    directory: Path,
    step: int,
    tensors: Mapping[str, Mapping[str, Tensor]],
    state: Mapping[str, Any],
    *,
    keep: int = 2,
    protect: Collection[int] = (),
    with_blocks: bool = False,
    fs: FileSystem = REAL_FILES,
) -> Path:
    """Write a checkpoint, verify it, and only then remove old ones. Return its path.

    The newest `keep` undamaged ones remain, and those of the steps in `protect`. Later steps are removed: the training
    went back and will reach them differently. Raises `WriteError` or `CheckpointError`, the old ones untouched.
    Of a checkpoint `with_blocks`, a part can be read and verified.
    """
    if keep < 2:
        raise ValueError(f"keep is {keep}: with fewer than 2, one damaged checkpoint would end a training")
    for group in tensors:
        if not _GROUP.fullmatch(group):
            raise ValueError(f"group {group!r}: a name of lower-case letters and _ is expected")
    files.make_directory_durably(fs, directory)
    contents = {"step": step, "groups": sorted(tensors), "state": dict(state)}
    sums = BlockSums() if with_blocks else None
    contents_of: dict[str, bytes | Callable[[], bytes]] = {
        group + _SUFFIX: partial(_format_group, group + _SUFFIX, members, sums) for group, members in tensors.items()
    }
    contents_of[STATE] = files.format_json(contents, limit=_MAX_STATE_BYTES)
    if sums is not None:
        contents_of[BLOCKS] = sums.to_bytes  # called last, when all are known
    size = sum(tensor.nbytes for members in tensors.values() for tensor in members.values())
    path = directory / _unused_name(directory, step)
    files.write_directory_durably(fs, path, contents_of, bytes_needed=size)
    try:
        files.verify_directory(path)
    except UnreadableError as error:
        advice = "The disk does not keep what is written; the earlier checkpoints are untouched."
        raise CheckpointError(f"{error.problem} {advice}") from error
    _prune(fs, directory, path, keep, protect)
    return path


def load_latest(
    directory: Path,
    on_rejected: Callable[[Path, str], None],
    rows: Rows | None = None,
    agree: Callable[[str, str | None], str | None] = lambda _, problem: problem,
) -> Checkpoint | None:
    """Return the newest undamaged checkpoint, or None if there are no checkpoints. `on_rejected` is called with each
    damaged one and the reason: hours of work may be lost with it. Raises `CheckpointError` if none can be used.
    With `rows`, tensors are only the parts that it names. `agree` gets the name of a checkpoint and what is wrong with
    it for this process, and returns what is wrong with it for any process."""
    rejected = []
    for _, _, path in _newest_first(directory):
        found = _checkpoint_or_problem(path, rows)
        problem = agree(path.name, found if isinstance(found, str) else None)
        if problem is None:
            assert not isinstance(found, str)
            return found
        rejected.append(problem)
        on_rejected(path, problem)
    if rejected:
        advice = "Restore it from a copy, or start again with `fresh=True`."
        raise CheckpointError(f"{directory}: no checkpoint can be used. {' '.join(rejected)} {advice}")
    return None


def _checkpoint_or_problem(path: Path, rows: Rows | None) -> Checkpoint | str:
    """The checkpoint, or what is wrong with it."""
    try:
        return _read_checkpoint(path, rows)
    except UnreadableError as error:
        if not error.damaged:  # an older one would discard what another version or user can still read
            raise CheckpointError(str(error)) from error
        return error.problem


def newest_step(directory: Path) -> int | None:
    """Return the step of the newest checkpoint, damaged or not; None if there are no checkpoints."""
    return next((named.step for named in _newest_first(directory)), None)


def load_group(directory: Path, step: int, group: str) -> dict[str, Tensor] | None:
    """Return one group of tensors of the checkpoint of a step; None if there is none or it is damaged."""
    for named in _newest_first(directory):
        if named.step == step:
            try:
                return _read_group(named.path, group, files.read_manifest(named.path))
            except UnreadableError:
                continue
    return None


def flatten_optimizer(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the state of an optimizer as named tensors and JSON, for `restore_optimizer`."""
    tensors: dict[str, Tensor] = {}
    return tensors, {"state_dict": _encode(optimizer.state_dict(), "optimizer", tensors)}


def restore_optimizer(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], state: Mapping[str, Any]
) -> None:
    """Load what `flatten_optimizer` returned into an optimizer of the same parameters. The tensors are not copied."""
    try:
        optimizer.load_state_dict(_decode(state["state_dict"], tensors))
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"the optimizer in the checkpoint does not fit this model ({error}).") from error


def _encode(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """Return JSON in which tensors, tuples and dicts are objects with one key, the name of their type."""
    if isinstance(value, Tensor):
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, tuple):
        return {"tuple": _encode(list(value), name, tensors)}
    if isinstance(value, list):
        return [_encode(item, f"{name}.{index}", tensors) for index, item in enumerate(value)]
    if isinstance(value, dict):
        return {"dict": [[key, _encode(item, f"{name}.{key}", tensors)] for key, item in value.items()]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{name}: a {type(value).__name__} cannot be saved")


def _decode(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_decode(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "tuple":
        return tuple(_decode(content, tensors))
    return {key: _decode(item, tensors) for key, item in content}


class _Named(NamedTuple):
    """A checkpoint by its name; ordered by step, then by number within the step."""

    step: int
    number: int
    path: Path


def _newest_first(directory: Path) -> list[_Named]:
    if not directory.is_dir():
        return []
    matches = [(_NAME.fullmatch(path.name), path) for path in directory.iterdir()]
    return sorted((_Named(int(m[1]), int(m[2] or 1), path) for m, path in matches if m), reverse=True)


def _unused_name(directory: Path, step: int) -> str:
    numbers = [named.number for named in _newest_first(directory) if named.step == step]
    return f"step-{step:08d}" + (f".{max(numbers) + 1}" if numbers else "")


def _prune(fs: FileSystem, directory: Path, newest: Path, keep: int, protect: Collection[int]) -> None:
    later_to_older = _newest_first(directory)
    position = [named.path for named in later_to_older].index(newest)
    if position == 0 and len(later_to_older) <= keep:
        return
    kept = [later_to_older[position]]
    for named in later_to_older[position + 1 :]:
        protected = named.step in protect and all(other.step != named.step for other in kept)
        # A damaged one must not count as kept, so each is verified again.
        if (len(kept) < keep or protected) and _is_undamaged(named.path):
            kept.append(named)
    for named in later_to_older:
        if named not in kept:
            files.remove(fs, files.set_aside(fs, named.path))


def _is_undamaged(path: Path) -> bool:
    try:
        files.verify_directory(path)
    except UnreadableError:
        return False
    return True


def _format_group(name: str, members: Mapping[str, Tensor], sums: BlockSums | None) -> bytes:
    data = _format_tensors(members)
    return data if sums is None else sums.add(name, data)


def _format_tensors(members: Mapping[str, Tensor]) -> bytes:
    """Return safetensors bytes. Tied tensors share memory, which safetensors refuses: each is written as a copy."""
    seen: set[int] = set()
    separate = {}
    for name, tensor in members.items():
        dense = tensor.detach().cpu().contiguous()
        storage = dense.untyped_storage().data_ptr()
        separate[name] = dense.clone() if storage in seen else dense
        seen.add(storage)
    return safetensors.torch.save(separate)


def _read_checkpoint(path: Path, rows: Rows | None) -> Checkpoint:
    records = files.read_manifest(path)
    if STATE not in records:
        raise UnreadableError(path / STATE, "is not in the manifest")
    contents = files.parse_json_object(
        files.read_verified(path / STATE, records[STATE], _MAX_STATE_BYTES), path / STATE
    )
    groups = sorted(name.removesuffix(_SUFFIX) for name in records if name.endswith(_SUFFIX))
    match = _NAME.fullmatch(path.name)
    if set(contents) != {"step", "groups", "state"} or contents["groups"] != groups or not match:
        raise UnreadableError(path / STATE, "does not belong to the files beside it")
    if contents["step"] != int(match[1]):
        raise UnreadableError(path / STATE, f"is of step {contents['step']}, not of the step in the directory's name")
    tensors = {group: _read_group(path, group, records, rows) for group in groups}
    return Checkpoint(path, contents["step"], tensors, contents["state"])


def _read_group(
    path: Path, group: str, records: Mapping[str, FileRecord], rows: Rows | None = None
) -> dict[str, Tensor]:
    where = path / (group + _SUFFIX)
    if where.name not in records:
        raise UnreadableError(where, "is not in the manifest")
    if rows is not None and BLOCKS in records:
        loaded = read_rows(path, group, records, _with_current_names(rows))
    else:
        loaded = _read_all(where, records[where.name])
        if rows is not None:
            loaded = {
                name: _part(tensor, _with_current_names(rows)(group, name, tensor.shape))
                for name, tensor in loaded.items()
            }
    # Copied into memory that torch aligns, as in an uninterrupted training: rounding may depend on alignment.
    return {current_weight_name(name): loaded.pop(name).clone() for name in list(loaded)}


def _part(tensor: Tensor, rows: slice | None) -> Tensor:
    return tensor if rows is None else tensor[rows]


def _with_current_names(rows: Rows) -> Rows:
    return lambda group, name, shape: rows(group, current_weight_name(name), shape)


def _read_all(where: Path, record: FileRecord) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load(files.read_verified(where, record, record.size))
    except safetensors.SafetensorError as error:
        raise UnreadableError(where, f"is not a safetensors file ({error})") from error
