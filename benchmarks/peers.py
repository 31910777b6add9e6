"""Jumok and its peers side by side: training, translation, first sentence, memory, size. Rewrites peers.md and .png.

    make bench-peers                                              # the built-in corpus, and a training on it
    python benchmarks/peers.py --data SOURCE TARGET --run RUN --file TEXT
    python benchmarks/peers.py --peers jumok huggingface --parts training --sizes tiny --rounds 1

Each peer runs in an environment of its own below .peers/ (made once, versions pinned), through its own trainer and its
own translation functions, by the file benchmarks/peers/run_NAME.py, which says how it is set up. Contenders take turns,
each time in another order; each measurement is a process of its own. What was measured is kept in .peers/results.json:
the same command resumes where it stopped, --fresh measures again. A peer that fails is named with the reason.

Training: the sizes of Jumok's presets, dropout, label smoothing 0.1, Adam, float32, and for all contenders the same
number of updates with the same batches, which are those of Jumok's first epoch (Marian takes no batches, and makes its
own of the same size). Timed, with one clock for all, is from where the first update after warming up begins to where
one more would, with everything in between; validation and checkpoints are not. Counted are target tokens with `</s>`
and without padding. Translation: the weights of RUN for all, converted; text to text, float32, the same beam,
the same first lines of a file (at least 500), and 300 sentences one at a time, both after warming up.
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

from peers_batches import SEED, write_batches
from peers_environments import OWN, PLACE, interpreter
from peers_page import write_page
from peers_results import Measure, PeerError, Results, last_error
from turns import rounds_of

from jumok.data.corpus import prepare_corpus
from jumok.data.kinds import PAIRS
from jumok.demo.pairs import write_demo_corpus
from jumok.model.config import preset

HERE = Path(__file__).parent
PEERS = ("jumok", "joeynmt", "opennmt", "marian", "huggingface", "ctranslate2")
UNTRAINED = ("ctranslate2",)  # cannot train
UNTRANSLATED = ("marian",)  # why: benchmarks/peers/run_marian.py
STEPS = {"tiny": (3, 20), "base": (1, 5)}  # updates to warm up, updates measured
BATCH_TOKENS, VOCABULARY, DEMO_VOCABULARY = 4_096, 8_000, 2_000
BEAMS = (1, 5)
LINES, FEWEST_LINES, LINES_ALONE = 5_000, 500, 300
COLD_STARTS, LONGEST_SECONDS = 3, 1_200
DEMO_MINUTES = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs=2, type=Path, metavar=("SOURCE", "TARGET"), help="files to train on")
    parser.add_argument("--run", type=Path, help="a training of `jumok train translator` to translate with")
    parser.add_argument("--file", type=Path, help="what to translate; may be .gz")
    parser.add_argument("--reference", type=Path, help="its translation, for BLEU (tokenize=none); may be .gz")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--parts", nargs="+", choices=("training", "translation"), default=["training", "translation"])
    parser.add_argument("--sizes", nargs="+", choices=tuple(STEPS), default=list(STEPS))
    parser.add_argument(
        "--vocabulary", type=int, help=f"tokens; {VOCABULARY:,}, and {DEMO_VOCABULARY:,} of the built-in corpus"
    )
    parser.add_argument("--rounds", type=int, default=3, help="of all contenders in turns")
    parser.add_argument("--steps", type=int, help="updates to measure; fewer for a quick look")
    parser.add_argument("--lines", type=int, default=FEWEST_LINES, help="to translate at least; fewer for a quick look")
    parser.add_argument("--alone", type=int, default=LINES_ALONE, help="sentences to translate one at a time")
    parser.add_argument("--seconds", type=float, default=5, help="to translate a file for, after warming up")
    parser.add_argument("--place", type=Path, default=PLACE, help="environments, scratch files and results")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    arguments = parser.parse_args()
    if (arguments.run is None) != (arguments.file is None):
        parser.error("--run and --file belong together")
    if arguments.data and arguments.run is None and "translation" in arguments.parts:
        parser.error("with --data, a translation needs --run and --file; or give --parts training")
    arguments.place = arguments.place.resolve()
    arguments.place.mkdir(parents=True, exist_ok=True)
    threads = int(os.environ.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0)))))
    prepare_files(arguments)
    results = Results(arguments.place / "results.json", settings_of(arguments, threads), fresh=arguments.fresh)
    arguments.peers = results.with_environment(arguments.peers, arguments.place)
    if "training" in arguments.parts:
        measure_training(arguments, results, threads)
    if "translation" in arguments.parts:
        measure_translation(arguments, results, threads)
    references = read(arguments.reference) if arguments.reference else []
    write_page(HERE / "peers.md", results.kept, arguments.place / "translated" / "tokenizer.model", references)


def prepare_files(arguments: argparse.Namespace) -> None:
    """Where no files are given, those of the built-in corpus."""
    if arguments.data is None:
        corpus = arguments.place / "corpus"
        write_demo_corpus(corpus)
        arguments.data = [corpus / "train.en", corpus / "train.ko"]
        arguments.vocabulary = arguments.vocabulary or DEMO_VOCABULARY
    arguments.data = [path.resolve() for path in arguments.data]
    arguments.vocabulary = arguments.vocabulary or VOCABULARY
    if arguments.run is None and "translation" in arguments.parts:
        arguments.run, arguments.file = arguments.place / "run", arguments.place / "corpus" / "test.en"
        command = [sys.executable, "-m", "jumok", "train", "translator", *map(str, arguments.data)]
        command += ["-o", str(arguments.run), "--preset", "tiny", "--minutes", str(DEMO_MINUTES)]
        command += ["--set", "model.rotary=false"]  # not all peers could run its weights
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
        "lines": [arguments.lines, arguments.alone],
        "steps": arguments.steps or STEPS,
    }


def contend(name: str, task: str, job: Measure) -> Measure:
    """Runs one contender's file in its own environment; its answer."""
    place = Path(job["place"])
    work = place / "work" / name
    work.mkdir(parents=True, exist_ok=True)
    job = {**job, "work": str(work), "result": str(work / "result.json")}
    Path(job["result"]).unlink(missing_ok=True)
    (work / "job.json").write_text(json.dumps(job), encoding="utf-8")
    command = [str(interpreter(name, place)), str(HERE / "peers" / f"run_{name}.py"), task, str(work / "job.json")]
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


