"""A model in CTranslate2's format, certified, beside its weights."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jumok.bundle import Bundle, load_bundle
from jumok.data.corpus import read_valid
from jumok.data.store import TokenStore
from jumok.engines.certificate import (
    ParityError,
    compare,
    compare_scores,
    continuations,
    made_up_sources,
    require_parity,
    translations,
)
from jumok.engines.classifier.ctranslate2 import Ctranslate2Classifier
from jumok.engines.classifier.torch import TorchClassifier
from jumok.engines.conversion import SHORTLIST, export, longest_text
from jumok.engines.engine import SearchOptions, TokenEngine
from jumok.engines.language_model.ctranslate2 import Ctranslate2LanguageModel
from jumok.engines.language_model.text import LanguageEngine
from jumok.engines.language_model.torch import TorchLanguageModel
from jumok.engines.translator.ctranslate2 import PATIENCE, Ctranslate2Engine, exported_model
from jumok.engines.translator.shortlist import learn_lexicon
from jumok.engines.translator.torch import TorchEngine
from jumok.errors import BundleError, ConfigError
from jumok.metrics.translation import corpus_scores, pair_scores, total_score
from jumok.model.config import config_from_dict
from jumok.tokenizer import Tokenizer
from jumok.training.records import MODEL, STORE, read_run

MOST_PROBES = 500
# What rounding to int8 may cost, on the probe set.
MOST_BLEU_LOST = 0.5
# Candidates of a source piece, frequent pieces, and the patience of beam search: from the fastest on, until one costs
# at most this much. Of 500 probes, a few outputs that are no worse but others change BLEU by more.
SHORTLISTS = ((50, 300, 1.0), (50, 300, 1.2), (50, 300, PATIENCE), (100, 1_000, PATIENCE))
MOST_BLEU_LOST_BY_SHORTLIST, FAST_BEAM, MOST_FAST_PROBES = 0.1, 5, 1_000
LEAST_BLEU = 1.0  # of greedy search; with less there is nothing yet to be quick about, and outputs may never end
SHORTLIST_PAIRS = 60_000  # more change the lists hardly at all
MOST_BITS_LOST = 0.02  # a token
MOST_OTHER_ANSWERS = 0.01  # of a classifier
PROMPTS, CONTINUED = 16, 32  # probes that a language model continues, and by how many tokens

Probe = Sequence[tuple[str, ...]]  # the texts of each example: source and reference, or the one there is


def export_ctranslate2(
    model: Path, *, quantization: str = "float32", probe: Probe = (), train: TokenStore | None = None
) -> tuple[Path, dict[str, Any]]:
    """Exports the model in `model`, a bundle or a run; returns where to, and the certificate.

    `probe` are examples to compare on, beside some that are made up. From the pairs a translator was trained on,
    `train`, a shortlist is made, if that does no harm on the probe set. Raises ParityError, with nothing exported, if
    the exported model answers otherwise.
    """
    bundle = load_bundle(model)
    task = bundle.config.get("task", "translator")
    probe = list(probe)
    if quantization != "float32" and not probe:
        raise ConfigError(
            f"{quantization} has to be compared on examples. Give --probe, or the run directory of the training as -m."
        )
    certificate: dict[str, Any] = {}

    def certify(directory: Path) -> dict[str, Any]:
        certificate.update(_CERTIFY[task](bundle, directory, quantization, probe[:MOST_PROBES]))
        if train is not None and certificate.get("bleu", 0.0) >= LEAST_BLEU:
            certificate.update(_add_shortlist(bundle, directory, probe[:MOST_FAST_PROBES], train))
        return certificate

    return export(bundle, quantization, certify), certificate


def is_exported(model: Path) -> bool:
    """Whether there is a sound export of these very weights."""
    try:
        return exported_model(load_bundle(model)) is not None
    except BundleError:  # a damaged export is made again
        return False


def _pairs(train: TokenStore) -> Iterator[tuple[list[int], list[int]]]:
    for number in random.Random(0).sample(range(len(train)), min(len(train), SHORTLIST_PAIRS)):  # a file may be sorted
        yield train.example("source", number), train.example("target", number)


def store_of_run(model: Path) -> TokenStore | None:
    """The examples a model was trained on, if they are still there. `model` is a run, or the model in it."""
    run = _run_of(model)
    record = read_run(run)
    return None if record is None else TokenStore.open(run / STORE / "train", record["fingerprint"])


def probe_of_run(model: Path) -> list[tuple[str, ...]]:
    """The validation examples of a training, if they are still there. `model` is a run, or the model in it."""
    store = _run_of(model) / STORE
    return [example.inputs for example in read_valid(store)] if (store / "valid.jsonl").is_file() else []


def _run_of(model: Path) -> Path:
    """`model`, or the directory around it if that is called as the model of a run is."""
    directory = Path(os.path.abspath(model))
    return directory.parent if directory.name == MODEL and read_run(directory) is None else directory


def _certify_translator(bundle: Bundle, directory: Path, quantization: str, probe: Probe) -> dict[str, Any]:
    tokenizer = Tokenizer.from_bytes(bundle.encoder_bytes)
    original = TorchEngine.from_bundle(bundle)
    longest = longest_text(original.model.config)
    exported = _engine(bundle, directory)
    sources = [*tokenizer.encode([pair[0] for pair in probe]), *made_up_sources(tokenizer)]
    probed = translations(original), translations(exported)
    found = compare(*probed, [source for source in sources if len(source) <= longest])
    values = found.to_json()
    if quantization == "float32":
        require_parity(found)
    if not probe:
        return values
    values["bleu"] = _bleu(original, tokenizer, probe)
    if quantization != "float32":
        values["bleu_exported"] = _bleu(exported, tokenizer, probe)
        _require_bleu(values["bleu"], values["bleu_exported"], len(probe))
    return values


def _engine(bundle: Bundle, directory: Path, *, fast: float | None = None) -> Ctranslate2Engine:
    tokenizer = Tokenizer.from_bytes(bundle.encoder_bytes)
    longest = longest_text(config_from_dict(bundle.config))
    return Ctranslate2Engine(directory, tokenizer, lambda: TorchEngine.from_bundle(bundle), longest=longest, fast=fast)


def _add_shortlist(bundle: Bundle, directory: Path, probe: Probe, train: TokenStore) -> dict[str, Any]:
    """Puts a shortlist beside the exported model, the fastest that costs hardly any BLEU, if there is one."""
    tokenizer = Tokenizer.from_bytes(bundle.encoder_bytes)
    lexicon = learn_lexicon(_pairs(train), tokenizer.size)
    values: dict[str, Any] = {"bleu_beam": _bleu(_engine(bundle, directory), tokenizer, probe, FAST_BEAM)}
    for candidates, frequent, patience in SHORTLISTS:
        (directory / SHORTLIST).write_bytes(lexicon.shortlist(tokenizer, candidates, frequent))
        values["bleu_fast"] = _bleu(_engine(bundle, directory, fast=patience), tokenizer, probe, FAST_BEAM)
        if values["bleu_fast"] >= values["bleu_beam"] - MOST_BLEU_LOST_BY_SHORTLIST:
            chosen = {"candidates": candidates, "frequent": frequent, "patience": patience}
            return {**values, "shortlist": chosen}
    (directory / SHORTLIST).unlink()
    return {**values, "shortlist": None}


def _bleu(engine: TokenEngine, tokenizer: Tokenizer, probe: Probe, beam: int = 1) -> float:
    sources, references = tokenizer.encode([pair[0] for pair in probe]), [pair[1] for pair in probe]
    outputs = tokenizer.decode([found[0].ids for found in engine.generate(sources, SearchOptions(beam=beam))])
    return corpus_scores(outputs, references).bleu


def _require_bleu(wanted: float, found: float, probes: int) -> None:
    if found < wanted - MOST_BLEU_LOST:
        raise ParityError(
            f"Rounded to int8 the model has BLEU {found:.2f} instead of {wanted:.2f} on {probes} probes: more than "
            f"{MOST_BLEU_LOST} is lost. Nothing was exported; export it as float32."
        )


def _certify_language_model(bundle: Bundle, directory: Path, quantization: str, probe: Probe) -> dict[str, Any]:
    tokenizer = Tokenizer.from_bytes(bundle.encoder_bytes)
    original = TorchLanguageModel.from_bundle(bundle)
    longest = longest_text(original.model.config)
    exported = Ctranslate2LanguageModel(directory, tokenizer, lambda: original, longest=longest)
    passages = tokenizer.encode([texts[0] for texts in probe])
    tokens = min(CONTINUED, longest // 2)
    begun = [passage[: 1 + len(passage) // 3] for passage in passages[:PROMPTS]]
    prompts = [prompt[: longest - tokens] for prompt in (*begun, *made_up_sources(tokenizer))]
    found = compare(continuations(original, tokens), continuations(exported, tokens), prompts)
    values = found.to_json()
    if quantization == "float32":
        require_parity(found)
    if not probe:
        return values
    values["bits_per_token"] = _bits_per_token(original, passages)
    if quantization != "float32":
        values["bits_per_token_exported"] = _bits_per_token(exported, passages)
        _require_bits(values["bits_per_token"], values["bits_per_token_exported"], len(probe))
    return values


def _bits_per_token(engine: LanguageEngine, passages: Sequence[Sequence[int]]) -> float:
    total = total_score(pair_scores(engine.score(passages)))
    return -total.log_prob / math.log(2) / total.tokens


def _require_bits(wanted: float, found: float, probes: int) -> None:
    if found > wanted + MOST_BITS_LOST:
        raise ParityError(
            f"Rounded to int8 the model needs {found:.3f} bits a token instead of {wanted:.3f} on {probes} probes: "
            f"more than {MOST_BITS_LOST} is lost. Nothing was exported; export it as float32."
        )


def _certify_classifier(bundle: Bundle, directory: Path, quantization: str, probe: Probe) -> dict[str, Any]:
    tokenizer = Tokenizer.from_bytes(bundle.encoder_bytes)
    original = TorchClassifier.from_bundle(bundle)
    exported = Ctranslate2Classifier(directory, bundle, lambda: original)
    texts = [*tokenizer.encode([texts[0] for texts in probe]), *made_up_sources(tokenizer)]
    texts = [text for text in texts if not exported.too_long(text)]
    found = compare_scores(original.scores(texts), exported.scores(texts), texts)
    if quantization == "float32":
        require_parity(found)
    elif found.sources - found.equal > MOST_OTHER_ANSWERS * found.sources:
        raise ParityError(
            f"Rounded to int8 the model answers otherwise to {found.sources - found.equal} of {found.sources} probes: "
            f"more than {MOST_OTHER_ANSWERS:.0%}. Nothing was exported; export it as float32."
        )
    return found.to_json()


_CERTIFY = {
    "translator": _certify_translator,
    "language_model": _certify_language_model,
    "classifier": _certify_classifier,
}
