"""What `certify` of each task compares, on which texts, and what it makes of the result, with engines without a model.

`test_certificate.py` proves the same on real exports; here every single comparison is visible, and costs nothing.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from jumok.engines.options import SearchOptions
from jumok.recipes.certifying import certificate, classifier, language_model, translator
from jumok.recipes.certifying.certificate import (
    EXACT,
    LONGEST_PROBE,
    Export,
    ParityError,
    covering_texts,
    random_sources,
    round_weights,
)
from jumok.search.hypothesis import Hypothesis
from jumok.tokenizer import EOS, FIRST_PIECE

WORDS = [f"w{number}" for number in range(40)]
TEXTS = ["w1 w2 w3 w4 w16", "w6 w7 w8 w9", "w10 w11 w12 w13 w14 w15"]


@pytest.fixture(autouse=True)
def _long_probes(_quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "LONGEST_PROBE", LONGEST_PROBE)  # as for users: here they cost nothing


class FakeTokenizer:
    size = FIRST_PIECE + len(WORDS)

    def encode(self, texts: list[str]) -> list[list[int]]:
        return [[FIRST_PIECE + WORDS.index(word) for word in text.split()] for text in texts]

    def decode(self, rows: list[list[int]]) -> list[str]:
        return [" ".join(WORDS[token - FIRST_PIECE] for token in row) for row in rows]


TOKENIZER = FakeTokenizer()
Ids = Sequence[Sequence[int]]


class FakeEngine:
    """Translates by reversing a text, continues it with w0 and w1, and gives class 1 to an odd number of tokens.
    `wrong` says for which inputs the output is another, `shift` by how much their scores are lower."""

    def __init__(
        self,
        model: Any = None,
        *,
        longest: int = 10_000,
        wrong: Callable[[Sequence[int]], bool] = lambda _: False,
        shift: Callable[[Sequence[int]], float] = lambda _: 0.0,
        bits: float = 1.0,
    ) -> None:
        self.longest, self.wrong, self.shift, self.bits = longest, wrong, shift, bits
        self.model = model or SimpleNamespace(double=SimpleNamespace)
        self.seen: list[list[int]] = []  # inputs of which an output was asked for
        self.options: list[Any] = []

    def too_long(self, text: Sequence[int]) -> bool:
        return len(text) > self.longest


class FakeTranslator(FakeEngine):
    def generate(self, sources: Ids, options: SearchOptions, prefixes: Ids | None = None) -> list[list[Hypothesis]]:
        assert prefixes is None or len(prefixes) == len(sources)
        self.seen += [list(source) for source in sources]
        self.options.append(options)
        outputs = [source[:1] if self.wrong(source) else source[::-1] for source in sources]
        return [[Hypothesis(list(output), 0.0, [], True)] for output in outputs]

    def score(self, sources: Ids, targets: Ids) -> list[list[float]]:
        """Tokens of the right output are more probable than others."""
        rows = []
        for source, target in zip(sources, targets, strict=True):
            right = [*source[::-1], EOS]
            off = self.shift(source) + self.shift(target)
            rows.append([-0.5 - off - (right[i : i + 1] != [token]) for i, token in enumerate([*target, EOS])])
        return rows


class FakeLanguageModel(FakeEngine):
    def generate(self, prompt: Sequence[int], options: Any) -> list[int]:
        self.seen.append(list(prompt))
        self.options.append((options.max_tokens, options.temperature))
        tokens = [FIRST_PIECE + 5, FIRST_PIECE] if self.wrong(prompt) else [FIRST_PIECE, FIRST_PIECE + 1]
        return (tokens * options.max_tokens)[: options.max_tokens]

    def score(self, texts: Ids) -> list[list[float]]:
        """Of all tokens alike, except that w5 is less probable."""
        usual, unusual = self.bits * math.log(2), FIRST_PIECE + 5
        return [[-usual - self.shift(text) - (token == unusual) for token in (*text, EOS)] for text in texts]


class FakeClassifier(FakeEngine):
    def scores(self, texts: Ids) -> Any:
        self.seen += [list(text) for text in texts]
        classes = [(len(text) + self.wrong(text)) % 2 for text in texts]
        return np.array([[1.0 - chosen, 0.0 + chosen] for chosen in classes], np.float32)

    def states(self, rows: Ids) -> list[Any]:
        return [np.ones((len(row), 2)) + self.shift(row) for row in rows]


class Scene:
    """An export of a task whose three engines are fakes: the original, and the exported one in float32 and as it is."""

    def __init__(self, module: Any, fake: type[FakeEngine], torch_engine: str, patch: pytest.MonkeyPatch) -> None:
        self.module, self.fake = module, fake
        self.engines: dict[str, Any] = {name: fake() for name in ("original", "exact", "default")}
        self.rounded: list[Any] = []
        self.bundle: Any = SimpleNamespace()
        patch.setattr(module, torch_engine, SimpleNamespace(from_bundle=self._original))
        patch.setattr(module, "_exported", self._exported)
        patch.setattr(certificate, "round_weights", self.rounded.append)

    def _original(self, bundle: Any) -> FakeEngine:
        assert bundle is self.bundle
        engine: FakeEngine = self.engines["original"]
        return engine

    def _exported(self, export: Export, compute: str = "default") -> FakeEngine:
        assert export.bundle is self.bundle
        assert compute in (EXACT, "default")
        engine: FakeEngine = self.engines["exact" if compute == EXACT else "default"]
        return engine

    def all_with(self, **options: Any) -> None:
        self.engines = {name: self.fake(**options) for name in self.engines}

    def certify(self, quantization: str = "float32", texts: Sequence[str] = TEXTS, **more: Any) -> dict[str, Any]:
        probes = [(text, " ".join(reversed(text.split()))) for text in texts]
        export = Export(self.bundle, Path("nowhere"), quantization, TOKENIZER, probes, **more)
        result: dict[str, Any] = self.module.certify(export)
        return result


@pytest.fixture
def translators(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(translator, FakeTranslator, "TorchTranslator", monkeypatch)


@pytest.fixture
def language_models(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(language_model, FakeLanguageModel, "TorchLanguageModel", monkeypatch)


@pytest.fixture
def classifiers(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(classifier, FakeClassifier, "TorchClassifier", monkeypatch)


@pytest.fixture(params=["translators", "language_models", "classifiers"])
def scene(request: pytest.FixtureRequest) -> Scene:
    found: Scene = request.getfixturevalue(request.param)
    return found


def encoded(texts: Sequence[str]) -> list[list[int]]:
    return TOKENIZER.encode(list(texts))


def sound(sources: int, **more: Any) -> dict[str, Any]:
    return {"sources": sources, "equal": sources, "ties": 0, "largest_score_difference": 0.0, "example": None, **more}


RANDOM = random_sources(TOKENIZER)  # type: ignore[arg-type]
ADDED = {
    "translators": {"bleu": pytest.approx(100.0)},
    "language_models": {"bits_per_token": pytest.approx(1.0)},
    "classifiers": {},
}


def added(scene: Scene) -> dict[str, Any]:
    return ADDED[next(name for name in ADDED if name.startswith(scene.module.__name__.rsplit(".", 1)[1]))]


class TestEveryTask:
    def test_a_sound_export(self, scene: Scene) -> None:
        assert scene.certify() == sound(3 + 8, **added(scene))
        assert not scene.rounded
        assert not scene.engines["default"].seen  # float32 is computed in float32

    def test_without_probes_random_texts_are_compared(self, scene: Scene) -> None:
        assert scene.certify(texts=[]) == sound(8)
        assert scene.engines["original"].seen == RANDOM

    def test_int8_is_compared_with_rounded_weights_and_may_differ_from_the_original(self, scene: Scene) -> None:
        original = scene.engines["original"]
        measured = {f"{name}_exported": value for name, value in added(scene).items()}
        assert scene.certify("int8") == sound(3 + 8, **added(scene), **measured)
        assert scene.rounded == [original.model]
        assert scene.engines["default"].seen

    @pytest.mark.parametrize("quantization", ["float32", "int8"])
    def test_an_output_that_differs_in_float32_is_refused(self, scene: Scene, quantization: str) -> None:
        for place in (encoded(TEXTS)[1][:2], RANDOM[5]):  # of a probe, of a random text
            scene.engines["exact"] = scene.fake(wrong=lambda source, place=place: list(source[: len(place)]) == place)
            with pytest.raises(ParityError, match="outputs of the exported model differ from PyTorch's for 1 of 11"):
                scene.certify(quantization)

    @pytest.mark.parametrize("quantization", ["float32", "int8"])
    def test_every_token_and_the_longest_text_are_compared(self, scene: Scene, quantization: str) -> None:
        what = "states" if scene.fake is FakeClassifier else "scores"
        message = f"The exported model's {what} differ from PyTorch's by up to 0.1; rounding explains at most 0.001."
        scene.engines["exact"] = scene.fake(shift=lambda text: 0.1 * (7 in text))  # no probe has this token
        with pytest.raises(ParityError, match=message):
            scene.certify(quantization)
        scene.engines["exact"] = scene.fake(shift=lambda text: 0.1 * (len(text) >= LONGEST_PROBE))
        with pytest.raises(ParityError, match=message):
            scene.certify(quantization)

    def test_only_so_many_probes_are_compared(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(scene.module, "MOST_PROBES", 2)
        assert scene.certify() == sound(2 + 8, **added(scene))


class TestTranslator:
    def test_greedy_search_is_compared_and_bleu_measured(self, translators: Scene) -> None:
        translators.certify("int8")
        for name, times in (("original", 3), ("exact", 1), ("default", 2)):
            options = translators.engines[name].options
            assert len(options) == times
            assert all(option.beam == 1 for option in options)
            # Outputs for random sources may not end; BLEU is measured with the limit of users.
            compared = [option for option in options if option.max_ratio == 1.0]
            assert len(compared) == {"original": 2, "exact": 1, "default": 1}[name]

    def test_sources_that_are_too_long_are_left_out(self, translators: Scene) -> None:
        translators.all_with(longest=4)
        values = translators.certify()
        kept = [source for source in (*encoded(TEXTS), *RANDOM) if len(source) <= 4]
        assert (values["sources"], len(kept)) == (len(kept), 4)
        assert translators.engines["exact"].seen == kept

    def test_what_quantization_changes_is_counted_and_limited(self, translators: Scene) -> None:
        translators.engines["default"] = FakeTranslator(wrong=lambda source: list(source) in encoded(TEXTS[:1]))
        with pytest.raises(ParityError, match=r"Rounded to int8 the model has BLEU \d+\.\d\d instead of 100\.00 on"):
            translators.certify("int8")
        translators.engines["default"] = FakeTranslator(wrong=lambda source: list(source) == RANDOM[7])
        values = translators.certify("int8")
        assert (values["equal"], values["example"]["source"]) == (10, RANDOM[7])
        assert values["bleu"] == values["bleu_exported"] == pytest.approx(100)

    def test_a_shortlist_is_added_if_there_are_training_pairs_and_the_model_translates(
        self, translators: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        train: Any = object()
        monkeypatch.setattr(translator, "_add_shortlist", lambda export, given: {"shortlist": given is export.train})
        assert translators.certify(train=train)["shortlist"] is True
        assert "shortlist" not in translators.certify()
        assert "shortlist" not in translators.certify(texts=[], train=train)
        monkeypatch.setattr(translator, "_bleu", lambda *_: 1.0)
        assert "shortlist" in translators.certify(train=train)
        monkeypatch.setattr(translator, "_bleu", lambda *_: 0.99)
        assert "shortlist" not in translators.certify(train=train)

    def test_outputs_begin_with_their_prefixes_and_end_only_if_they_are_finished(self) -> None:
        def generate(sources: Any, options: Any, prefixes: Any) -> list[list[Hypothesis]]:
            return [[Hypothesis([*prefix, 9], 0.0, [], len(prefix) > 1)] for prefix in prefixes]

        engine: Any = SimpleNamespace(generate=generate, score=None)
        assert translator.translating(engine).greedy([[4], [4]], [[5], [6, 7]]) == [[5, 9], [6, 7, 9, EOS]]

    def test_pairs_cover_every_token_and_position_of_both_sides(self) -> None:
        parts = translator.covering_pairs(TOKENIZER, 50)  # type: ignore[arg-type]
        (long_sources, short), (sources, long_targets), (some, others) = parts
        assert len(long_sources[0]) == len(long_targets[0]) == 50
        assert short == sources == some[:1]
        assert others == some[::-1]
        for side in (some, others):
            assert sorted(token for row in side for token in row) == list(range(EOS + 1, TOKENIZER.size))

    def test_training_pairs_are_a_random_sample(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Store:
            def __len__(self) -> int:
                return 100

            def example(self, side: str, number: int) -> tuple[str, int]:
                return side, number

        store: Any = Store()
        for most, count in ((60_000, 100), (30, 30)):
            monkeypatch.setattr(translator, "SHORTLIST_PAIRS", most)
            pairs = list(translator._pairs(store))
            assert pairs == list(translator._pairs(store))
            numbers = [number for (_, number), _ in pairs]
            assert pairs == [(("source", number), ("target", number)) for number in numbers]
            assert len(set(numbers)) == count
            assert numbers != sorted(numbers)
            assert max(numbers) > 90


class TestLanguageModel:
    def test_beginnings_are_continued_greedily(self, language_models: Scene) -> None:
        language_models.certify()
        prompts = [passage[: 1 + len(passage) // 3] for passage in encoded(TEXTS)]
        assert [len(prompt) for prompt in prompts] == [2, 2, 3]
        for name in ("original", "exact"):
            assert language_models.engines[name].seen == [*prompts, *RANDOM]
            assert set(language_models.engines[name].options) == {(32, 0)}

    def test_prompts_leave_room_for_what_is_generated(self, language_models: Scene) -> None:
        language_models.all_with(longest=11)
        language_models.certify()
        assert set(language_models.engines["exact"].options) == {(5, 0)}
        assert max(len(prompt) for prompt in language_models.engines["exact"].seen) == 6

    def test_only_so_many_passages_are_continued(self, language_models: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(language_model, "PROMPTS", 2)
        assert language_models.certify()["sources"] == 2 + 8

    def test_what_quantization_loses_is_measured_and_limited(self, language_models: Scene) -> None:
        language_models.engines["default"] = FakeLanguageModel(bits=1.015, wrong=lambda prompt: prompt == RANDOM[2])
        values = language_models.certify("int8")
        assert (values["bits_per_token"], values["bits_per_token_exported"]) == pytest.approx((1.0, 1.015))
        assert (values["equal"], values["ties"]) == (10, 0)
        language_models.engines["default"] = FakeLanguageModel(bits=1.03)
        with pytest.raises(ParityError) as error:
            language_models.certify("int8")
        assert str(error.value) == (
            "Rounded to int8 the model needs 1.030 bits a token instead of 1.000 on the probes: more than 0.02 is "
            "lost. Nothing was exported; export it as float32."
        )
        assert "bits_per_token" not in language_models.certify("int8", texts=[])


class TestClassifier:
    def test_probes_and_random_texts_are_classified_and_those_too_long_left_out(self, classifiers: Scene) -> None:
        classifiers.all_with(longest=4)
        values = classifiers.certify()
        kept = [text for text in (*encoded(TEXTS), *RANDOM) if len(text) <= 4]
        assert values["sources"] == len(kept)
        assert classifiers.engines["original"].seen == classifiers.engines["exact"].seen == kept

    def test_what_quantization_changes_is_counted_and_limited(
        self, classifiers: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        classifiers.engines["default"] = FakeClassifier(wrong=lambda text: text == RANDOM[3])
        with pytest.raises(ParityError) as error:
            classifiers.certify("int8")
        assert str(error.value) == (
            "Rounded to int8 the model gives 1 of 11 probes another class: more than 1%. "
            "Nothing was exported; export it as float32."
        )
        monkeypatch.setattr(classifier, "MOST_DIFFERENT", 1 / 11)
        assert classifiers.certify("int8")["equal"] == 10


def test_random_sources_are_of_all_lengths_and_always_the_same() -> None:
    assert [len(source) for source in RANDOM] == [2, 2, 4, 7, 13, 23, 43, 81]
    tokens = [token for source in RANDOM for token in source]
    assert min(tokens) == FIRST_PIECE
    assert max(tokens) == TOKENIZER.size - 1
    assert random_sources(TOKENIZER) == RANDOM  # type: ignore[arg-type]


@pytest.mark.parametrize(("longest", "first", "others"), [(50, 50, 50), (200, 200, 80), (5000, LONGEST_PROBE, 80)])
def test_texts_cover_every_token_in_random_order(longest: int, first: int, others: int) -> None:
    long, *texts = covering_texts(TOKENIZER, longest)  # type: ignore[arg-type]
    tokens = [token for text in texts for token in text]
    assert sorted(tokens) == list(range(EOS + 1, TOKENIZER.size))
    assert tokens != sorted(tokens)
    assert (len(long), max(map(len, texts))) == (first, others)
    assert set(long) <= set(tokens)
    assert covering_texts(TOKENIZER, longest) == [long, *texts]  # type: ignore[arg-type]


class Weights(nn.Module):
    """The names of the weights that are exported, and of others."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.ModuleDict({"tokens": nn.Linear(3, 4), "positions": nn.Linear(3, 4)})
        self.encoder, self.decoder, self.head = nn.Linear(3, 4), nn.Linear(3, 4), nn.Linear(3, 4)
        self.requires_grad_(False)
        self.decoder.weight[2] = 0.0


