"""Trainings of several processes that are forks of one (see fork_ranks.py), and what may happen to them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
from commands import CLASSIFIER, DRAWN, LM, SMALL, SOURCE, train_arguments, write_corpus

from jumok.pictures import png_bytes

FORKER = Path(__file__).with_name("fork_ranks.py")
STEPS = 50
# The same update from three small batches, whoever has them, the last of an epoch from fewer.
SHARED = ["--set=batch.tokens=128", "--set=batch.accumulate=3", "--set=log.every=1"]
SHARED += ["--set=validate.every=10", "--set=validate.sentences=3", "--set=checkpoint.every=10"]
BY_MUON = "--set=optimizer.name=muon"  # as translators and classifiers of pictures learn, if nothing else is given
UNEVEN = "--set=batch.tokens=120"  # the classifier's corpus is a multiple of three batches of 128
# Tensors of more than 32,768 numbers: PyTorch divides the work on smaller ones among fewer threads.
LARGER = ["--set=model.d_model=64", "--set=batch.tokens=640", "--set=batch.accumulate=2", "--set=checkpoint.every=3"]
THREADED_STEPS = 8
TASKS = ("translator", "classifier", "lm")
PAINTER_STEPS = 4
# Classifiers of pictures learn by Muon. A batch is three pictures, an update two batches.
MUON_STEPS = 8
MUON = ["--set=batch.tokens=3", "--set=batch.accumulate=2", "--set=log.every=1", "--set=validate.every=100"]
MUON += ["--set=model.dropout=0"]  # a card draws other random numbers
OVERFLOWS = 4  # steps in float16 until the loss scale is small enough
PAINTING = [f"--steps={PAINTER_STEPS}", "--set=model.codes=24", "--set=batch.accumulate=2", "--set=validate.every=2"]


@dataclass(frozen=True)
class Fault:
    """What happens to process `rank` after `at` updates.

    A signal: in the `step` that follows, before its gradients are computed; in the `collective` that sums them, which
    the others have entered; while rank 0 is in the midst of the `validation` or `save` of step `at`.
    Not a number: its `loss`, or only the `gradient` of a finite loss; or the `moments` of the optimizer after it.
    Or it finds no `checkpoint` when the training resumes.
    """

    moment: Literal["step", "collective", "validation", "save", "loss", "gradient", "moments", "checkpoint"]
    rank: int
    at: int = 0
    signal: int = signal.SIGKILL


@dataclass(frozen=True)
class Job:
    """A training in the run directory `out`."""

    out: str
    processes: int
    arguments: Sequence[str]
    fault: Fault | None = None
    task: str = "translator"
    threads: int = 1
    late: bool = False  # all but rank 0 are late when they load the checkpoint
    exports: bool = True  # the model for CTranslate2 too, in the end
    on_card: bool = False  # the pretend one


@dataclass(frozen=True)
class Outcome:
    """For each process its exit code and what it wrote to standard error; and how long all took."""

    codes: list[int]
    errors: list[str]
    seconds: float


def write_corpora(directory: Path) -> None:
    """a.en and a.ko, and a.tsv with labels."""
    write_corpus(directory)
    sentences = (directory / "a.en").read_text().splitlines()
    (directory / "a.tsv").write_text("".join(f"{line.split()[1]}\t{line}\n" for line in sentences))
    write_noise(directory)


def write_noise(directory: Path) -> None:
    """captions.tsv, labels.tsv and pictures/: no patch of 4 × 4 pixels is like another."""
    noise = np.random.default_rng(1).integers(0, 256, (30, 16, 16), np.uint8)
    (directory / "pictures").mkdir()
    for number, pixels in enumerate(noise):
        (directory / "pictures" / f"{number}.png").write_bytes(png_bytes(pixels[..., None]))
    captions = (f"{number}.png\tnoise {number % 5}\n" for number in range(len(noise)))
    (directory / "captions.tsv").write_text("".join(captions))
    labels = (f"pictures/{number}.png\t{'even' if number % 2 else 'odd'}\n" for number in range(len(noise)))
    (directory / "labels.tsv").write_text("path\tlabel\n" + "".join(labels))


def arguments_of(task: str, directory: Path, how: str = "one") -> list[str]:
    """A training of `STEPS` steps."""
    shard = ["--shard"] if how == "sharded" else []
    if task == "translator":
        return [*train_arguments(directory, "unused", STEPS), *SHARED, *shard, BY_MUON, *DRAWN]
    file, options = {"classifier": ("a.tsv", [*CLASSIFIER, *SHARED, UNEVEN]), "lm": ("a.en", [*LM, *SHARED])}[task]
    return [str(directory / file), f"--steps={STEPS}", *options, *shard]


def uninterrupted(directory: Path) -> Iterator[tuple[str, Job]]:
    """Each task by one, by two, and by two that share the model."""
    for task, (how, count) in product(TASKS, (("one", 1), ("two", 2), ("sharded", 2))):
        yield f"{task} {how}", Job(f"{task}-{how}", count, arguments_of(task, directory, how), task=task)


def painting(directory: Path) -> Iterator[tuple[str, Job]]:
    """Both stages of a painter, by one, by two, by two that share the model, and by two that are stopped in each."""
    options = [*SMALL, *PAINTING]
    files = [str(directory / "captions.tsv"), str(directory / "pictures")]
    for how, count in (("one", 1), ("two", 2), ("sharded", 2)):
        shard = ["--shard"] if how == "sharded" else []
        yield f"painter {how}", Job(f"painter-{how}", count, [*files, *options, *shard], task="painter")
    for name, fault in (("first stop", 1), ("second stop", 1), ("resumed", None)):
        stop = Fault("step", 1, fault, signal.SIGTERM) if fault else None
        yield f"painter {name}", Job("painter-stopped", 2, [*files, *options], stop, task="painter")


def diversifying(directory: Path) -> Iterator[tuple[str, Job]]:
    """Both stages of a translator that learns from translations too, by one, two, and two that share the model."""
    for how, count in (("one", 1), ("two", 2), ("sharded", 2)):
        arguments = [*arguments_of("translator", directory, how), "--steps=20", "--set=augment.diversify=true"]
        yield f"diversified {how}", Job(f"diversified-{how}", count, arguments)


def in_bfloat16(directory: Path) -> Iterator[tuple[str, Job]]:
    """A few steps by one process, by two, and by two that share the model."""
    for how, count in (("one", 1), ("two", 2), ("sharded", 2)):
        arguments = [*arguments_of("translator", directory, how), "--steps=8", "--precision=bfloat16"]
        yield f"bfloat16 {how}", Job(f"bfloat16-{how}", count, arguments, exports=False)


def by_muon(directory: Path) -> Iterator[tuple[str, Job]]:
    """Classifiers of pictures, by one, by two, by two that share the model, by changing numbers of processes, and by
    two on a card."""
    small = [
        setting for setting in CLASSIFIER if not any(name in setting for name in ("batch", "log", "optimizer.name"))
    ]
    options = [str(directory / "labels.tsv"), *small, *MUON]
    for how, count in (("one", 1), ("two", 2), ("sharded", 2)):
        arguments = [*options, f"--steps={MUON_STEPS}", *(["--shard"] if how == "sharded" else [])]
        yield f"muon {how}", Job(f"muon-{how}", count, arguments, task="classifier")
    arguments = [*options, f"--steps={MUON_STEPS}"]
    for count, sharded, stop in ((2, [], 3), (3, ["--shard"], 6), (1, [], None)):
        fault = Fault("step", count - 1, stop, signal.SIGTERM) if stop else None
        yield f"muon by {count}", Job("muon-changing", count, [*arguments, *sharded], fault, task="classifier")
    arguments += ["--device=card", "--precision=float32"]
    yield "muon on a card", Job("muon-card", 2, arguments, task="classifier", on_card=True)


def in_float16(directory: Path) -> Iterator[tuple[str, Job]]:
    """A few steps of a language model that learns by Muon and Adam, the first of which overflow."""
    for how, count in (("one", 1), ("sharded", 2)):
        more = [f"--steps={2 * OVERFLOWS}", f"--set=checkpoint.every={OVERFLOWS}", "--set=validate.every=100"]
        arguments = [*arguments_of("lm", directory, how), *more, BY_MUON, "--precision=float16"]
        yield f"float16 {how}", Job(f"float16-{how}", count, arguments, task="lm", exports=False)


def disturbed(directory: Path, how: str, faults: Sequence[Fault]) -> Iterator[tuple[str, Job]]:
    """A translator's training that goes on after every fault, and in the end is left in peace."""
    for fault in (*faults, None):
        moment = f"{fault.moment} {fault.rank}" if fault else "in peace"
        arguments = arguments_of("translator", directory, how)
        yield f"{how} {moment}", Job(f"{how}-disturbed", 2, arguments, fault, exports=False)