def measure_training(arguments: argparse.Namespace, results: Results, threads: int) -> None:
    names = [name for name in arguments.peers if name not in UNTRAINED]
    place = arguments.place
    corpus = prepare_corpus(PAIRS, place / "store", arguments.data, size=arguments.vocabulary, seed=SEED)
    for size in arguments.sizes:
        warm_up, steps = STEPS[size]
        job = {
            **write_batches(corpus, place / "text" / size, BATCH_TOKENS, warm_up, arguments.steps or steps),
            "place": str(place),
            "data": [str(path) for path in arguments.data],
            "store": str(place / "store"),
            "tokenizer": str(place / "store" / "tokenizer.model"),
            "preset": size,
            "model": preset(size, vocabulary=corpus.tokenizer.size).to_dict(),
            "threads": threads,
        }
        for number, name in rounds_of(names, arguments.rounds):
            results.get(f"training/{size}/{name}/{number}", lambda job=job, name=name: contend(name, "train", job))


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
    copy = arguments.place / "translated"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(arguments.run / "model", copy)
    if not (copy / "ctranslate2").exists():
        command = [sys.executable, "-m", "jumok", "export", "-m", str(copy)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    lines = list(itertools.islice(itertools.cycle([line for line in read(arguments.file) if line.strip()]), LINES))
    (arguments.place / "lines.txt").write_text("\n".join(lines), encoding="utf-8")
    return {
        "place": str(arguments.place),
        "bundle": str(copy),
        "weights": str(copy / "weights.safetensors"),
        "tokenizer": str(copy / "tokenizer.model"),
        "model": json.loads((copy / "config.json").read_text(encoding="utf-8")),
        "data": [str(path) for path in arguments.data],
        "lines": str(arguments.place / "lines.txt"),
        "fewest_lines": arguments.lines,
        "lines_alone": arguments.alone,
        "line": lines[0],
        "beams": BEAMS,
        "threads": threads,
        "seconds": arguments.seconds,
    }


def read(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().removesuffix("\n").split("\n")


def convert(name: str, job: Measure) -> Measure:
    """The peer's copy of the weights; bytes on disk of what it translates with."""
    exported = Path(job["bundle"], "ctranslate2")
    model = {"jumok": exported.parent, "ctranslate2": exported}.get(name, Path(job["place"], "work", name, "model"))
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