def test_weights_are_rounded_row_by_row_as_in_int8() -> None:
    torch.manual_seed(1)
    model = Weights()
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    round_weights(model)
    changed = {name for name, weight in model.named_parameters() if not torch.equal(weight, before[name])}
    assert changed == {"embed.tokens.weight", "encoder.weight", "decoder.weight"}
    for name in changed:
        for row, original in zip(model.get_parameter(name), before[name], strict=True):
            step = original.abs().max() / 127
            assert torch.allclose(row, (original / step).round() * step if step else original)
            assert float((row - original).abs().max()) <= 0.5001 * float(step)


def test_weights_are_rounded_to_the_numbers_that_ctranslate2_stores() -> None:
    from ctranslate2.specs.common_spec import LinearSpec

    layer = torch.nn.Linear(256, 4_000, bias=False)
    torch.nn.init.normal_(layer.weight, generator=torch.Generator().manual_seed(1))
    spec = LinearSpec()
    spec.weight = layer.weight.detach().numpy().copy()
    spec.validate()
    spec.optimize("int8")
    with torch.no_grad():
        round_weights(torch.nn.ModuleDict({"encoder": layer}))
    stored = spec.weight.numpy() / spec.weight_scale.numpy()[:, None]
    assert np.abs(layer.weight.detach().numpy() - stored).max() < 1e-6  # a weight rounded the other way: 0.02


