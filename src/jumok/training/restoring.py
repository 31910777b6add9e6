"""From a checkpoint back into a model, its optimizer and the progress of a training."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from jumok.errors import CheckpointError
from jumok.training.checkpoint import Checkpoint, restore_optimizer
from jumok.training.distributed import ProcessGroup
from jumok.training.progress import Epochs, Progress


def restore_progress(checkpoint: Checkpoint, best_before: float | None, highest: float) -> Progress:
    """The progress of the checkpoint. `best_before` is a score to beat that no checkpoint knows of. Scores above
    `highest` are of an earlier version, which measured something else: they are forgotten."""
    progress = Progress(**checkpoint.state["progress"])
    scores = [score for score in (progress.best_score, best_before) if score is not None and score <= highest]
    progress.best_score = max(scores, default=None)
    progress.scores = {step: score for step, score in progress.scores.items() if score <= highest}
    return progress


def require_same_checkpoint(names: Sequence[str | None]) -> None:
    """Refuse to go on if the processes do not all continue from the same checkpoint (None: from the start)."""
    if len(set(names)) > 1:
        read = ", ".join(f"process {rank}: {name or 'none'}" for rank, name in enumerate(names))
        raise CheckpointError(
            f"The processes of this training did not read the same checkpoint ({read}). Give all of them the same run "
            "directory, on a disk they can all read, and start them again."
        )


def agree_on_checkpoint(group: ProcessGroup, name: str | None, problem: str | None = None) -> str | None:
    """Tell all processes which checkpoint this one has read (None: there is none) and what is wrong with it; returns
    what is wrong with it for any process. An error if they have read different ones. A collective."""
    told = group.all_gather([name, problem])
    require_same_checkpoint([name for name, _ in told])
    return next((problem for _, problem in told if problem is not None), None)


def require_same_order(checkpoint: Checkpoint, epochs: Epochs, *, allowed: bool) -> bool:
    """Whether the epoch that was begun has the same batches as before. If not and not `allowed`, an error."""
    same = bool(checkpoint.state["order"] == epochs.digest(checkpoint.state["progress"]["epoch"]))
    if not same and not allowed:
        raise CheckpointError(
            f"{checkpoint.path}: the data is not what it was when this training began, so it cannot be resumed. "
            "Restore the old files, start again with `fresh=True`, or continue with `continue_with_changes=True`."
        )
    return same


def restore_weights(model: nn.Module, checkpoint: Checkpoint, group: ProcessGroup) -> None:
    """Load the weights; of a sharded model, this process's part, which is all that it has read."""
    try:
        weights, own = checkpoint.tensors["model"], model.state_dict()
        parts = {name: group.with_rows(weight, own.get(name, weight)) for name, weight in weights.items()}
        model.load_state_dict(parts)
    except RuntimeError as error:
        raise CheckpointError(
            f"{checkpoint.path}: was written by another version or for another model "
            f"({str(error).splitlines()[-1].strip()}). Continue with that version, or start again with `fresh=True`."
        ) from error


def restore_optimizer_state(optimizer: torch.optim.Optimizer, checkpoint: Checkpoint, group: ProcessGroup) -> None:
    """Load the moments from the checkpoint; the optimizer's settings stay those of this training."""
    settings = [{**param_group} for param_group in optimizer.param_groups]
    restore_optimizer(optimizer, checkpoint.tensors["optimizer"], checkpoint.state["optimizer"])
    for param_group, current in zip(optimizer.param_groups, settings, strict=True):
        param_group.update(current)
    for parameter, moments in optimizer.state.items():
        tensors = {name: moment for name, moment in moments.items() if isinstance(moment, Tensor)}
        moments.update({name: group.with_rows(moment, parameter) for name, moment in tensors.items()})
