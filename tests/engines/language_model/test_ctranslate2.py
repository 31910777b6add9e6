"""CTranslate2 continues texts as PyTorch does, or there is no export."""

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchless import run_without_torch

from jumok.bundle import load_bundle, save_bundle
from jumok.engines.language_model.ctranslate2 import Ctranslate2LanguageModel
from jumok.engines.language_model.torch import TorchLanguageModel
from jumok.engines.loading import load
from jumok.engines.opening import CERTIFICATE, DIRECTORY
from jumok.engines.options import GenerationOptions
from jumok.errors import BundleError
from jumok.model.config import config_from_dict
from jumok.model.language_model import LanguageModel
from jumok.recipes.certifying.certificate import ParityError, compare
from jumok.recipes.certifying.language_model import continuing
from jumok.recipes.export import export_ctranslate2
from jumok.tokenizer import Tokenizer

FROZEN = Path(__file__).parents[2] / "frozen" / "format-1"
PROBE = [("The small cat sees the dog.",), ("작은 고양이가 개를 봐요.",), ("",)]
VARIANTS: list[dict[str, Any]] = [
    {"norm": "pre"},
    {"norm": "post", "activation": "gelu", "attention_bias": True},
    {"norm": "pre", "rotary": True},
    {"norm": "pre", "positions": "learned", "max_length": 2048},
    {"norm": "pre", "positions": "learned", "max_length": 40},
]
Engines = tuple[TorchLanguageModel, Ctranslate2LanguageModel]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_bytes((FROZEN / "model" / "tokenizer.model").read_bytes())


def save_model(directory: Path, tokenizer: Tokenizer, **changes: Any) -> Path:
    """A model with weights drawn at random, larger than at the start so that its outputs vary."""
    torch.manual_seed(3)
    sizes = {"vocabulary": tokenizer.size, "d_model": 32, "heads": 4, "d_ff": 48, "dropout": 0.0}
    layers = {"task": "language_model", "encoder_layers": 0, "decoder_layers": 2}
    model = LanguageModel(config_from_dict({**sizes, **layers, **changes}))
    weights = {name: (weight * 2).numpy() for name, weight in model.state_dict().items()}
    config = model.config.to_dict()
    save_bundle(
        directory / "model", config=config, weights=weights, encoder=("tokenizer", tokenizer.to_bytes()), card={}
    )
    return directory / "model"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    path = save_model(tmp_path_factory.mktemp("exported"), tokenizer, norm="pre")
    export_ctranslate2(path, probe=PROBE)
    return path


@pytest.fixture(scope="module")
def engines(model: Path, tokenizer: Tokenizer) -> Engines:
    bundle = load_bundle(model)
    original = TorchLanguageModel.from_bundle(bundle)
    return original, Ctranslate2LanguageModel(model / DIRECTORY, bundle, lambda: original, tokenizer=tokenizer)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_variant_of_the_model_is_exported_exactly(
    tmp_path: Path, tokenizer: Tokenizer, variant: dict[str, Any]
) -> None:
    directory, certificate = export_ctranslate2(save_model(tmp_path, tokenizer, **variant), probe=PROBE)
    assert certificate["equal"] + certificate["ties"] == certificate["sources"] > len(PROBE)
    assert certificate["bits_per_token"] > 0
    assert (directory / CERTIFICATE).is_file()


@settings(max_examples=15)
@given(st.data())
def test_any_prompt_is_continued_alike(engines: Engines, tokenizer: Tokenizer, data: st.DataObject) -> None:
    prompt = data.draw(st.lists(st.integers(4, tokenizer.size - 1), max_size=30))
    assert compare(*(continuing(engine, 12) for engine in engines), [prompt]).example is None


@pytest.mark.parametrize("no_repeat_ngram", [1, 2, 3])
def test_nothing_is_repeated_that_the_prompt_or_the_text_has(engines: Engines, no_repeat_ngram: int) -> None:
    options = GenerationOptions(max_tokens=40, temperature=0, no_repeat_ngram=no_repeat_ngram)
    for prompt in ([], [300], [300, 301, 300, 301, 300]):
        heard: list[int] = []
        ours, theirs = engines[0].generate(prompt, options), engines[1].generate(prompt, options, heard.append)
        assert ours == theirs == heard


