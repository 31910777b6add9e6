"""A translator in CTranslate2's format, certified, beside its weights."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jumok.bundle import Bundle, load_bundle
from jumok.data.store import TokenStore
from jumok.engines.certificate import ParityError, compare, made_up_sources, require_parity
from jumok.engines.ct2 import Ctranslate2Engine
from jumok.engines.ct2_export import SHORTLIST, export, longest_text
from jumok.engines.engine import SearchOptions, TokenEngine
from jumok.engines.native import TorchEngine
from jumok.engines.shortlist import make_shortlist
from jumok.evaluation import corpus_scores
from jumok.tokenizer import Tokenizer
from jumok.training.records import STORE, read_run

MOST_PROBES = 500
MOST_BLEU_LOST = 0.5  # by rounding to int8, on the probe set

Pairs = Sequence[tuple[str, ...]]


def export_ctranslate2(
    model: Path, *, quantization: str = "float32", probe: Pairs = (), train: TokenStore | None = None
) -> tuple[Path, dict[str, Any]]:
    """Exports the translator in `model`, a bundle or a run; returns where to, and the certificate.

    `probe` are sources and references to compare on, beside sources that are made up. From the pairs it was trained on,
    `train`, a shortlist is made. Raises ParityError, with nothing exported, if the exported model translates otherwise.
    """
    bundle = load_bundle(model)
    probe = list(probe)[:MOST_PROBES]
    certificate: dict[str, Any] = {}

    def certify(directory: Path) -> dict[str, Any]:
        certificate.update(_certify(bundle, directory, quantization, probe))
        return certificate

    shortlist = None if train is None else make_shortlist(_pairs(train), Tokenizer.from_bytes(bundle.tokenizer_bytes))
    return export(bundle, quantization, certify, shortlist), certificate


def _pairs(train: TokenStore) -> Iterator[tuple[list[int], list[int]]]:
    for number in range(len(train)):
        yield train.example("source", number), train.example("target", number)


def store_of_run(run: Path) -> TokenStore | None:
    """The pairs a model was trained on, if they are still there."""
    record = read_run(run)
    return None if record is None else TokenStore.open(run / STORE / "train", record["fingerprint"])


def probe_of_run(run: Path) -> list[tuple[str, ...]]:
    """The validation pairs of a training, if they are still there."""
    file = run / STORE / "valid.jsonl"
    if not file.is_file():
        return []
    return [tuple(json.loads(line)["texts"]) for line in file.read_text(encoding="utf-8").split("\n")[:-1]]


def _certify(bundle: Bundle, directory: Path, quantization: str, probe: Pairs) -> dict[str, Any]:
    tokenizer = Tokenizer.from_bytes(bundle.tokenizer_bytes)
    original = TorchEngine.from_bundle(bundle)
    longest = longest_text(original.model.config)
    exported = Ctranslate2Engine(directory, tokenizer, lambda: original, longest=longest)
    sources = [*tokenizer.encode([pair[0] for pair in probe]), *made_up_sources(tokenizer)]
    found = compare(original, exported, [source for source in sources if len(source) <= longest])
    values = found.to_json()
    if quantization == "float32":
        require_parity(found)
    if not probe:
        return values
    values["bleu"] = _bleu(original, tokenizer, probe)
    if quantization != "float32":
        values["bleu_exported"] = _bleu(exported, tokenizer, probe)
        _require_bleu(values["bleu"], values["bleu_exported"], len(probe))
    if (directory / SHORTLIST).is_file():
        fast = Ctranslate2Engine(directory, tokenizer, lambda: original, longest=longest, fast=True)
        values["bleu_fast"] = _bleu(fast, tokenizer, probe)
    return values


def _bleu(engine: TokenEngine, tokenizer: Tokenizer, probe: Pairs) -> float:
    sources, references = tokenizer.encode([pair[0] for pair in probe]), [pair[1] for pair in probe]
    outputs = tokenizer.decode([found[0].ids for found in engine.generate(sources, SearchOptions(beam=1))])
    return corpus_scores(outputs, references).bleu


def _require_bleu(wanted: float, found: float, probes: int) -> None:
    if found < wanted - MOST_BLEU_LOST:
        raise ParityError(
            f"Rounded to int8 the model has BLEU {found:.2f} instead of {wanted:.2f} on {probes} probes: more than "
            f"{MOST_BLEU_LOST} is lost. Nothing was exported; export it as float32."
        )
