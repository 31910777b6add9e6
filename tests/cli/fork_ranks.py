"""Runs the trainings of ranks.py. Their processes are forks of this one: see preloading.py.

Beside what every training leaves, process R leaves `lines-R.jsonl`, the lines of the corpus it learned from in each of
its updates, `memory-R.safetensors`, its weights and moments in the end (its parts of them, if they are sharded), and
`read-R`, the number of bytes of tensors that it read when it resumed a sharded training.
"""

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from preloading import preload
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from jumok.cli.app import run
from jumok.files import blocks
from jumok.files.blocks import VerifiedBlocks
from jumok.recipes import image_tokens, training
from jumok.recipes.recipe import Recipe
from jumok.training import checkpoint, distributed, trainer
from jumok.training.checkpoint import flatten_optimizer
from jumok.training.gradient_sums import GradientSums
from jumok.training.trainer import Trainer

blocks.BLOCK_BYTES = 256  # these models have few weights
distributed.RANK_0_TIMEOUT = timedelta(seconds=20)  # less than the tests allow
image_tokens.REVIVED_EVERY, image_tokens.REVIVAL_PATCHES = 2, 1  # codes move in short trainings too
# Many messages in every backward pass, as those of models of another size: all weights of these would be one.
distributed.GradientSums = partial(GradientSums, bucket_bytes=1 << 12)  # type: ignore[misc,assignment]
LATE_SECONDS, ENTER_SECONDS = 0.5, 0.05  # to load a checkpoint; for the others to enter a collective
# What FSDP sums gradients with, and what replicas do.
COLLECTIVES = [name for name in ("reduce_scatter_single", "reduce_scatter_tensor", "all_reduce") if hasattr(dist, name)]


