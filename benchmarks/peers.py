"""Jumok and its peers side by side: training, translation, first sentence, memory, size. Rewrites peers.md and .png.

    make bench-peers                                              # the built-in corpus, and a training on it
    python benchmarks/peers.py --data SOURCE TARGET --run RUN --file TEXT
    python benchmarks/peers.py --peers jumok huggingface --parts training --sizes tiny --rounds 1

Each peer runs in an environment of its own below .peers/ (made once, versions pinned), through its own trainer and its
own translation functions, by the file benchmarks/peers/run_NAME.py, which says how it is set up. Contenders take turns,
each time in another order; each measurement is a process of its own. What was measured is kept in .peers/results.json:
the same command resumes where it stopped, --fresh measures again. A peer that fails is named with the reason.

Training: the sizes of Jumok's presets, the same tokens, about as many tokens in a batch, dropout, label smoothing 0.1,
Adam, float32. Counted are target tokens with `</s>` and without padding, from when the updates of warming up are over,
everything between two updates included; validation and checkpoints are not. Translation: the weights of RUN for all,
converted; text to text, float32, the same beam.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from machine import MEASURED
from peers_environments import OWN, installed_size, interpreter
from peers_page import write_page
from turns import rounds_of

from jumok.data.corpus import Corpus, prepare_corpus
from jumok.data.kinds import PAIRS
from jumok.demo.pairs import write_demo_corpus
from jumok.model.config import preset

HERE = Path(__file__).parent
PLACE = HERE.parent / ".peers"
PEERS = ("jumok", "joeynmt", "opennmt", "marian", "huggingface", "ctranslate2")
UNTRAINED = ("ctranslate2",)  # cannot train
UNTRANSLATED = ("marian",)  # why: benchmarks/peers/run_marian.py
STEPS = {"tiny": (3, 40), "base": (1, 2)}  # updates to warm up, updates measured at most
BATCH_TOKENS, VOCABULARY, DEMO_VOCABULARY = 4_096, 8_000, 2_000
BEAMS = (1, 5)
LINES, COLD_STARTS, LONGEST_SECONDS = 5_000, 3, 600
DEMO_MINUTES = 3

Measure = dict[str, Any]


class Results:
    """What was measured, kept as a file after every measurement."""

    def __init__(self, path: Path, settings: Measure, *, fresh: bool) -> None:
        self.path = path
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() and not fresh else {}
        if kept and kept["settings"] != settings:
            raise SystemExit(f"{path}: was measured otherwise ({kept['settings']}). Give the same, or --fresh.")
        self.kept: Measure = {"settings": settings, "measured": {}, **kept}
        self.measured: dict[str, Measure] = {
            key: answer for key, answer in self.kept["measured"].items() if "failed" not in answer
        }
        if self.measured:
            print(f"{path}: {len(self.measured)} measurements are there already; --fresh measures them again.")
        self.kept["measured"] = self.measured

    def get(self, key: str, measure: Any) -> Measure:
        """The kept answer, or a new one."""
        if key not in self.measured:
            started = time.perf_counter()
            try:
                self.measured[key] = {**measure(), "measured": MEASURED}
            except PeerError as error:
                self.measured[key] = {"failed": str(error)}
            shown = {name: value for name, value in self.measured[key].items() if name in ("rate", "failed", "seconds")}
            print(f"{key} {shown} ({time.perf_counter() - started:.0f} s in all)", flush=True)
            self.path.write_text(json.dumps(self.kept), encoding="utf-8")
        return self.measured[key]


class PeerError(Exception):
    """A contender did not do it; the reason."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs=2, type=Path, metavar=("SOURCE", "TARGET"), help="files to train on")
    parser.add_argument("--run", type=Path, help="a training of `jumok train translator` to translate with")
    parser.add_argument("--file", type=Path, help="what to translate; may be .gz")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--parts", nargs="+", choices=("training", "translation"), default=["training", "translation"])
    parser.add_argument("--sizes", nargs="+", choices=tuple(STEPS), default=list(STEPS))
    parser.add_argument(
        "--vocabulary", type=int, help=f"tokens; {VOCABULARY:,}, and {DEMO_VOCABULARY:,} of the built-in corpus"
    )
    parser.add_argument("--rounds", type=int, default=3, help="one fewer for base, which takes long")
    parser.add_argument("--steps", type=int, help="updates to measure at most; fewer for a quick look")
    parser.add_argument("--seconds", type=float, default=5, help="to measure for, after warming up")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    arguments = parser.parse_args()
    if (arguments.run is None) != (arguments.file is None):
        parser.error("--run and --file belong together")
    if arguments.data and arguments.run is None and "translation" in arguments.parts:
        parser.error("with --data, a translation needs --run and --file; or give --parts training")
    PLACE.mkdir(exist_ok=True)
    threads = int(os.environ.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0)))))
    prepare_files(arguments)
    results = Results(PLACE / "results.json", settings_of(arguments, threads), fresh=arguments.fresh)
    for name in arguments.peers:
        results.get(f"environment/{name}", lambda name=name: environment(name))
    arguments.peers = [name for name in arguments.peers if "failed" not in results.measured[f"environment/{name}"]]
    if "training" in arguments.parts:
        measure_training(arguments, results, threads)
    if "translation" in arguments.parts:
        measure_translation(arguments, results, threads)
    write_page(HERE / "peers.md", results.kept, PLACE / "translated" / "tokenizer.model")


