"""The PyTorch engine, on a model that has learned something and on one that has not."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_translator import small_config, translation_loss

from jumok.bundle import load_bundle, save_bundle
from jumok.engines.options import Sampling, SearchOptions
from jumok.engines.translator.torch import TorchTranslator
from jumok.errors import BundleError, ConfigError, InputError, ShapeError
from jumok.model.translator import Translator
from jumok.search.hypothesis import Hypothesis
from jumok.tokenizer import BOS, EOS, Tokenizer

TOLERANCE = 1e-4  # float32 sums, in an order that depends on the batch


@pytest.fixture
def engine(trained: Translator) -> TorchTranslator:
    return TorchTranslator(trained)


@pytest.fixture
def untrained() -> TorchTranslator:
    """Its outputs are long nonsense. Sharper than new weights are, so that rounding decides nothing."""
    with torch.random.fork_rng():
        torch.manual_seed(4)
        model = Translator(small_config(300)).eval()
    with torch.no_grad():
        model.embed.tokens.weight.mul_(2)
    return TorchTranslator(model)


@pytest.fixture
def sources(tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> list[list[int]]:
    return tokenizer.encode([source for source, _ in pairs])


@pytest.fixture
def targets(tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> list[list[int]]:
    return tokenizer.encode([target for _, target in pairs])


def ids_of(results: list[list[Hypothesis]]) -> list[list[list[int]]]:
    return [[hypothesis.ids for hypothesis in hypotheses] for hypotheses in results]


ALL_WAYS = [
    SearchOptions(beam=1, max_ratio=0),
    SearchOptions(beam=4, n_best=3, max_ratio=0),
    SearchOptions(n_best=2, max_ratio=0, sampling=Sampling(temperature=1.5, top_p=0.9, seed=5)),
]


@pytest.mark.parametrize("beam", [1, 5])
def test_translates_what_it_has_learned(
    engine: TorchTranslator, sources: list[list[int]], targets: list[list[int]], beam: int
) -> None:
    found = engine.generate(sources, SearchOptions(beam=beam))
    assert [hypotheses[0].ids for hypotheses in found] == targets
    assert all(hypotheses[0].finished for hypotheses in found)


@pytest.mark.parametrize("options", ALL_WAYS, ids=["greedy", "beam", "sampling"])
@pytest.mark.parametrize("model", ["trained", "untrained"])
def test_outputs_do_not_depend_on_the_batch(
    model: str, options: SearchOptions, engine: TorchTranslator, untrained: TorchTranslator, sources: list[list[int]]
) -> None:
    used = {"trained": engine, "untrained": untrained}[model]
    some = sources[:8]
    together = used.generate(some, options)
    alone = [used.generate([source], options)[0] for source in some]
    small_batches = used.generate(some[::-1], SearchOptions(**{**vars(options), "batch_tokens": 60}))[::-1]
    assert ids_of(together) == ids_of(alone) == ids_of(small_batches)
    for one, other in zip(together, alone, strict=True):
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=TOLERANCE)


def test_greedy_search_is_the_plain_loop(untrained: TorchTranslator) -> None:
    """Against the model itself, without a cache: the most probable token, again and again."""
    source = [270, 271, 290]
    [[found]] = untrained.generate([source], SearchOptions(beam=1, max_ratio=0))
    ids = [BOS]
    with torch.no_grad():
        for _ in found.log_probs:
            logits = untrained.model(torch.tensor([[*source, EOS]]), torch.tensor([ids]))[0, -1]
            logits[:3] = -torch.inf
            if len(ids) == 1:
                logits[EOS] = -torch.inf  # something must come out
            ids.append(int(logits.argmax()))
    assert ids[1:-1] == found.ids
    assert not found.finished or ids[-1] == EOS


def test_scores_are_those_of_the_search(engine: TorchTranslator, sources: list[list[int]]) -> None:
    found = [best for best, *_ in engine.generate(sources, SearchOptions())]
    scored = engine.score(sources, [hypothesis.ids for hypothesis in found])
    for hypothesis, log_probs in zip(found, scored, strict=True):
        assert log_probs == pytest.approx(hypothesis.log_probs, abs=TOLERANCE)


def test_scores_prefer_what_was_learned(
    engine: TorchTranslator, sources: list[list[int]], targets: list[list[int]]
) -> None:
    right, wrong = engine.score(sources, targets), engine.score(sources, sources)
    assert all(sum(good) > sum(bad) + 5 for good, bad in zip(right, wrong, strict=True))
    assert [len(row) for row in right] == [len(target) + 1 for target in targets]


def test_alignments_sum_to_one_and_do_not_depend_on_the_batch(
    engine: TorchTranslator, sources: list[list[int]], targets: list[list[int]]
) -> None:
    together = engine.align(sources, targets)
    for source, target, matrix in zip(sources, targets, together, strict=True):
        assert matrix.shape == (len(target) + 1, len(source) + 1)
        np.testing.assert_allclose(matrix.sum(1), 1, atol=1e-5)
        np.testing.assert_allclose(matrix, engine.align([source], [target])[0], atol=1e-5)


def test_alignments_are_the_attention_of_the_last_layer_but_one(engine: TorchTranslator) -> None:
    """The model reads its source through those weights: recomputed from them, the layer gives what it gave."""
    layer: Any = engine.model.decoder.layers[0]
    attend, seen = layer.cross_attention.attend, []
    hook = attend.register_forward_hook(lambda _, args, output: seen.append((args, output)))
    [matrix] = engine.align([[270, 271]], [[280]])
    hook.remove()
    (_, _, values, _), output = seen[0]
    uniform = torch.ones_like(values)  # with values of 1, only what the weights sum to remains
    assert torch.allclose(attend(*seen[0][0][:2], uniform, None), torch.ones_like(output), atol=1e-5)
    assert matrix.shape == (2, 3)
    q, k = seen[0][0][:2]
    expected = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1).mean(1)[0]
    np.testing.assert_allclose(matrix, expected.numpy(), atol=1e-6)


def test_prefixes_and_bias(engine: TorchTranslator, sources: list[list[int]]) -> None:
    prefixes = [[270 + number % 5, 265] if number % 3 else [] for number in range(len(sources))]
    free = engine.generate(sources, SearchOptions())
    held = engine.generate(sources, SearchOptions(), prefixes=prefixes)
    for prefix, without, with_prefix in zip(prefixes, free, held, strict=True):
        assert with_prefix[0].ids[: len(prefix)] == prefix
        assert prefix or with_prefix[0].ids == without[0].ids
    pushed = engine.generate(sources[:2], SearchOptions(max_ratio=0), bias={299: 100.0})
    assert all(set(hypotheses[0].ids) == {299} for hypotheses in pushed)


def test_no_repeat_and_length_limit(untrained: TorchTranslator) -> None:
    [[loop]] = untrained.generate([[270, 271]], SearchOptions(max_ratio=1), bias={299: 100.0})
    assert loop.ids == [299] * 48
    assert not loop.finished
    [[varied]] = untrained.generate([[270, 271]], SearchOptions(max_ratio=1, no_repeat_ngram=1), bias={299: 100.0})
    assert len(set(varied.ids)) == len(varied.ids)


def test_samples_depend_on_source_and_seed_alone(untrained: TorchTranslator) -> None:
    def draw(sources: list[list[int]], seed: int) -> list[list[list[int]]]:
        return ids_of(untrained.generate(sources, SearchOptions(n_best=2, sampling=Sampling(seed=seed), max_ratio=0)))

    first, second, again = draw([[270], [271], [270]], 1)
    assert first == again != second
    assert first != draw([[270]], 2)[0]
    assert first[0] != first[1]


def test_a_model_in_training_is_left_as_it_was(tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> None:
    model = Translator(small_config(tokenizer.size, dropout=0.1)).train()
    model.encoder.layers[0].eval()  # somebody froze a part: that stays too
    before = {name: module.training for name, module in model.named_modules()}
    random_state = torch.get_rng_state()
    engine = TorchTranslator(model)
    source = [*range(260, 290)] * 3  # longer than the table of positions is at first
    engine.generate([source], SearchOptions(beam=2, max_ratio=0.1))
    engine.generate([source], SearchOptions(max_ratio=0.1, sampling=Sampling()))
    engine.score([source], [source])
    engine.align([source], [source])
    assert engine.model is model
    assert {name: module.training for name, module in model.named_modules()} == before
    assert torch.get_rng_state().equal(random_state)
    assert torch.is_grad_enabled()
    assert not any(tensor.is_inference() for tensor in [*model.parameters(), *model.buffers()])
    translation_loss(model, tokenizer, pairs[:3]).backward()


def test_a_failure_leaves_the_model_in_training(tokenizer: Tokenizer) -> None:
    model = Translator(small_config(tokenizer.size)).train()
    with pytest.raises(ShapeError, match="outside the vocabulary"):
        TorchTranslator(model).align([[5], [6]], [[5], [10_000]])
    assert model.training
    assert not torch.is_inference_mode_enabled()
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_learned_positions_have_an_end(tokenizer: Tokenizer) -> None:
    model = Translator(small_config(tokenizer.size, positions="learned", max_length=12)).eval()
    engine = TorchTranslator(model)
    assert engine.longest == 11
    [[longest]] = engine.generate([[270] * 11], SearchOptions(beam=1), bias={271: 100.0})
    assert longest.ids == [271] * 11
    assert len(engine.score([[270] * 11], [[270] * 11])[0]) == 12
    with pytest.raises(ShapeError, match="13 tokens does not fit learned positions"):
        engine.generate([[270] * 12], SearchOptions())


def test_nothing_asked_nothing_given(engine: TorchTranslator) -> None:
    assert engine.generate([], SearchOptions()) == []
    assert engine.score([], []) == []
    assert engine.align([], []) == []
    assert len(engine.generate([[]], SearchOptions())[0]) == 1


def test_pairs_must_be_pairs(engine: TorchTranslator) -> None:
    with pytest.raises(InputError, match="2 sources and 1 target"):
        engine.score([[5], [6]], [[5]])


def test_a_prefix_that_does_not_fit_is_refused(engine: TorchTranslator) -> None:
    with pytest.raises(ConfigError, match="vocabulary ends at"):
        engine.generate([[270]], SearchOptions(), prefixes=[[10_000]])


def write_bundle(path: Path, model: Translator, tokenizer: Tokenizer, **changes: Any) -> Path:
    weights = {name: tensor.numpy(force=True) for name, tensor in model.state_dict().items()}
    contents = {
        "config": model.config.to_dict(),
        "weights": weights,
        "encoder": ("tokenizer", tokenizer.to_bytes()),
        "card": {},
    }
    save_bundle(path, **(contents | changes))
    return path


def test_a_bundle_gives_the_same_model(
    trained: Translator, tokenizer: Tokenizer, sources: list[list[int]], tmp_path: Path
) -> None:
    random_state = torch.get_rng_state()
    engine = TorchTranslator.from_bundle(load_bundle(write_bundle(tmp_path / "model", trained, tokenizer)))
    assert torch.get_rng_state().equal(random_state)
    assert not engine.model.training
    assert engine.generate(sources, SearchOptions()) == TorchTranslator(trained).generate(sources, SearchOptions())


def damaged(trained: Translator, how: str) -> dict[str, Any]:
    weights = {name: tensor.numpy(force=True) for name, tensor in trained.state_dict().items()}
    name = next(iter(weights))
    if how == "missing":
        del weights[name]
    elif how == "unexpected":
        weights["encoder.layers.9.surprise"] = weights[name]
    elif how == "shape":
        weights[name] = weights[name][:-1]
    return weights


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("missing", "is missing"),
        ("unexpected", "encoder.layers.9.surprise is unexpected"),
        ("shape", "instead of"),
    ],
)
def test_weights_that_do_not_fit_are_refused(
    how: str, said: str, trained: Translator, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    path = write_bundle(tmp_path / "model", trained, tokenizer, weights=damaged(trained, how))
    with pytest.raises(BundleError) as error:
        TorchTranslator.from_bundle(load_bundle(path))
    assert said in str(error.value)
    assert "weights.safetensors" in str(error.value)


def test_a_config_that_makes_no_model_is_refused(trained: Translator, tokenizer: Tokenizer, tmp_path: Path) -> None:
    config = trained.config.to_dict() | {"heads": 5}
    path = write_bundle(tmp_path / "model", trained, tokenizer, config=config)
    with pytest.raises(BundleError, match=r"config\.json: d_model=32 cannot be split into heads=5"):
        TorchTranslator.from_bundle(load_bundle(path))
