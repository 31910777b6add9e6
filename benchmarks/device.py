"""How fast a device trains and translates, by model size and number format. Rewrites device.md.

    python benchmarks/device.py                      # the card that is there, else the CPU (`tiny` only); some minutes
    python benchmarks/device.py --device cuda:1 --sizes tiny base big --precisions float32 bfloat16
    python benchmarks/device.py --device cpu --quick          # a look that takes a few minutes
    python benchmarks/device.py --pretend --quick             # tests/pretend_card.py: shows that it runs, not how fast

It needs no data: it trains on the built-in corpus, or on two files given with --data. Every measurement is a process of
its own; rounds alternate. Training: target tokens a second in the log of a real training, without the first updates,
validation and checkpoints. Translation: output tokens a second with PyTorch, and with CTranslate2 where it knows the
device, of a model that has learned for long enough that its outputs end. Share of the peak: the matrix products of a
training step, forward and back, compared with a product of large matrices in the same number format on the same device.
Peers that are installed in this environment (JoeyNMT, OpenNMT-py, Hugging Face transformers) train models of the same
size by benchmarks/peers/run_NAME.py.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from machine import describe_machine, peak_memory
from training_speed import VOCABULARY, needed_per_token
from turns import rounds_of

from jumok.data.corpus import prepare_corpus
from jumok.data.kinds import PAIRS
from jumok.demo.pairs import write_demo_corpus
from jumok.engines.loading import load
from jumok.engines.options import SearchOptions
from jumok.errors import JumokError, counted
from jumok.model.config import preset
from jumok.model.devices import choose_device, free_memory
from jumok.recipes.translator import train_translator

HERE = Path(__file__).parent
SIZES, PRECISIONS = ("tiny", "small", "base", "big"), ("float32", "bfloat16", "float16")
PEERS = {"joeynmt": "joeynmt", "opennmt": "onmt", "huggingface": "transformers"}  # name → package
WARM_UP, LOGGED = 4, 4  # updates before the first one that counts; updates between two log entries
LINES, DEMO_VOCABULARY = 200, 2_000
LEARNING_STEPS = 300  # until the outputs of a translation are about as long as they should be
SHARED = ("device", "pretend", "vocabulary", "batch_tokens", "steps", "lines")
Answer = dict[str, Any]


def train(job: Answer) -> Answer:
    """A real training; target tokens a second, and memory in megabytes."""
    log = train_jumok(job, WARM_UP + job["steps"])
    entries = [entry for entry in log if entry["event"] == "train" and entry["step"] >= WARM_UP]
    first, last = entries[0], entries[-1]
    rate = (last["tokens"] - first["tokens"]) / (last["seconds"] - first["seconds"])
    return {"rate": rate, "memory": used_memory(job["device"])}


def train_jumok(job: Answer, steps: int) -> list[Answer]:
    """Trains in the directory "run" of the job's; the log."""
    settings = {
        "tokenizer.size": job["vocabulary"],
        "batch.tokens": job["batch_tokens"],
        "model.dropout": preset(
            job["size"], vocabulary=job["vocabulary"]
        ).dropout,  # for so few steps it would choose none
        "log.every": LOGGED,
        "validate.every": 1_000_000,
        "validate.sentences": 1,
        "checkpoint.average": 1,
        "device": job["device"],
        "precision": job["precision"],
        "compile": job["compile"],
    }
    out = Path(job["work"], "run")
    train_translator(*job["data"], out=out, preset=job["size"], steps=steps, settings=settings, progress=False)
    return [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def used_memory(device: str) -> float:
    """Megabytes used at most: of the card if it says so, else of this process."""
    if choose_device(device).type in ("cuda", "xpu"):
        return torch.accelerator.max_memory_allocated() / 2**20
    return peak_memory()


def translate(job: Answer) -> Answer:
    """Output tokens a second by engine and beam, of a model that is trained first."""
    train_jumok(job, job["learning_steps"])
    lines = Path(job["data"][0]).read_text(encoding="utf-8").splitlines()[: job["lines"]]
    found = {}
    for engine in ("torch", "ctranslate2"):
        try:
            translator = load(Path(job["work"], "run"), engine, task="translator", device=job["device"])
        except JumokError:  # no export, or a device that CTranslate2 does not know
            continue
        sources = translator.tokenizer.encode(lines)
        for beam in (1, 5):
            options = SearchOptions(beam=beam, batch_tokens=16_384, max_ratio=1.0)
            translator.engine.generate(sources[:4], options)
            started = time.perf_counter()
            outputs = translator.engine.generate(sources, options)
            tokens = sum(len(hypotheses[0].ids) + 1 for hypotheses in outputs)
            found[f"{engine} {beam}"] = tokens / (time.perf_counter() - started)
    return found


def multiplication_peak(device: str, precision: str) -> float:
    """The best GFLOP/s of a product of large matrices."""
    chosen = choose_device(device)
    size = 2048 if chosen.type in ("cpu", "card") else 8192
    a, b = (torch.randn(size, size).to(chosen, getattr(torch, precision)) for _ in range(2))

    def product() -> float:
        started = time.perf_counter()
        (a @ b)[0, 0].item()  # waits for it
        return 2 * size**3 / (time.perf_counter() - started) / 1e9

    return max(product() for _ in range(8))


def train_peer(job: Answer) -> Answer:
    """A peer's own training, by its file in benchmarks/peers."""
    work = Path(job["work"])
    job = {**job, "result": str(work / "result.json"), "threads": torch.get_num_threads()}
    (work / "job.json").write_text(json.dumps(job), encoding="utf-8")
    command = [sys.executable, str(HERE / "peers" / f"run_{job['name']}.py"), "train", str(work / "job.json")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    if not Path(job["result"]).exists():
        return {"failed": (ended.stderr.strip().splitlines() or ["it ended without a word"])[-1][:200]}
    answer: Answer = json.loads(Path(job["result"]).read_text(encoding="utf-8"))
    return answer


def peer_job(arguments: argparse.Namespace, directory: Path, size: str) -> Answer:
    """What a peer needs to know: the same batches as lines of subwords, and the sizes of the model."""
    from peers_batches import SEED, write_batches

    corpus = prepare_corpus(PAIRS, directory / "store", arguments.data, size=arguments.vocabulary, seed=SEED)
    return {
        **write_batches(corpus, directory / "text", arguments.batch_tokens, WARM_UP, arguments.steps),
        "tokenizer": str(directory / "store" / "tokenizer.model"),
        "model": preset(size, vocabulary=corpus.tokenizer.size).to_dict(),
    }


def in_a_process(task: str, job: Answer) -> Answer:
    """Do it in a process of its own; the reason if it fails."""
    with tempfile.TemporaryDirectory() as work:
        path = Path(work, "job.json")
        path.write_text(json.dumps({**job, "work": work}), encoding="utf-8")
        command = [sys.executable, __file__, "--one", task, str(path)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        return {"failed": (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1][:200]}
    answer: Answer = json.loads(ended.stdout.splitlines()[-1])
    return answer


def measure(arguments: argparse.Namespace, directory: Path) -> dict[tuple[str, str, str], list[Answer]]:
    """The answers by size, precision and contender, one for every round."""
    contenders = ["jumok", *(["jumok, compiled"] if arguments.compile else [])]
    contenders += [name for name, package in PEERS.items() if find_spec(package) and not arguments.pretend]
    found: dict[tuple[str, str, str], list[Answer]] = {}
    for size in arguments.sizes:
        for precision in arguments.precisions:
            for _, name in rounds_of(contenders, arguments.rounds):
                job = {**job_of(arguments, size), "precision": precision, "compile": name.endswith("compiled")}
                if name in PEERS:
                    answer = in_a_process("peer", {**job, **peer_job(arguments, directory, size), "name": name})
                else:
                    answer = in_a_process("train", job)
                    answer["peak"] = in_a_process("peak", job).get("peak")
                print(size, precision, name, {key: answer[key] for key in ("rate", "failed") if key in answer})
                found.setdefault((size, precision, name), []).append(answer)
    return found


def job_of(arguments: argparse.Namespace, size: str) -> Answer:
    """What every process needs to know."""
    data = [str(path) for path in arguments.data]
    return {**{key: getattr(arguments, key) for key in SHARED}, "data": data, "size": size}


def translation_rows(arguments: argparse.Namespace) -> list[str]:
    """A row of the page for every size."""
    steps = 2 * LOGGED if arguments.quick else LEARNING_STEPS
    rows = []
    for size in arguments.sizes:
        job = {**job_of(arguments, size), "precision": "float32", "compile": False, "learning_steps": steps}
        speeds = in_a_process("translate", job)
        print(size, "translation", speeds)
        cells = [
            " / ".join(f"{speeds[f'{engine} {beam}']:,.0f}" for beam in (1, 5)) if f"{engine} 1" in speeds else ""
            for engine in ("torch", "ctranslate2")
        ]
        rows.append(f"| `{size}` | {' | '.join(cells)} |" if any(cells) else f"| `{size}` | {speeds['failed']} | |")
    return rows


def page(arguments: argparse.Namespace, found: dict[tuple[str, str, str], list[Answer]], translation: list[str]) -> str:
    """The results as a Markdown page."""
    how = f"{counted(arguments.rounds, 'round')} of {arguments.steps} updates of {arguments.batch_tokens:,} tokens"
    look = " This was a quick look (`--quick`), not a measurement: every figure is rough." if arguments.quick else ""
    command = " ".join(["python benchmarks/device.py", *sys.argv[1:]])
    about = (
        f"{described_device(arguments)} Median of {how}, taken in turns.{look} `{command}` writes this page. If you "
        f"have a card, please send yours in, as an issue or a pull request. {describe_machine()}"
    )
    lines = [
        "# Speed of a device",
        "",
        *textwrap.wrap(about, 120, break_on_hyphens=False),
        "",
        "| size | precision | contender | training | share of the peak | memory |",
        "|---|---|---|---|---|---|",
    ]
    for (size, precision, name), answers in found.items():
        usable = [answer for answer in answers if "rate" in answer]
        if not usable:
            lines.append(f"| `{size}` | {precision} | {name} | failed: {answers[-1].get('failed')} | | |")
            continue
        rate = statistics.median(answer["rate"] for answer in usable)
        peak = statistics.median([answer["peak"] for answer in usable if answer.get("peak")] or [0.0])
        share = (
            f"{rate * needed_per_token(size, arguments.vocabulary) / 1e9 / peak:.0%} of {peak:,.0f} GFLOP/s"
            if peak
            else ""
        )
        memory = max(answer.get("memory", 0.0) for answer in usable)
        rest = " | ".join([f"{rate:,.0f} tokens/s", share, f"{memory:,.0f} MB"])
        lines.append(f"| `{size}` | {precision} | {name} | {rest} |")
    lines += [
        "",
        f"Translation of {arguments.lines} lines in float32, output tokens a second, beam 1 / beam 5:",
        "",
        "| size | PyTorch | CTranslate2 |",
        "|---|---|---|",
        *translation,
    ]
    return "\n".join(lines) + "\n"


def described_device(arguments: argparse.Namespace) -> str:
    """What was measured on, and whether it was a card."""
    if arguments.pretend:
        return (
            "**On the pretend card** (tests/pretend_card.py): it shows that everything runs, and no speed of any card."
        )
    device = choose_device(arguments.device)
    if device.type == "cpu":
        return (
            "**On a CPU: no card was there.** Nobody has measured a card yet; that everything runs on one is shown by "
            "the pretend card of the tests alone (`--pretend`)."
        )
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
    memory = free_memory(device)
    return f"**On {name}**{f', {memory[1] / 2**30:.0f} GB' if memory else ''}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, help="default: tiny and base, on a CPU tiny")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=["float32", "bfloat16"])
    parser.add_argument("--data", nargs=2, type=Path, metavar=("SOURCE", "TARGET"), help="default: the built-in corpus")
    parser.add_argument("--steps", type=int, default=40, help="updates to measure")
    parser.add_argument("--batch-tokens", type=int, help="default: 4,096, on a CPU 1,024")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compile", action="store_true", help="also with compiled layers")
    parser.add_argument("--quick", action="store_true", help="`tiny`, one round of a few updates")
    parser.add_argument("--pretend", action="store_true", help="on the pretend card of the tests")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        task, path = arguments.one
        job = json.loads(Path(path).read_text(encoding="utf-8"))
        if job["pretend"]:
            plug_in_pretend_card()
        peak = {"peak": multiplication_peak(job["device"], job["precision"])} if task == "peak" else {}
        print(json.dumps(peak or {"train": train, "translate": translate, "peer": train_peer}[task](job)))
        return
    arguments.device = "card" if arguments.pretend else str(choose_device(arguments.device))
    slow = arguments.device in ("cpu", "card")
    arguments.sizes = arguments.sizes or ["tiny", *([] if slow else ["base"])]
    arguments.batch_tokens = arguments.batch_tokens or (1024 if slow else 4096)
    arguments.lines, arguments.vocabulary = LINES, VOCABULARY if arguments.data else DEMO_VOCABULARY
    if arguments.quick:
        arguments.sizes, arguments.rounds, arguments.steps, arguments.lines = ["tiny"], 1, 2 * LOGGED, 10
        arguments.batch_tokens = min(arguments.batch_tokens, 512)
    with tempfile.TemporaryDirectory() as directory:
        if arguments.data is None:
            write_demo_corpus(Path(directory))
            arguments.data = [Path(directory, f"train.{language}") for language in ("en", "ko")]
        text = page(arguments, measure(arguments, Path(directory)), translation_rows(arguments))
    print(text)
    Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


def plug_in_pretend_card() -> None:
    sys.path.insert(0, str(HERE.parent / "tests"))
    import pretend_card

    pretend_card.install().present = True
    torch.tensor = pretend_card.tensor


if __name__ == "__main__":
    main()
