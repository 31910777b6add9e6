"""What the contenders have in common. Runs in each peer's own environment: sentencepiece, numpy and safetensors only.

A contender's file names up to three functions and calls `run`:

    train(job, clock)     the peer's real training: `clock.step(tokens)` is called where an update begins, or the answer
                          is returned. Every update learns from the batch of `batches_of(job)` that has its number
    convert(job)          the weights of a Jumok model into the peer's format, below job["work"]
    load(job, beam)       a function from lines of text to lines of text

A job is a JSON file written by benchmarks/peers.py, which reads the answer from job["result"].
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from machine import peak_memory

Job = dict[str, Any]
Translate = Callable[[list[str]], list[str]]
WARM_UP_LINES = 64


class Enough(BaseException):
    """Ends a training from within; no trainer catches it."""


class Clock:
    """Seconds for so many updates, from where the first one after warming up begins to where one more would."""

    def __init__(self, job: Job) -> None:
        self.job, self.number, self.tokens, self.started = job, 0, 0, 0.0

    def step(self, tokens: int) -> None:
        """An update begins which learns from so many target tokens, `</s>` counted and padding not."""
        now, done = time.perf_counter(), self.number - self.job["warm_up"]
        if done == 0:
            self.tokens, self.started = 0, now
        if done == self.job["steps"]:
            if self.tokens != self.job["target_tokens"]:
                raise SystemExit(f"Other batches: {self.tokens} target tokens instead of {self.job['target_tokens']}.")
            seconds = now - self.started
            self.answer = {"rate": self.tokens / seconds, "steps": done, "tokens": self.tokens, "seconds": seconds}
            raise Enough
        self.number += 1
        self.tokens += tokens


def batches_of(job: Job) -> list[list[int]]:
    """For each update, the lines of the training text that it learns from."""
    found: list[list[int]] = json.loads(Path(job["batches"]).read_text(encoding="utf-8"))
    return found


def run(
    *,
    train: Callable[[Job, Clock], dict[str, Any] | None] | None = None,
    convert: Callable[[Job], None] | None = None,
    load: Callable[[Job, int], Translate] | None = None,
) -> None:
    """Does what the command line asks for: `train JOB`, `convert JOB`, `translate JOB` or `first JOB`."""
    task, path = sys.argv[1:]
    job: Job = json.loads(Path(path).read_text(encoding="utf-8"))
    answer: dict[str, Any] = {}
    if task == "train":
        assert train is not None
        answer = timed_training(job, train)
    elif task == "convert":
        assert convert is not None
        convert(job)
    elif task == "translate":
        assert load is not None
        answer = {"beams": {beam: timed_translation(job, load(job, beam)) for beam in job["beams"]}}
    else:  # first: from the command to one translated sentence
        assert load is not None
        answer = {"output": load(job, job["beams"][0])([job["line"]])[0]}
    answer.setdefault("memory", peak_memory())
    Path(job["result"]).write_text(json.dumps(answer), encoding="utf-8")


def timed_training(job: Job, train: Callable[[Job, Clock], dict[str, Any] | None]) -> dict[str, Any]:
    clock = Clock(job)
    try:
        answer = train(job, clock)
    except Enough:
        return clock.answer
    if answer is None:
        raise SystemExit(f"The training ended by itself after {clock.number} updates.")
    return answer


def timed_translation(job: Job, translate: Translate) -> dict[str, Any]:
    """Sentences a second for a file and one at a time, after warming up with both. The file is as many lines long as
    take about job["seconds"], but at least job["fewest_lines"] and at most all."""
    lines = Path(job["lines"]).read_text(encoding="utf-8").split("\n")
    translate(lines[:WARM_UP_LINES])
    started = time.perf_counter()
    translate(lines[:WARM_UP_LINES])
    rate = WARM_UP_LINES / (time.perf_counter() - started)
    some = lines[: max(job["fewest_lines"], int(rate * job["seconds"]))]
    started = time.perf_counter()
    outputs = translate(some)
    seconds = time.perf_counter() - started
    for line in lines[:3]:
        translate([line])
    started = time.perf_counter()
    for line in lines[: job["lines_alone"]]:
        translate([line])
    return {"seconds": seconds, "outputs": outputs, "alone": job["lines_alone"] / (time.perf_counter() - started)}


def pieces_of(job: Job) -> Any:
    """The vocabulary's SentencePiece model."""
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(job["tokenizer"])


def text_to_text(job: Job, translate: Callable[[list[list[str]]], list[list[str]]]) -> Translate:
    """Around a contender that reads and writes pieces."""
    pieces = pieces_of(job)
    return lambda lines: pieces.decode(translate(pieces.encode(lines, out_type=str)))