def changing(directory: Path) -> Iterator[tuple[str, Job]]:
    """A training that goes on with other numbers of processes, and one that goes on with other batches."""
    arguments, sharded = (arguments_of("translator", directory, how) for how in ("one", "sharded"))
    yield "changing, two", Job("changing", 2, arguments, Fault("step", 1, 16, signal.SIGTERM))
    yield "changing, sharded by three", Job("changing", 3, sharded, Fault("step", 2, 21, signal.SIGUSR1))
    yield "changing, one", Job("changing", 1, arguments, exports=False)
    short = [*arguments, "--steps=12"]
    yield "first batches", Job("batches", 2, short, Fault("step", 1, 11))
    yield "no checkpoint", Job("batches", 2, short, Fault("checkpoint", 1))
    others = [*short, "--set=batch.tokens=96", "--continue-with-changes"]
    yield "other batches", Job("batches", 2, others, late=True, exports=False)


def threaded(directory: Path) -> Iterator[tuple[str, Job]]:
    """Two processes of two threads each: left in peace, again, and killed."""
    arguments = [*arguments_of("translator", directory), f"--steps={THREADED_STEPS}", *LARGER]
    for name, out, fault in (
        ("threads", "threads", None),
        ("threads again", "threads-again", None),
        ("threads killed", "threads-killed", Fault("step", 1, 5)),
        ("threads resumed", "threads-killed", None),
    ):
        yield name, Job(out, 2, arguments, fault, threads=2, exports=False)