def prepare_files(arguments: argparse.Namespace) -> None:
    """Where no files are given, those of the built-in corpus."""
    if arguments.data is None:
        corpus = PLACE / "corpus"
        write_demo_corpus(corpus)
        arguments.data = [corpus / "train.en", corpus / "train.ko"]
        arguments.vocabulary = arguments.vocabulary or DEMO_VOCABULARY
    arguments.data = [path.resolve() for path in arguments.data]
    arguments.vocabulary = arguments.vocabulary or VOCABULARY
    if arguments.run is None and "translation" in arguments.parts:
        arguments.run, arguments.file = PLACE / "run", PLACE / "corpus" / "test.en"
        command = [sys.executable, "-m", "jumok", "train", "translator", *map(str, arguments.data)]
        command += ["-o", str(arguments.run), "--preset", "tiny", "--minutes", str(DEMO_MINUTES)]
        if not (arguments.run / "model").exists():
            subprocess.run(command, check=True)


def settings_of(arguments: argparse.Namespace, threads: int) -> Measure:
    """What makes figures comparable: not which peers, parts or how many rounds."""
    files = [*arguments.data, *([arguments.file, arguments.run / "model" / "MANIFEST.json"] if arguments.run else [])]
    return {
        "files": [Path(path).name for path in files],
        "contents": [sha256(Path(path).read_bytes()).hexdigest()[:16] for path in files],
        "vocabulary": arguments.vocabulary,
        "batch_tokens": BATCH_TOKENS,
        "threads": threads,
        "seconds": arguments.seconds,
    }


def environment(name: str) -> Measure:
    try:
        python = interpreter(name, PLACE)
    except subprocess.CalledProcessError as error:
        raise PeerError(f"its environment cannot be made: {' '.join(error.cmd[-3:])} failed") from error
    code = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    versions = json.loads(subprocess.run([python, "-c", code], check=True, stdout=subprocess.PIPE).stdout)
    return {"versions": versions, "installed": installed_size(name, PLACE)}


def contend(name: str, task: str, job: Measure) -> Measure:
    """Runs one contender's file in its own environment; its answer."""
    work = PLACE / "work" / name
    work.mkdir(parents=True, exist_ok=True)
    job = {**job, "work": str(work), "result": str(work / "result.json")}
    Path(job["result"]).unlink(missing_ok=True)
    (work / "job.json").write_text(json.dumps(job), encoding="utf-8")
    command = [str(interpreter(name, PLACE)), str(HERE / "peers" / f"run_{name}.py"), task, str(work / "job.json")]
    log = work / f"{task}.log"
    with open(log, "w", encoding="utf-8") as output:
        try:
            subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, timeout=LONGEST_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise PeerError(f"{task}: took longer than {LONGEST_SECONDS} s") from error
    if not Path(job["result"]).exists():
        raise PeerError(f"{task}: {last_error(log)}")
    answer: Measure = json.loads(Path(job["result"]).read_text(encoding="utf-8"))
    return answer