class Rank:
    """One process of a job. Rank 0 is forked last, so it knows the process ids of the others."""

    def __init__(self, job: dict[str, Any], rank: int, process_ids: dict[int, int]) -> None:
        self.job, self.rank, self.process_ids = job, rank, process_ids
        self.out = Path(job["out"])
        self.fault = job["fault"] or {"moment": None, "rank": None, "at": None}
        self.bytes_read = 0
        self.in_collective = False  # whether the next one is the last

    def is_hit(self, moment: str, step: int) -> bool:
        """Whether the fault happens to this process, now."""
        fault = self.fault
        return bool(fault["moment"] == moment and fault["rank"] == self.rank and fault["at"] == step)

    def kill_victim(self, moment: str, step: int) -> None:
        """In rank 0: end the process that the fault names, if this is the moment."""
        if self.fault["moment"] == moment and self.fault["at"] == step:
            os.kill({**self.process_ids, 0: os.getpid()}[self.fault["rank"]], self.fault["signal"])

    def train(self) -> int:
        """Run the command with everything observed; returns its exit code."""
        Trainer._step = self.observed_step(Trainer._step)  # type: ignore[method-assign]
        Trainer._finish = self.observed_end(Trainer._finish)  # type: ignore[method-assign]
        Trainer._measure = self.disturbed_validation(Trainer._measure)  # type: ignore[method-assign]
        trainer.load_latest = self.disturbed_load(trainer.load_latest)
        VerifiedBlocks._block = self.counted_read(VerifiedBlocks._block)  # type: ignore[method-assign]
        checkpoint._format_tensors = self.disturbed_save(checkpoint._format_tensors)
        if self.rank > 0:
            training.new_model = started_elsewhere(training.new_model)
        if self.job["on_card"]:
            plug_in_pretend_card()
        if not self.job["exports"]:
            Recipe.export = lambda *_: {}  # type: ignore[method-assign]
        for name in COLLECTIVES:
            setattr(dist, name, self.disturbed_collective(getattr(dist, name)))
        return run(["train", self.job["task"], *self.job["arguments"], "-o", str(self.out), "--quiet"])

    def observed_step(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def observed(training: Trainer, window: list[Any], *rest: Any) -> Any:
            at = training.progress.step
            if self.is_hit("step", at):
                signal.raise_signal(self.fault["signal"])
            self.in_collective = self.is_hit("collective", at)
            for moment in ("loss", "gradient"):
                if self.is_hit(moment, at):
                    training.gradients.loss = not_a_number(training.gradients.loss, moment)
            lines = [int(line) for _, batch in window for line in batch.lines]
            with open(training.run.path / f"lines-{self.rank}.jsonl", "a") as file:
                print(json.dumps([at + 1, lines]), file=file)
            result = step(training, window, *rest)
            if self.is_hit("moments", at):
                spoil_moments(training.optimizer)
            return result

        return observed

    def observed_end(self, finish: Callable[[Trainer], None]) -> Callable[[Trainer], None]:
        def observed(training: Trainer) -> None:
            groups = {"model": training.model.state_dict(), "optimizer": flatten_optimizer(training.optimizer)[0]}
            parts = {
                f"{group}/{name}": local(each) for group, members in groups.items() for name, each in members.items()
            }
            save_file(parts, training.run.path / f"memory-{self.rank}.safetensors")
            finish(training)

        return observed

    def disturbed_validation(self, measure: Callable[[Trainer], Any]) -> Callable[[Trainer], Any]:
        def disturbed(training: Trainer) -> Any:
            validate = training.validate

            def validated() -> Any:
                self.kill_victim("validation", training.progress.step)
                return validate()

            training.validate = validated
            try:
                return measure(training)
            finally:
                training.validate = validate

        return disturbed

    def disturbed_save(self, format_tensors: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
        """The optimizer's tensors are written after the model's: the checkpoint is begun and not complete."""

        def disturbed(members: dict[str, Tensor]) -> bytes:
            steps = [int(tensor) for name, tensor in members.items() if name.endswith(".step")]
            if steps:
                self.kill_victim("save", steps[0])
            return format_tensors(members)

        return disturbed

    def counted_read(self, read: Callable[..., bytes]) -> Callable[..., bytes]:
        def counted(file: VerifiedBlocks, number: int) -> bytes:
            is_new = number != file._last[0]
            block = read(file, number)
            self.bytes_read += len(block) * is_new
            (self.out / f"read-{self.rank}").write_text(str(self.bytes_read))
            return block

        return counted

    def disturbed_load(self, load: Callable[..., Any]) -> Callable[..., Any]:
        def disturbed(*arguments: Any) -> Any:
            if self.job["late"] and self.rank > 0:
                time.sleep(LATE_SECONDS)
            return None if self.is_hit("checkpoint", 0) else load(*arguments)

        return disturbed

    def disturbed_collective(self, collective: Callable[..., Any]) -> Callable[..., Any]:
        def disturbed(*arguments: Any, **options: Any) -> Any:
            if self.in_collective:
                time.sleep(ENTER_SECONDS)
                collective(*arguments, **{**options, "async_op": True})
                signal.raise_signal(self.fault["signal"])
            return collective(*arguments, **options)

        return disturbed


def plug_in_pretend_card() -> None:
    """In this process only."""
    sys.path.append(str(Path(__file__).parent.parent))
    import pretend_card

    pretend_card.install().present = True
    torch.tensor = pretend_card.tensor


def not_a_number(loss: Callable[[Any], Tensor], moment: str) -> Callable[[Any], Tensor]:
    """The loss function, with NaN as its value or only as its gradient."""

    def poisoned(batch: Any) -> Tensor:
        value = loss(batch)
        if moment == "loss":
            return value * torch.nan
        value.register_hook(lambda gradient: gradient * torch.nan)
        return value

    return poisoned


def spoil_moments(optimizer: torch.optim.Optimizer) -> None:
    """Make this process's part of some of Adam's moments infinite."""
    moment = next(iter(optimizer.state.values()))["exp_avg_sq"]
    (moment.to_local() if isinstance(moment, DTensor) else moment).fill_(torch.inf)


def local(tensor: Tensor) -> Tensor:
    """The part of a tensor that this process holds, as a copy."""
    return (tensor.to_local() if isinstance(tensor, DTensor) else tensor).detach().cpu().clone()


def start(job: dict[str, Any], rank: int, port: int, process_ids: dict[int, int]) -> int:
    """Fork a process of a job; returns its id."""
    child = os.fork()
    if child:
        return child
    torch.set_num_threads(job["threads"])
    if job["threads"] == 1:
        share_a_core()
    if job["processes"] > 1:
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(job["processes"])}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.dup2(os.open(error_file(job, rank), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os._exit(Rank(job, rank, process_ids).train())


def share_a_core() -> None:
    """Processes that wait for each other all the time are quicker on one core than on two that others use too: each
    goes on as soon as the other waits."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def started_elsewhere(new_model: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    """Other weights than those of rank 0, as other hardware may fit them: all must begin with those of rank 0."""

    def other_model(*arguments: Any) -> nn.Module:
        model = new_model(*arguments)
        with torch.no_grad():
            next(model.parameters()).add_(1e-2)
        return model

    return other_model


def error_file(job: dict[str, Any], rank: int) -> Path:
    """Where a process writes its standard error."""
    return Path(f"{job['out']}-{rank}.err")


def train_in_turn(jobs: list[dict[str, Any]], out: int) -> None:
    """Run the jobs one after the other, and write to a descriptor how each ended."""
    for job in jobs:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        began, ranks = time.monotonic(), range(job["processes"])
        process_ids: dict[int, int] = {}
        for rank in reversed(ranks):
            process_ids[rank] = start(job, rank, port, process_ids)
        codes = [os.waitstatus_to_exitcode(os.waitpid(process_ids[rank], 0)[1]) for rank in ranks]
        errors = [error_file(job, rank).read_text() for rank in ranks]
        outcome = {"codes": codes, "errors": errors, "seconds": time.monotonic() - began}
        os.write(out, json.dumps(outcome).encode() + b"\n")


def main() -> None:
    """Run the rows of jobs that the command line describes, all rows at the same time, and print the outcomes of each
    in a line."""
    preload("jumok.training.sharded", "torch._dynamo")  # which FSDP imports too
    rows: list[tuple[int, int]] = []
    for jobs in json.loads(sys.argv[1]):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            train_in_turn(jobs, writing)
            os._exit(0)
        os.close(writing)
        rows.append((child, reading))
    for child, reading in rows:
        with open(reading) as outcomes:
            print(json.dumps([json.loads(line) for line in outcomes]), flush=True)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
