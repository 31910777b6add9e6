"""BLEU on Multi30k en→de after so many minutes on this machine: Jumok and its peers. Rewrites time_to_quality.md, .png.

    python benchmarks/time_to_quality.py --data DIRECTORY --minutes 10 20
    python benchmarks/time_to_quality.py --data DIRECTORY --minutes 1 --peers marian

The directory holds {train,val,test_2016_flickr}.lc.norm.tok.{en,de}.gz. Each contender trains alone, with the commands
of benchmarks/recipes/NAME.py, in an environment of its own below --place (made once, versions pinned). The clock runs
from its first command on: cutting words into pieces, validation and saving count. Jumok is told the minutes, so it
trains once for each number of minutes; the others train once, and what they had saved last at each mark is taken.
Translating the test file comes after the clock has stopped, with beam 5; sacreBLEU scores it with tokenize=none. What
was measured is kept in time_to_quality/, a file for each kind of processor; the same command goes on with what is
missing.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from functools import partial
from hashlib import sha256
from pathlib import Path

from machine import describe_machine, processor
from peers_environments import PLACE, interpreter
from peers_results import Measure, PeerError, Results, last_error
from time_to_quality_page import shortened, write_page

from jumok.model.config import preset
from jumok.recipes.translator import TINY_SIZES
from recipes import Job, Recipe, Recipes

PAGE = Path(__file__).with_suffix(".md")
RESULTS = PAGE.with_suffix("")  # a file for each kind of processor: their speeds cannot be compared
PEERS = ("jumok", "joeynmt", "opennmt", "marian", "huggingface")
PARTS = {"train": "train", "val": "valid", "test_2016_flickr": "test"}
LATE = 5  # minutes by which a contender that ends by itself may be late


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--minutes", type=float, nargs="+", default=[10, 20])
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--recipes", nargs="+", default=["documented", "sizes of tiny"])
    parser.add_argument("--place", type=Path, default=PLACE, help="environments and trainings")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    arguments = parser.parse_args()
    place = arguments.place.resolve()
    place.mkdir(parents=True, exist_ok=True)
    threads = int(os.environ.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0)))))
    files = {path.name: sha256(path.read_bytes()).hexdigest()[:16] for path in data_files(arguments.data).values()}
    settings = {"files": files, "threads": threads, "processor": processor()}
    RESULTS.mkdir(exist_ok=True)
    file = "-".join(re.findall("[a-z0-9]+", processor().lower())) + ".json"
    results = Results(RESULTS / file, settings, fresh=arguments.fresh)
    results.kept.setdefault("machine", describe_machine())
    sizes = preset("tiny", vocabulary=1).to_dict() | TINY_SIZES
    for name in results.with_environment(arguments.peers, place):
        recipes: Recipes = importlib.import_module(f"recipes.{name}").RECIPES
        for title in [title for title in recipes if title in arguments.recipes]:
            for marks in groups_of(sorted(arguments.minutes), recipes[title](Job(threads, 1, sizes))):
                recipe = recipes[title](Job(threads, marks[-1], sizes))
                key = f"quality/{name}/{title}/{'-'.join(f'{mark:g}' for mark in marks)}"
                work = place / key.replace("'", "").replace(" ", "-")
                results.get(key, partial(measure, name, recipe, marks, work, arguments))
    results.save()
    kept = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))]
    write_page(PAGE, kept, arguments.minutes)


def groups_of(minutes: list[float], recipe: Recipe) -> list[list[float]]:
    """The marks of each training."""
    return [[mark] for mark in minutes] if recipe.ends_itself else [minutes]


def data_files(data: Path) -> dict[str, Path]:
    """Name in a contender's directory → file. The references of the test stay here."""
    names = {
        f"{ours}.{language}": f"{part}.lc.norm.tok.{language}.gz"
        for part, ours in PARTS.items()
        for language in ("en", "de")
    }
    return {ours: data / name for ours, name in names.items()}


