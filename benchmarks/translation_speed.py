"""Sentences a second, text to text: Jumok and CTranslate2 itself, with the very same weights, in turns.

    python benchmarks/translation_speed.py --float32 RUN… --int8 RUN… --file SOURCE --reference TARGET

rewrites translation_speed.md. Each RUN is a training of `jumok train translator`, SOURCE a text file (may be .gz),
repeated as often as it takes, and TARGET its translation, for BLEU (sacreBLEU; `--tokenize none` for tokenised files).
Contenders: Jumok's command as it is; `--fast`; CTranslate2 as its README shows (one translator, its own threads, texts
given at once); CTranslate2 used as well as we can by hand (one thread for each of as many workers as there are cores,
sentences sorted by length, batches by tokens), and the same with a beam search as thorough as ours: CTranslate2's own
ends when as many outputs have ended as the beam is wide, ours with 1.6 times as many (`PATIENCE` in
src/jumok/engines/translator/ctranslate2.py says why).
Each runs in a process of its own, which loads, warms up and then translates.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machine import describe_machine, peak_memory
from sections import sections_of
from turns import rounds_of

PAGE = Path(__file__).with_suffix(".md")
BY_HAND, AS_THOROUGH, README = (
    "CTranslate2 by hand",
    "CTranslate2 by hand, as thorough",
    "CTranslate2 as its README shows",
)
FAST = "jumok --fast"
CONTENDERS = ("jumok", FAST, BY_HAND, AS_THOROUGH, README)
COLUMNS = (
    *("model", "beam", "contender", "a file", "÷ by hand", "Jumok ÷ it", "one at a time", "Jumok ÷ it"),
    *("memory", "equal outputs", "BLEU"),
)
WARM_UP = 64
LATENCY_LINES = 300
FEWEST_LINES = 500
COLD_STARTS = 9
QUANTIZATIONS = ("float32", "int8")
REMARKS = """
Why CTranslate2 by hand can be faster: Jumok's beam search is more thorough (the rows "as thorough" remove that
difference), outputs that repeat themselves or do not end are decoded again, and every text is normalised, split if it
is too long, and joined again. For one sentence at a time, two threads per operation would be a third faster with
float32 on an idle machine; beside another busy process they are four times slower than one thread, and with int8 ten
times or more (as the rows "as its README shows" demonstrate). So each sentence is translated by one thread. Tried
without a gain: preparing texts while others are translated, MKL and packed matrix products inside CTranslate2.
"""

Translate = Callable[[list[str]], list[str]]


def jumok(model: Path, beam: int, *, fast: bool = False) -> Translate:
    from jumok.engines.loading import load

    translator = load(model, "ctranslate2", task="translator", fast=fast)
    return lambda lines: translator.translate(lines, beam=beam)


def as_the_readme_shows(model: Path, beam: int) -> Translate:
    import ctranslate2
    import sentencepiece

    translator = ctranslate2.Translator(str(model / "ctranslate2"), device="cpu")
    pieces = sentencepiece.SentencePieceProcessor(str(model / "tokenizer.model"))

    def translate(lines: list[str]) -> list[str]:
        tokens = pieces.encode(lines, out_type=str)
        return [pieces.decode(found.hypotheses[0]) for found in translator.translate_batch(tokens, beam_size=beam)]

    return translate


def by_hand(model: Path, beam: int, *, tokens: int, patience: float) -> Translate:
    import ctranslate2
    import sentencepiece

    cores = len(os.sched_getaffinity(0))
    translator = ctranslate2.Translator(
        str(model / "ctranslate2"), device="cpu", inter_threads=cores, intra_threads=1, max_queued_batches=-1
    )
    pieces = sentencepiece.SentencePieceProcessor(str(model / "tokenizer.model"))

    def translate(lines: list[str]) -> list[str]:
        encoded = pieces.encode(lines, out_type=str, num_threads=cores)
        order = sorted(range(len(lines)), key=lambda i: len(encoded[i]))
        found = translator.translate_batch(
            [encoded[i] for i in order],
            beam_size=beam,
            patience=patience,
            max_batch_size=tokens,
            batch_type="tokens",
        )
        texts = pieces.decode([each.hypotheses[0] for each in found], num_threads=cores)
        return [text for _, text in sorted(zip(order, texts, strict=True))]

    return translate


def contender(name: str, model: Path, beam: int, tokens: int) -> Translate:
    if name == README:
        return as_the_readme_shows(model, beam)
    if name == BY_HAND:
        return by_hand(model, beam, tokens=tokens, patience=1)
    if name == AS_THOROUGH:
        from jumok.engines.translator.ctranslate2 import PATIENCE

        return by_hand(model, beam, tokens=tokens, patience=PATIENCE)
    return jumok(model, beam, fast=name == FAST)


def run_one(arguments: argparse.Namespace) -> None:
    """One contender in this process: sentences a second for the file and one at a time, megabytes, and the outputs."""
    lines = read(arguments.file, arguments.lines)
    translate = contender(arguments.one, arguments.run, arguments.beam, arguments.tokens)
    for some in (lines[:WARM_UP], lines[:1]):
        translate(some)
    started = time.perf_counter()
    outputs = translate(lines)
    whole = len(lines) / (time.perf_counter() - started)
    some = lines[:LATENCY_LINES]
    started = time.perf_counter()
    for line in some:
        translate([line])
    alone = len(some) / (time.perf_counter() - started)
    print(json.dumps({"file": whole, "alone": alone, "memory": peak_memory(), "outputs": outputs}))


def read(path: Path, count: int | None = None) -> list[str]:
    """The lines of a file, repeated until there are so many."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = data.decode().removesuffix("\n").split("\n")
    return list(itertools.islice(itertools.cycle(lines), count or len(lines)))


