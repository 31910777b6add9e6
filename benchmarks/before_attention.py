"""What came before: recurrent translators without and with attention beside the Transformer of about their size.

    python benchmarks/before_attention.py --data DIRECTORY --work DIRECTORY             # rewrites the page and picture
    python benchmarks/before_attention.py --data DIRECTORY --work DIRECTORY --untrained  # only what needs no training

`--data` holds Multi30k: {train,val,test_2016_flickr}.{en,de}.gz. In `--work` are the trainings, which resume, and what
was measured: the same command continues after an interruption. The page is written anew from what is there.

Each corpus is trained on for so many minutes by each model, with the real `jumok train` (the built-in one for half as
long), and by both recurrent ones also for as many steps as the Transformer then made. All get the same text: the
sentences, and every sentence a second time in a line of two, three or four neighbours, so that long lines are nothing
new to any of them. Tests are the sentences of the test set by length, and lines of two, three and four of them.
All of it takes about 40 minutes on two cores that do nothing else.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from before_attention_page import write_page
from machine import describe_machine
from torch import Tensor
from turns import in_turns

from jumok.bundle import load_bundle
from jumok.demo.pairs import write_demo_corpus
from jumok.engines.loading import load
from jumok.engines.options import SearchOptions
from jumok.metrics.translation import corpus_scores
from jumok.model.config import preset
from jumok.model.encoder_decoder import EncoderDecoder
from jumok.system import keep_freed_memory
from jumok.tasks import resolve, task_of_config
from jumok.tokenizer import BOS, EOS
from jumok.training.objective import smoothed_cross_entropy

MODELS = ("rnn", "rnn-attention", "tiny")
# The models are compared, not what suits each of them best.
SAME = {"optimizer.name": "adam", "precision": "float32", "loss.candidates": 1_000_000}
SETTINGS = {
    "multi30k": {"batch.tokens": 1024, "tokenizer.size": 4000, "validate.sentences": 200, **SAME},
    "built-in": {"batch.tokens": 1024, "tokenizer.size": 2000, "validate.sentences": 200, **SAME},
}
# Those of the preset, as in the other parts, and the paper's positions alone.
SIZES = {
    "tiny": {
        "model.encoder_layers": 4,
        "model.decoder_layers": 4,
        "model.d_model": 128,
        "model.d_ff": 256,
        "model.rotary": "false",
    }
}
LENGTHS = ((1, 8), (9, 12), (13, 16), (17, 24), (25, 1000))  # words of a source
JOINED = (2, 3, 4)  # sentences in a line
SPEED_LENGTHS, SPEED_TOKENS, SPEED_ROUNDS, VOCABULARY = (8, 16, 32, 64, 128), 512, 5, 4000
DISTANCES = ((0, 7), (8, 15), (16, 31), (32, 63), (64, 127))  # tokens
REACH_NEW, REACH_TRAINED, REACH_ROWS = 128, 32, 32  # largest distances + 1, and number of sources

Pairs = list[tuple[str, str]]


def joined(pairs: Pairs, count: int) -> Pairs:
    """Lines of so many neighbouring sentences each; what is left over at the end is dropped."""
    groups = [pairs[start : start + count] for start in range(0, len(pairs) - count + 1, count)]
    return [(" ".join(pair[0] for pair in group), " ".join(pair[1] for pair in group)) for group in groups]


def with_long_lines(pairs: Pairs) -> Pairs:
    """The pairs, and each of them once more in a line of two, three or four."""
    third = len(pairs) // 3
    parts = [joined(pairs[number * third : (number + 1) * third], count) for number, count in enumerate(JOINED)]
    return [*pairs, *(pair for part in parts for pair in part)]


def read_corpus(name: str, data: Path, work: Path) -> dict[str, Pairs]:
    """The pairs of the parts train, valid and test."""
    if name == "built-in":
        found = write_demo_corpus(work / "demo")
        return {"train": list(found.train), "valid": list(found.valid), "test": list(found.test)}
    parts = {"train": "train", "valid": "val", "test": "test_2016_flickr"}

    def lines(part: str, language: str) -> list[str]:
        return gzip.decompress((data / f"{part}.{language}.gz").read_bytes()).decode().splitlines()

    return {name: list(zip(lines(part, "en"), lines(part, "de"), strict=True)) for name, part in parts.items()}


def write_corpus(name: str, parts: dict[str, Pairs], work: Path) -> list[str]:
    """Write what is trained and validated on; returns the arguments that name the files."""
    target = "ko" if name == "built-in" else "de"
    files = []
    for part in ("train", "valid"):
        pairs = with_long_lines(parts[part])
        for side, language in enumerate(("en", target)):
            path = work / f"{name}.{part}.{language}"
            path.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
            files.append(str(path))
    return [*files[:2], "--valid", *files[2:]]


def train(run: Path, files: list[str], model: str, corpus: str, length: list[str]) -> dict[str, Any]:
    """Train with the real command, or continue; says how it went."""
    command = [sys.executable, "-m", "jumok", "train", "translator", *files, "-o", str(run), "--preset", model]
    settings = [f"--set={name}={value}" for name, value in {**SETTINGS[corpus], **SIZES.get(model, {})}.items()]
    subprocess.run([*command, *length, *settings, "--quiet"], check=True)
    log = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    last = [entry for entry in log if entry["event"] == "train"][-1]
    facts = {"steps": last["step"], "seconds": last["seconds"], "tokens": last["tokens"]}
    targets = Path(files[1]).read_text(encoding="utf-8").splitlines()
    epoch = sum(len(ids) + 1 for ids in load(run, "torch").tokenizer.encode(targets))
    return {**facts, "epoch_tokens": epoch, "parameters": load_bundle(run).card["parameters"]}


def test_sets(pairs: Pairs) -> dict[str, Pairs]:
    """The test pairs by the words of their sources, and joined to long lines."""
    found = {}
    for low, high in LENGTHS:
        some = [pair for pair in pairs if low <= len(pair[0].split()) <= high]
        label = f"{low}–{high} words" if high < 1000 else f"{low} words and more"
        if len(some) >= 5:
            found[label] = some
    return found | {f"{count} sentences": joined(pairs, count) for count in JOINED}


def evaluate(run: Path, pairs: Pairs) -> dict[str, Any]:
    """BLEU of greedy translations for each length; lines are not split, as `jumok translate` would do."""
    translator = load(run, "torch", task="translator")
    scores = {}
    for label, some in test_sets(pairs).items():
        sources = translator.tokenizer.encode([pair[0] for pair in some])
        found = translator.engine.generate(sources, SearchOptions(beam=1, max_ratio=1.5))
        outputs = translator.tokenizer.decode([best[0].ids for best in found])
        scores[label] = {"lines": len(some), "bleu": corpus_scores(outputs, [pair[1] for pair in some]).bleu}
    return scores


def train_and_evaluate(
    run: Path, files: list[str], model: str, corpus: str, length: list[str], pairs: Pairs
) -> dict[str, Any]:
    """One training and its scores."""
    return {**train(run, files, model, corpus, length), "scores": evaluate(run, pairs)}


def new_model(name: str) -> EncoderDecoder:
    """An untrained model, always the same."""
    torch.manual_seed(1)
    config = preset(name, vocabulary=VOCABULARY)
    model: EncoderDecoder = resolve(task_of_config(config.to_dict()).model)(config)
    return model


def measure_speed() -> dict[str, dict[int, float]]:
    """Microseconds of training for a token, by model and by the length of all sentences."""
    found: dict[str, dict[int, float]] = {name: {} for name in MODELS}
    models = {name: new_model(name).train() for name in MODELS}
    for length in SPEED_LENGTHS:
        text = torch.randint(4, VOCABULARY, (SPEED_TOKENS // length, length))

        def step(model: EncoderDecoder, text: Tensor) -> None:
            states = model.states(text, text).flatten(0, 1)
            smoothed_cross_entropy(states, model.embed.tokens.weight, text.flatten(), 0.1).backward()

        contenders = {name: partial(step, model, text) for name, model in models.items()}
        for name, seconds in in_turns(contenders, SPEED_ROUNDS).items():
            found[name][length] = 1e6 * seconds / SPEED_TOKENS
    return found


def gradient_norms(model: EncoderDecoder, source: Tensor, target: Tensor) -> Tensor:
    """How strongly the last output depends on each source token: the norm of the gradient of its loss with respect to
    their embeddings, [B, S]."""
    embedded: list[Tensor] = []
    with torch.inference_mode(False), torch.enable_grad():
        hook = model.embed.register_forward_hook(lambda _module, _inputs, output: embedded.append(output))
        states = model.eval().requires_grad_(True).states(source, target[:, :-1])
        hook.remove()
        log_probs = model.logits(states[:, -1]).log_softmax(-1)
        (gradient,) = torch.autograd.grad(-log_probs.gather(1, target[:, -1:]).sum(), embedded[:1])
    return gradient.norm(dim=-1)


def by_distance(sources: Sequence[Tensor], longest: int) -> list[float]:
    """The mean norms of the tokens at each distance from the nearer end of a source, below `longest`: the recurrent
    encoder reads in both directions, so that the way from the middle is the longest."""
    norms = torch.cat([torch.cat((each[:, :longest], each.flip(1)[:, :longest])) for each in sources])
    return [float(norms[:, low : high + 1].mean()) for low, high in DISTANCES if low < longest]


def reach_of_new_models() -> dict[str, list[float]]:
    """The reach of untrained models on random tokens."""
    random = torch.randint(4, VOCABULARY, (REACH_ROWS, 2 * REACH_NEW), generator=torch.Generator().manual_seed(1))
    return {name: by_distance([gradient_norms(new_model(name), random, random[:, :8])], REACH_NEW) for name in MODELS}


def reach_of_trained_models(work: Path, pairs: Pairs) -> dict[str, list[float]]:
    """The reach of trained models on the long ones among lines of four test sentences."""
    found = {}
    for name in MODELS:
        translator = load(work / f"multi30k-{name}-minutes", "torch", task="translator")
        encode, model = translator.tokenizer.encode, translator.engine.model
        rows = zip(*(encode([pair[side] for pair in joined(pairs, JOINED[-1])]) for side in (0, 1)), strict=True)
        long = [(source, target) for source, target in rows if len(source) >= 2 * REACH_TRAINED][:REACH_ROWS]
        sides = [(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]])) for source, target in long]
        found[name] = by_distance([gradient_norms(model, *both) for both in sides], REACH_TRAINED)
    return found


def cached(path: Path, measure: Callable[[], Any]) -> Any:
    """What was measured before, or now."""
    if not path.exists():
        path.write_text(json.dumps(measure(), indent=1), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def trainings(corpus: str, minutes: float, results: dict[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    """(model, "minutes" or "steps", options of the length). The Transformer's steps are those of the others."""
    for model in ("tiny", "rnn", "rnn-attention"):
        yield model, "minutes", ["--minutes", f"{minutes if corpus == 'multi30k' else minutes / 2:g}"]
    for model in ("rnn", "rnn-attention"):
        yield model, "steps", ["--steps", str(results[f"{corpus}-tiny-minutes"]["steps"])]


