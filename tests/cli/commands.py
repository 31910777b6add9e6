"""A small corpus, and ways to run commands on it."""

import itertools
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jumok.demo.reviews import demo_reviews
from jumok.system import usable_cores

SOURCE = Path(__file__).parent.parent.parent / "src"

# A model that trains in seconds. `model.*` overrides the preset's sizes.
SMALL = [
    f"--set={setting}"
    for setting in (
        "model.d_model=32",
        "model.heads=2",
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "model.d_ff=64",
        "model.dropout=0.1",
        "batch.tokens=256",
        "optimizer.lr=0.01",
        "optimizer.name=adam",  # so few steps are not enough for Muon
        "init.embeddings=random",
        "checkpoint.every=1000",
        "validate.every=15",
        "log.every=10",
    )
]

# Random in every batch, whichever process or device has it: what the loss compares, and which tokens are not seen.
DRAWN = ["--set=loss.candidates=100", "--set=augment.token_dropout=0.1"]

CLASSIFIER = [setting for setting in SMALL if "decoder" not in setting]
LM = [setting for setting in SMALL if "encoder_layers" not in setting]

NOUNS = {"cat": "고양이", "dog": "개", "bird": "새", "fish": "물고기", "horse": "말"}
COLOURS = {"red": "빨간", "small": "작은", "big": "큰"}
VERBS = {"sees": "봐요", "likes": "좋아해요"}


def sentences() -> list[tuple[str, str]]:
    """Every "The small cat sees the red dog." of three little word lists, in an order that is always the same."""
    pairs = [
        (f"The {colour} {one} {verb} the {other}.", f"{COLOURS[colour]} {NOUNS[one]} {NOUNS[other]} {VERBS[verb]}.")
        for colour, one, verb, other in itertools.product(COLOURS, NOUNS, VERBS, NOUNS)
    ]
    random.Random(1).shuffle(pairs)
    return pairs


def write_corpus(directory: Path, pairs: Sequence[tuple[str, str]] | None = None) -> None:
    """a.en and a.ko."""
    pairs = sentences() if pairs is None else pairs
    for name, side in (("a.en", 0), ("a.ko", 1)):
        (directory / name).write_bytes("".join(f"{pair[side]}\n" for pair in pairs).encode())


def write_reviews(directory: Path) -> None:
    """train.tsv and test.tsv: 700 and 200 reviews, labelled positive or negative."""
    drawn = demo_reviews(count=900)
    for name, part in (("train", drawn[:700]), ("test", drawn[700:])):
        lines = "".join(f"{label}\t{text}\n" for label, text in part)
        (directory / f"{name}.tsv").write_text(lines, encoding="utf-8")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Jumok = Callable[..., Ended]


def longer_if_busy(seconds: float) -> float:
    """A limit for a machine that does nothing else, and a longer one if more programs want to run than it has cores."""
    return seconds * max(1.0, os.getloadavg()[0] / usable_cores())


def start(*arguments: str | Path, cwd: Path, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """The real command, in a process of its own. Ctrl-C reaches it even where the tests run in the background."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": stderr}
    program = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program += "from jumok.cli import main; sys.argv[0] = 'jumok'; main()"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, cwd=cwd, env=environment, text=True, encoding="utf-8", **pipes)  # type: ignore[call-overload,no-any-return]


def train_arguments(directory: Path, out: str = "run", steps: int = 30) -> list[str]:
    """What comes after `jumok train translator` for the corpus in a directory."""
    return [str(directory / "a.en"), str(directory / "a.ko"), "-o", str(directory / out), f"--steps={steps}", *SMALL]
