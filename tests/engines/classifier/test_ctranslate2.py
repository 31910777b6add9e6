"""CTranslate2 classifies texts as PyTorch does, or there is no export."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torchless import run_without_torch

from jumok.bundle import load_bundle, save_bundle
from jumok.engines.classifier.ctranslate2 import Ctranslate2Classifier
from jumok.engines.classifier.torch import TorchClassifier
from jumok.engines.conversion import DIRECTORY
from jumok.engines.loading import load, load_sentence_encoder
from jumok.errors import BundleError
from jumok.model.classifier import Classifier
from jumok.model.config import config_from_dict
from jumok.recipes.certifying.certificate import ParityError, compare_scores, require_parity
from jumok.recipes.export import export_ctranslate2
from jumok.recipes.ngram_fit import spelling_of
from jumok.tokenizer import Tokenizer

FROZEN = Path(__file__).parents[2] / "frozen" / "format-1"
TEXTS = ["The small cat sees the dog.", "", "작은 고양이가 개를 봐요.", "The dog sees the cat. " * 30, "x"]
PROBE = [(text,) for text in TEXTS]
CARD = {"classes": {"a": 1, "b": 2, "c": 3}, "metrics": {"temperature": 2.0}}
VARIANTS: list[dict[str, Any]] = [
    {"norm": "pre", "window": 8, "ngrams": 256},
    {"norm": "pre", "window": 8, "ngrams": 256, "ngram_unit": "word+token"},
    {"norm": "pre", "window": 8, "ngrams": 256, "ngram_unit": "word+token", "ngram_fingerprints": True},
    {"norm": "pre", "window": 8, "ngrams": 256, "ngram_unit": "word+token+ending"},
    {"norm": "pre", "window": 8, "ngrams": 256, "ngram_unit": "character+spaceless+token"},
    {"norm": "post", "activation": "gelu", "attention_bias": True, "pooling": "max"},
    {"norm": "post", "window": 8, "pooling": "answers"},
    {"norm": "pre", "rotary": True, "window": 8},
    {"norm": "pre", "positions": "learned", "max_length": 8, "window": 8},
    {"norm": "pre", "positions": "learned", "max_length": 500},
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_bytes((FROZEN / "model" / "tokenizer.model").read_bytes())


def save_model(directory: Path, tokenizer: Tokenizer, **changes: Any) -> Path:
    """A model with weights drawn at random, larger than at the start so that its answers vary."""
    torch.manual_seed(3)
    sizes = {"vocabulary": tokenizer.size, "d_model": 32, "heads": 4, "d_ff": 48, "dropout": 0.0, "classes": 3}
    layers = {"task": "classifier", "encoder_layers": 2, "decoder_layers": 0}
    model = Classifier(config_from_dict({**sizes, **layers, **changes}))
    for part in model.ngrams:
        torch.nn.init.normal_(part.get_parameter("scores"))
        torch.nn.init.uniform_(part.get_parameter("scale"))
        if part.spelling is not None:
            part.get_buffer("spelling").copy_(spelling_of(tokenizer, part.unit))
        if part.fingerprints is not None:
            part.fingerprints.copy_(torch.randint(1 << 24, part.fingerprints.shape))
    larger = {name: 2 * weight for name, weight in model.named_parameters()}
    weights = {name: weight.detach().float().numpy() for name, weight in (model.state_dict() | larger).items()}
    config = model.config.to_dict()
    save_bundle(
        directory / "model", config=config, weights=weights, encoder=("tokenizer", tokenizer.to_bytes()), card=CARD
    )
    return directory / "model"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    path = save_model(tmp_path_factory.mktemp("exported"), tokenizer, **VARIANTS[0])
    export_ctranslate2(path, probe=PROBE)
    return path


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_variant_of_the_model_is_exported_exactly(
    tmp_path: Path, tokenizer: Tokenizer, variant: dict[str, Any]
) -> None:
    path = save_model(tmp_path, tokenizer, **variant)
    _, certificate = export_ctranslate2(path, probe=PROBE)
    assert certificate["equal"] + certificate["ties"] == certificate["sources"] > len(TEXTS)
    ours, theirs = (load(path, engine, task="classifier") for engine in ("torch", "ctranslate2"))
    np.testing.assert_allclose(theirs.scores(TEXTS), ours.scores(TEXTS), atol=1e-4)
    encoded = tokenizer.encode(TEXTS)
    np.testing.assert_allclose(theirs.engine.vectors(encoded), ours.engine.vectors(encoded), atol=1e-5)
    assert not theirs.engine.vectors(encoded)[1].any()  # a text without tokens has no direction


def test_answers_do_not_depend_on_the_neighbours_and_none_is_an_answer(model: Path) -> None:
    classifier = load(model, "ctranslate2", task="classifier")
    alone = np.concatenate([classifier.scores([text]) for text in TEXTS])
    np.testing.assert_allclose(classifier.scores(TEXTS * 40), np.tile(alone, (40, 1)), atol=1e-5)
    assert classifier.scores([]).shape == (0, 3)
    assert classifier.engine.vectors([]).shape == (0, 32)


def test_what_ctranslate2_cannot_do_is_done_by_pytorch(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = save_model(tmp_path, tokenizer, norm="pre", positions="sinusoidal")
    export_ctranslate2(path)
    ours, theirs = (load(path, engine, task="classifier") for engine in ("torch", "ctranslate2"))
    texts = ["x", "cat " * 2500]  # more positions than were exported
    np.testing.assert_array_equal(ours.scores(texts), theirs.scores(texts))
    assert ours.explain(TEXTS[0]) == theirs.explain(TEXTS[0])
    assert ours.explain(TEXTS[0], "b") == theirs.explain(TEXTS[0], "b")


def test_other_answers_are_no_parity() -> None:
    original = np.array([[0.0, 1.0], [0.0, 0.0005], [2.0, 1.0]], np.float32)
    exported = np.array([[0.0, 1.0], [0.0005, 0.0], [1.0, 2.0]], np.float32)
    found = compare_scores(original, exported, [[5], [6], [7]])
    assert (found.sources, found.equal, found.ties) == (3, 1, 1)
    assert found.example == {"source": [7], "expected": 0, "found": 1}
    with pytest.raises(ParityError, match="1 of 3 probes"):
        require_parity(found)


def test_int8_may_hardly_answer_otherwise(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_model(tmp_path, tokenizer, **VARIANTS[0])
    monkeypatch.setattr("jumok.recipes.certifying.classifier.MOST_DIFFERENT", -1.0)
    with pytest.raises(ParityError, match=r"Rounded to int8 the model gives .* another class"):
        export_ctranslate2(path, quantization="int8", probe=PROBE)
    assert not (path / DIRECTORY).exists()
    monkeypatch.setattr("jumok.recipes.certifying.classifier.MOST_DIFFERENT", 1.0)
    _, certificate = export_ctranslate2(path, quantization="int8", probe=PROBE)
    assert certificate["largest_score_difference"] > 1e-3  # it was rounded
    assert len(load(path, "ctranslate2", task="classifier").classify(TEXTS)) == len(TEXTS)


def test_auto_takes_the_export(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = save_model(tmp_path, tokenizer, **VARIANTS[0])
    assert isinstance(load(path).engine, TorchClassifier)
    with pytest.raises(BundleError, match="is not exported to CTranslate2"):
        load(path, "ctranslate2", task="classifier")
    before = load_sentence_encoder(path).vectors(TEXTS)
    export_ctranslate2(path)
    assert isinstance(load(path).engine, Ctranslate2Classifier)
    assert isinstance(load(path, "torch").engine, TorchClassifier)
    np.testing.assert_allclose(load_sentence_encoder(path).vectors(TEXTS), before, atol=1e-5)
    assert load_bundle(path).card == {**CARD, "encoder": "tokenizer"}


@pytest.mark.parametrize("command", ["classify", "embed", "evaluate"])
def test_it_runs_without_torch(model: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "a.tsv").write_text("a\tThe small cat.\nb\tThe dog sees the cat.\n", encoding="utf-8")
    ended = run_without_torch(command, "-m", str(model), str(tmp_path / "a.tsv"))
    assert ended.returncode == 0, ended.stderr
    assert len(ended.stdout.splitlines()) >= 2