def measure_trained(data: Path, work: Path, minutes: float) -> dict[str, Any]:
    """What trained models can do, as far as it is not there yet."""
    results: dict[str, Any] = {"runs": {}, "minutes": minutes}
    for corpus in SETTINGS:
        parts = read_corpus(corpus, data, work)
        files = write_corpus(corpus, parts, work)
        for model, kind, length in trainings(corpus, minutes, results["runs"]):
            name = f"{corpus}-{model}-{kind}"
            print(name, flush=True)
            job = partial(train_and_evaluate, work / name, files, model, corpus, length, parts["test"])
            results["runs"][name] = cached(work / f"{name}.json", job)
        if corpus == "multi30k":
            reach = partial(reach_of_trained_models, work, parts["test"])
            results["reach_trained"] = cached(work / "reach_trained.json", reach)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=4, help="of each training on Multi30k")
    parser.add_argument("--untrained", action="store_true", help="measure only what needs no training")
    arguments = parser.parse_args()
    keep_freed_memory()
    work = arguments.work / ("untrained" if arguments.untrained else f"minutes-{arguments.minutes:g}")
    work.mkdir(parents=True, exist_ok=True)
    results = {"machine": cached(work / "machine.json", describe_machine), "distances": DISTANCES}
    if not arguments.untrained:
        results |= measure_trained(arguments.data, work, arguments.minutes)
    results["reach"] = cached(work / "reach.json", reach_of_new_models)
    results["speed"] = cached(work / "speed.json", measure_speed)
    busy = cached(work / "load.json", lambda: os.getloadavg()[1])
    if busy > 2 * (os.cpu_count() or 1):
        results["machine"] += f" The machine was busy (load average {busy:.0f}): times are unreliable."
    write_page(results)


if __name__ == "__main__":
    main()