def measure(name: str, recipe: Recipe, marks: list[float], work: Path, arguments: argparse.Namespace) -> Measure:
    """Trains, then translates and scores the checkpoint of each mark."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for ours, path in data_files(arguments.data).items():
        if ours != "test.de":
            (work / ours).write_bytes(gzip.decompress(path.read_bytes()))
    for file, text in recipe.files.items():
        (work / file).write_text(text, encoding="utf-8")
    place = arguments.place.resolve()
    started, seconds = run_until(recipe, marks[-1], work, interpreter(name, place))
    python = interpreter(recipe.environment or name, place)
    references = gzip.decompress(data_files(arguments.data)["test.de"].read_bytes()).decode().splitlines()
    answer: Measure = {
        "seconds": seconds,
        "commands": [shortened(command) for command in (*recipe.commands, recipe.translate[-1])],
        "lines": {file: count_lines(text) for file, text in recipe.files.items()},
        "source": recipe.source,
        "marks": {},
    }
    for mark in marks:
        limit = started + (seconds + 1 if recipe.ends_itself else 60 * mark)
        found = score_checkpoint(recipe, work, python, started, limit, references)
        answer["marks"][f"{mark:g}"] = {**found, "written": seconds / 60} if recipe.ends_itself else found
    answer["bleu"] = [found.get("bleu") for found in answer["marks"].values()]
    return answer


def count_lines(text: str) -> int:
    """Lines that are neither empty nor a comment."""
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in text.splitlines())


def run_until(recipe: Recipe, minutes: float, work: Path, python: Path) -> tuple[float, float]:
    """Runs the commands of training, and ends the last one when time is over. When it began, in seconds since 1970, and
    for how many seconds it ran."""
    began, started = time.time(), time.perf_counter()
    for command in recipe.commands:
        allowed = 60 * (minutes + LATE * recipe.ends_itself) - (time.perf_counter() - started)
        try:
            bash(command, work, python, timeout=allowed)
        except subprocess.TimeoutExpired as error:
            if recipe.ends_itself or command != recipe.commands[-1]:
                raise PeerError(f"{minutes:g} minutes were over during `{command}`") from error
    return began, time.perf_counter() - started


def bash(command: str, work: Path, python: Path, timeout: float | None = None) -> None:
    """A line for bash with the programs of an environment first; ends all that it started."""
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    # Checkpoints of some peers are older than this default of PyTorch's.
    variables = {**os.environ, "PATH": path, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1", "CUDA_VISIBLE_DEVICES": ""}
    log = work / "log.txt"
    with open(log, "a", encoding="utf-8") as output:
        print(f"$ {command}", file=output, flush=True)
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=work,
            env=variables,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout)
        finally:  # when time is over, and at Ctrl-C
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code:
        raise PeerError(f"`{command}` failed: {last_error(log)}")


def score_checkpoint(
    recipe: Recipe, work: Path, python: Path, started: float, limit: float, references: list[str]
) -> Measure:
    """BLEU and chrF of the newest checkpoint written before the limit, and the minutes after which it was written."""
    import sacrebleu

    times = {path: path.stat().st_mtime for path in work.glob(recipe.checkpoints)}
    written = {path: at for path, at in times.items() if at <= limit}
    if not written:
        return {}
    checkpoint = max(written, key=written.__getitem__)
    for command in recipe.translate:
        bash(command.replace("{checkpoint}", str(checkpoint.relative_to(work))), work, python)
    outputs = (work / "output.de").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    if len(outputs) != len(references):
        raise PeerError(f"{len(outputs)} translations of {len(references)} lines")
    bleu = sacrebleu.corpus_bleu(outputs, [references], tokenize="none", force=True).score
    chrf = sacrebleu.corpus_chrf(outputs, [references]).score
    return {"bleu": bleu, "chrf": chrf, "written": (written[checkpoint] - started) / 60, "checkpoint": checkpoint.name}


if __name__ == "__main__":
    main()