def measure(name: str, model: Path, beam: int, arguments: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", name, "--run", str(model), "--file", str(arguments.file)]
    command += ["--beam", str(beam), "--lines", str(arguments.lines), "--tokens", str(arguments.tokens)]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return result


def compare(model: Path, beam: int, arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """All contenders, round by round, each time in another order; without --fast if there is no shortlist."""
    has_shortlist = (model / "ctranslate2" / "vmap.txt").is_file()
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in CONTENDERS if name != FAST or has_shortlist}
    for _, name in rounds_of(list(results), arguments.rounds):
        results[name].append(measure(name, model, beam, arguments))
    return results


def bleu(outputs: list[str], arguments: argparse.Namespace) -> str:
    """Of the lines of the file, each once."""
    if not arguments.reference:
        return ""
    import sacrebleu

    references = read(arguments.reference)[: len(outputs)]
    outputs = outputs[: len(references)]
    return f"{sacrebleu.corpus_bleu(outputs, [references], tokenize=arguments.tokenize, force=True).score:.1f}"


def rows(title: str, beam: int, results: dict[str, list[dict[str, Any]]], arguments: argparse.Namespace) -> list[str]:
    """Lines of the table. Ratios are taken round by round."""
    lines = []
    for name in results:
        same = [a == b for a, b in zip(results["jumok"][0]["outputs"], results[name][0]["outputs"], strict=True)]
        cells = [
            f"{statistics.median(round_['file'] for round_ in results[name]):,.0f}",
            ratio(results[name], results[BY_HAND], "file") if name != BY_HAND else "1",
            ratio(results["jumok"], results[name], "file") if name != "jumok" else "1",
            f"{statistics.median(round_['alone'] for round_ in results[name]):,.0f}",
            ratio(results["jumok"], results[name], "alone") if name != "jumok" else "1",
            f"{max(round_['memory'] for round_ in results[name]):,.0f} MB",
            f"{sum(same) / len(same):.1%}",
            bleu(results[name][0]["outputs"], arguments),
        ]
        lines.append(f"| {title} | {beam} | {name} | {' | '.join(cells)} |")
    return lines


def ratio(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], what: str) -> str:
    """The median, and from the least to the most."""
    ratios = sorted(one[what] / other[what] for one, other in zip(ours, theirs, strict=True))
    return f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"


def cold_start(model: Path, line: str) -> float:
    """Seconds from the command to the first translation, all in."""
    times = []
    for _ in range(COLD_STARTS):
        started = time.perf_counter()
        command = [sys.executable, "-m", "jumok", "translate", "-m", str(model)]
        subprocess.run(command, input=f"{line}\n", check=True, stdout=subprocess.DEVNULL, text=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def exported_copy(run: Path, copy: Path, quantization: str) -> Path:
    """A copy of the run with a new export."""
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("checkpoints"))
    command = [sys.executable, "-m", "jumok", "export", "-m", str(copy), "--quantization", quantization]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return copy / "model"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for quantization in QUANTIZATIONS:
        parser.add_argument(f"--{quantization}", type=Path, nargs="+", default=[], metavar="RUN")
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--reference", type=Path, help="the translations of the file")
    parser.add_argument("--tokenize", default="13a", help="of sacreBLEU")
    parser.add_argument("--lines", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=2048, help="of a batch of CTranslate2 by hand")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--beam", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_one(arguments)
        return
    if not arguments.float32 and not arguments.int8:
        parser.error("a training is needed: --float32 RUN, --int8 RUN or both")
    if arguments.lines < FEWEST_LINES:
        parser.error(f"--lines {arguments.lines}: the speed of fewer than {FEWEST_LINES} lines is mostly chance")
    table: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        for quantization in QUANTIZATIONS:
            for run in getattr(arguments, quantization):
                vocabulary = json.loads((run / "model" / "config.json").read_text(encoding="utf-8"))["vocabulary"]
                title = f"{vocabulary:,} tokens, {quantization}"
                model = exported_copy(run, Path(temporary, str(len(table)), title), quantization)
                for beam in (1, 5):
                    found = rows(title, beam, compare(model, beam, arguments), arguments)
                    print(*found, sep="\n", flush=True)
                    table += found
                started = cold_start(model, read(arguments.file, 1)[0])
    PAGE.write_text(page(table, started, arguments), encoding="utf-8")


def page(table: list[str], started: float, arguments: argparse.Namespace) -> str:
    return f"""# Translation speed

`python benchmarks/translation_speed.py --float32 RUN… --int8 RUN… --file SOURCE --reference TARGET
--tokenize {arguments.tokenize} --lines {arguments.lines} --rounds {arguments.rounds}`
writes this page: sentences per second, text to text, with the same weights for all;
{arguments.lines:,} lines, {arguments.rounds} alternating rounds. The docstring of that file describes the contenders.
"÷ by hand" is the speed relative to CTranslate2 by hand, "Jumok ÷ it" Jumok's speed relative to the contender: medians
of the rounds, with the smallest and the largest in parentheses. "Equal outputs" is the share equal to Jumok's, BLEU is
against {arguments.reference.name if arguments.reference else "nothing"}. One at a time: {LATENCY_LINES} sentences.
{describe_machine()}

| {" | ".join(COLUMNS)} |
|{"---|" * len(COLUMNS)}
{chr(10).join(table)}

From starting the command to the first translation, with the last of these models: {started:.2f} s (`jumok translate`,
median of {COLD_STARTS}).
{REMARKS}{sections_of(PAGE)}"""


if __name__ == "__main__":
    main()