def last_error(log: Path) -> str:
    """The last line that speaks of an error, or the last one."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line]
    return (errors or lines or ["it ended without a word"])[-1][:200]


def measure_training(arguments: argparse.Namespace, results: Results, threads: int) -> None:
    names = [name for name in arguments.peers if name not in UNTRAINED]
    corpus = prepare_corpus(PAIRS, PLACE / "store", arguments.data, size=arguments.vocabulary, seed=1)
    text = write_subwords(corpus, PLACE / "text")
    lengths = corpus.train.lengths("target") + 1
    for size in arguments.sizes:
        warm_up, steps = STEPS[size]
        job = {
            "data": [str(path) for path in arguments.data],
            "text": str(text),
            "store": str(PLACE / "store"),
            "tokenizer": str(PLACE / "store" / "tokenizer.model"),
            "preset": size,
            "model": preset(size, vocabulary=corpus.tokenizer.size).to_dict(),
            "batch_tokens": BATCH_TOKENS,
            "batch_sentences": round(BATCH_TOKENS / float(lengths.mean())),
            "threads": threads,
            "warm_up": warm_up,
            "steps": arguments.steps or steps,
            "seconds": arguments.seconds,
        }
        rounds = arguments.rounds if size == "tiny" else max(1, arguments.rounds - 1)
        for number, name in rounds_of(names, rounds):
            results.get(f"training/{size}/{name}/{number}", lambda job=job, name=name: contend(name, "train", job))


def write_subwords(corpus: Corpus, directory: Path) -> Path:
    """The very examples that Jumok learns from as lines of subwords, and the vocabulary in the order of its ids."""
    directory.mkdir(exist_ok=True)
    tokenizer = corpus.tokenizer
    count = len(corpus.train.lengths("source"))
    for column, side in (("source", "src"), ("target", "tgt")):
        lines = [" ".join(tokenizer.pieces(corpus.train.example(column, place))) for place in range(count)]
        (directory / f"train.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (directory / f"valid.{side}").write_text("\n".join(lines[:10]) + "\n", encoding="utf-8")
    pieces = tokenizer.pieces(range(tokenizer.size))
    (directory / "vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    return directory


def measure_translation(arguments: argparse.Namespace, results: Results, threads: int) -> None:
    job = translation_job(arguments, threads)
    names = [name for name in arguments.peers if name not in UNTRANSLATED]
    for name in names:
        results.get(f"conversion/{name}", lambda name=name: convert(name, job))
    names = [name for name in names if "failed" not in results.measured[f"conversion/{name}"]]
    for number, name in rounds_of(names, arguments.rounds):
        results.get(f"translation/{name}/{number}", lambda name=name: contend(name, "translate", job))
    for number, name in rounds_of(names, COLD_STARTS):
        results.get(f"first/{name}/{number}", lambda name=name: cold_start(name, job))


def translation_job(arguments: argparse.Namespace, threads: int) -> Measure:
    """A copy of the model, exported for CTranslate2, and the lines to translate."""
    copy = PLACE / "translated"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(arguments.run / "model", copy)
    if not (copy / "ctranslate2").exists():
        command = [sys.executable, "-m", "jumok", "export", "-m", str(copy)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    data = arguments.file.read_bytes()
    text = (gzip.decompress(data) if arguments.file.suffix == ".gz" else data).decode().removesuffix("\n").split("\n")
    lines = list(itertools.islice(itertools.cycle([line for line in text if line.strip()]), LINES))
    (PLACE / "lines.txt").write_text("\n".join(lines), encoding="utf-8")
    return {
        "bundle": str(copy),
        "weights": str(copy / "weights.safetensors"),
        "tokenizer": str(copy / "tokenizer.model"),
        "model": json.loads((copy / "config.json").read_text(encoding="utf-8")),
        "data": [str(path) for path in arguments.data],
        "lines": str(PLACE / "lines.txt"),
        "line": lines[0],
        "beams": BEAMS,
        "threads": threads,
        "seconds": arguments.seconds,
    }


def convert(name: str, job: Measure) -> Measure:
    """The peer's copy of the weights; bytes on disk of what it translates with."""
    exported = Path(job["bundle"], "ctranslate2")
    model = {"jumok": exported.parent, "ctranslate2": exported}.get(name, PLACE / "work" / name / "model")
    if name not in OWN:
        shutil.rmtree(model, ignore_errors=True)
        model.mkdir(parents=True)
        contend(name, "convert", job)
    return {"disk": sum(path.stat().st_size for path in model.rglob("*") if path.is_file())}


def cold_start(name: str, job: Measure) -> Measure:
    """Seconds from the command to one translated sentence, all in."""
    started = time.perf_counter()
    if name == "jumok":
        command = [sys.executable, "-m", "jumok", "translate", "-m", job["bundle"], "--beam", str(BEAMS[0])]
        done = subprocess.run(command, input=job["line"] + "\n", check=True, stdout=subprocess.PIPE, text=True)
        output = done.stdout.removesuffix("\n")
    else:
        output = contend(name, "first", job)["output"]
    return {"seconds": time.perf_counter() - started, "output": output}


if __name__ == "__main__":
    main()