def test_an_export_of_float32_is_exact_and_others_have_rounded_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    rounded: list[Any] = []
    monkeypatch.setattr(certificate, "round_weights", rounded.append)
    engine, bundle = SimpleNamespace(model=object()), object()
    kind: Any = SimpleNamespace(from_bundle=lambda given: engine if given is bundle else None)
    for quantization in ("float32", "int8"):
        export = Export(bundle, Path("nowhere"), quantization, TOKENIZER, [])  # type: ignore[arg-type]
        assert export.is_exact == (quantization == "float32")
        assert export.reference(kind) is engine
        assert rounded == ([] if export.is_exact else [engine.model])


@pytest.mark.parametrize(
    ("module", "name", "more"),
    [
        (translator, "Translator", {"fast": None}),
        (language_model, "LanguageModel", {}),
        (classifier, "Classifier", {}),
    ],
)
def test_the_exported_model_is_opened_as_users_open_it(
    module: Any, name: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the bundle, a way back to PyTorch for texts that are too long, and the type of computation asked for."""
    opened: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    bundle: Any = object()
    monkeypatch.setattr(module, f"Ctranslate2{name}", lambda *args, **options: opened.append((args, options)))
    monkeypatch.setattr(module, f"Torch{name}", SimpleNamespace(from_bundle=lambda given: ("torch", given)))
    module._exported(Export(bundle, Path("there"), "int8", TOKENIZER, []))
    module._exported(Export(bundle, Path("there"), "int8", TOKENIZER, []), compute=EXACT)
    tokenizer = {} if module is classifier else {"tokenizer": TOKENIZER}
    for (arguments, options), compute in zip(opened, ("default", EXACT), strict=True):
        directory, given, original = arguments
        assert (directory, given, original()) == (Path("there"), bundle, ("torch", bundle))
        assert options == {**tokenizer, **more, "compute": compute}