def train_in_turn(jobs: Sequence[Job], cwd: Path) -> list[Outcome]:
    """Run them one after the other; returns how they ended."""
    [outcomes] = train_in_rows([jobs], cwd)
    return outcomes


def train_in_rows(rows: Sequence[Sequence[Job]], cwd: Path) -> list[list[Outcome]]:
    """Run the jobs of each row one after the other, all rows at the same time; returns how they ended. Warnings are
    errors there too."""
    command = [sys.executable, "-W", "error", FORKER, json.dumps([[asdict(job) for job in jobs] for jobs in rows])]
    # Threads that wait must not spin: there may be more of them than cores.
    environment = {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, cwd=cwd, env={**os.environ, **environment}, **pipes) as forker:  # type: ignore[call-overload]
        try:
            out, err = forker.communicate(timeout=600)
        except subprocess.TimeoutExpired:
            os.killpg(forker.pid, signal.SIGKILL)  # its forks too
            raise
    assert forker.returncode == 0, err
    outcomes = [[Outcome(**each) for each in json.loads(line)] for line in out.splitlines() if line.startswith("[{")]
    assert [len(ended) for ended in outcomes] == [len(jobs) for jobs in rows], err
    return outcomes


def lines_learned_from(run: Path) -> list[dict[int, list[int]]]:
    """For each process the lines of each of its updates, the last time it made it."""
    files = sorted(run.glob("lines-*.jsonl"))
    return [dict(json.loads(line) for line in file.read_text().splitlines()) for file in files]