def test_the_same_seed_gives_the_same_text(engines: Engines) -> None:
    _, exported = engines
    texts = [exported.generate([300], GenerationOptions(max_tokens=20, seed=seed)) for seed in (1, 2, 2**70, 1, 2)]
    assert texts[:2] == texts[3:]
    assert len(set(map(tuple, texts))) == 3
    exported.generate([300], GenerationOptions(max_tokens=20, temperature=0))
    again: dict[int, list[int]] = {}

    def write(seed: int) -> None:
        again[seed] = exported.generate([300], GenerationOptions(max_tokens=20, seed=seed))

    threads = [threading.Thread(target=write, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [again[1], again[2]] == texts[:2]


def test_it_draws_from_the_same_probabilities(engines: Engines, tokenizer: Tokenizer) -> None:
    options = {"max_tokens": 1, "temperature": 0.7, "top_k": 6, "top_p": 0.8}
    drawn = [
        Counter(tuple(engine.generate([300], GenerationOptions(**options, seed=seed))) for seed in range(100))
        for engine in engines
    ]
    assert set(drawn[0]) == set(drawn[1])
    assert len(drawn[0]) > 1
    for token in drawn[0]:  # the difference of two counts of 100 draws has a deviation of sqrt(50) at the most
        assert abs(drawn[0][token] - drawn[1][token]) < 3.5 * 50**0.5
    all_of_them = GenerationOptions(max_tokens=2, top_k=10 * tokenizer.size)
    assert engines[1].generate([300], all_of_them)


def test_texts_beyond_the_exported_positions_are_read_and_written_too(
    engines: Engines, model: Path, tokenizer: Tokenizer
) -> None:
    original, _ = engines
    exported = Ctranslate2LanguageModel(model / DIRECTORY, load_bundle(model), lambda: original, tokenizer=tokenizer)
    exported.longest = 10
    long = [5] * 11
    ours, theirs = (engine.score([[5], long, []]) for engine in (original, exported))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)
    options = GenerationOptions(max_tokens=3, seed=5)
    assert exported.generate(long, options) == original.generate(long, options)


def test_what_the_listener_raises_comes_out(engines: Engines) -> None:
    def heard(_token: int) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        engines[1].generate([300], GenerationOptions(max_tokens=50, seed=1), heard)


def test_int8_is_certified_by_bits(tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_model(tmp_path, tokenizer, norm="pre")
    monkeypatch.setattr("jumok.recipes.certifying.language_model.MOST_BITS_LOST", -50.0)
    with pytest.raises(ParityError, match="bits a token instead of"):
        export_ctranslate2(path, quantization="int8", probe=PROBE)
    assert not (path / DIRECTORY).exists()
    monkeypatch.setattr("jumok.recipes.certifying.language_model.MOST_BITS_LOST", 50.0)
    _, certificate = export_ctranslate2(path, quantization="int8", probe=PROBE)
    assert certificate["bits_per_token_exported"] != certificate["bits_per_token"]
    assert load(path, "ctranslate2", task="language_model").generate("The", max_tokens=5)


def test_auto_takes_the_export(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = save_model(tmp_path, tokenizer, norm="pre")
    assert isinstance(load(path).engine, TorchLanguageModel)
    with pytest.raises(BundleError, match="is not exported to CTranslate2"):
        load(path, "ctranslate2", task="language_model")
    directory, _ = export_ctranslate2(path)
    generator = load(path)
    assert isinstance(generator.engine, Ctranslate2LanguageModel)
    assert isinstance(load(path, "torch").engine, TorchLanguageModel)
    directory.rename(tmp_path / "elsewhere")  # a training puts a better model there
    assert generator.generate("The", max_tokens=5) == generator.generate("The", max_tokens=5)


@pytest.mark.parametrize("command", [["generate", "--prompt=The", "--max-tokens=5"], ["evaluate", "--json"]], ids=str)
def test_it_runs_without_torch(model: Path, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "a.txt").write_text("The small cat sees the dog.\n", encoding="utf-8")
    arguments = [*command, "-m", str(model), *([str(tmp_path / "a.txt")] if command[0] == "evaluate" else [])]
    ended = run_without_torch(*arguments)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("The" if command[0] == "generate" else '{"passages": 1')