def read_lines(path: str | Path) -> list[str]:
    data = Path(path).read_bytes()
    return (gzip.decompress(data) if str(path).endswith(".gz") else data).decode().removesuffix("\n").split("\n")


def write_pieces(job: Job, directory: Path, pairs: int) -> None:
    """The first pairs of the corpus in the pieces of the model to be converted, and its vocabulary.

    Some peers make a model only by training one.
    """
    pieces = pieces_of(job)
    directory.mkdir(parents=True, exist_ok=True)
    for path, side in zip(job["data"], ("src", "tgt"), strict=True):
        lines = pieces.encode(read_lines(path)[:pairs], out_type=str)
        for name in ("train", "valid", "batches"):
            text = "".join(" ".join(line) + "\n" for line in lines)
            (directory / f"{name}.{side}").write_text(text, encoding="utf-8")
    vocabulary = "".join(f"{pieces.id_to_piece(number)}\n" for number in range(pieces.get_piece_size()))
    (directory / "vocabulary.txt").write_text(vocabulary, encoding="utf-8")


def longest_first(sentences: list[list[str]], size: int) -> list[list[int]]:
    """Places of the sentences in batches of so many, sorted by length so that little is padded."""
    order = sorted(range(len(sentences)), key=lambda place: -len(sentences[place]))
    return [order[start : start + size] for start in range(0, len(order), size)]


def split_weights(job: Job) -> dict[str, Any]:
    """The weights of a Jumok model with queries, keys and values apart, and biases that are zero where it has none.

    Names: `encoder.0.self.query.weight`, …`key`, `value`, `output`; `decoder.0.cross.…`; `encoder.0.self.norm`;
    `encoder.0.ff.in`, `ff.out`, `ff.norm`; `encoder.norm`; `embedding`.
    """
    from safetensors.numpy import load_file

    if job["model"].get("rotary"):
        raise SystemExit(
            "This model rotates queries and keys, which a peer would not do: train with model.rotary=false."
        )
    given = load_file(job["weights"])
    found: dict[str, Any] = {"embedding": given["embed.tokens.weight"]}
    for stack in ("encoder", "decoder"):
        _keep(found, f"{stack}.norm", given, f"{stack}.norm")
        for number in range(job["model"][f"{stack}_layers"]):
            _split_layer(found, f"{stack}.{number}", given, f"{stack}.layers.{number}")
    return found


def _split_layer(found: dict[str, Any], name: str, given: Mapping[str, Any], theirs: str) -> None:
    attentions = {"self": "attention"} if name.startswith("encoder") else {"self": "self_attention"}
    if name.startswith("decoder"):
        attentions["cross"] = "cross_attention"
    for place, (short, attention) in enumerate(attentions.items(), 1):
        _keep(found, f"{name}.{short}.norm", given, f"{theirs}.add_norm_{place}.norm")
        _keep(found, f"{name}.{short}.output", given, f"{theirs}.{attention}.output")
        packed = {"self": {"query_key_value": ("query", "key", "value")}}
        packed["cross"] = {"query": ("query",), "key_value": ("key", "value")}
        for together, parts in packed[short].items():
            _keep_parts(found, [f"{name}.{short}.{part}" for part in parts], given, f"{theirs}.{attention}.{together}")
    _keep(found, f"{name}.ff.norm", given, f"{theirs}.add_norm_{len(attentions) + 1}.norm")
    _keep(found, f"{name}.ff.in", given, f"{theirs}.feed_forward.widen")
    _keep(found, f"{name}.ff.out", given, f"{theirs}.feed_forward.narrow")


def _keep(found: dict[str, Any], name: str, given: Mapping[str, Any], theirs: str) -> None:
    if f"{theirs}.weight" in given:  # a post-norm stack has no norm at its end
        _keep_parts(found, [name], given, theirs)


def _keep_parts(found: dict[str, Any], names: list[str], given: Mapping[str, Any], theirs: str) -> None:
    import numpy as np

    weight = given[f"{theirs}.weight"]
    bias = given.get(f"{theirs}.bias", np.zeros(len(weight), np.float32))
    for name, part, offset in zip(names, np.split(weight, len(names)), np.split(bias, len(names)), strict=True):
        found[f"{name}.weight"], found[f"{name}.bias"] = part, offset


def renamed(weights: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The weights under a peer's names: every part of a name that is a key becomes its value."""
    result = {}
    for name, value in weights.items():
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        result[name] = value
    return result
