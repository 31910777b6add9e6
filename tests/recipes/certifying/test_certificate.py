"""No export with a fault is certified, whatever its task, its architecture and its quantization; and a tie is one."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from ctranslate2.specs.attention_spec import MultiHeadAttentionSpec

from jumok.bundle import Bundle, Weights, load_bundle, save_bundle
from jumok.engines import conversion
from jumok.engines.options import GenerationOptions
from jumok.model.config import config_from_dict
from jumok.recipes.certifying import certificate, language_model
from jumok.recipes.certifying.certificate import (
    Certificate,
    Export,
    GreedyEngine,
    ParityError,
    compare,
    compare_scores,
    largest_difference,
    require_close,
    require_parity,
)
from jumok.recipes.certifying.language_model import continuing
from jumok.tasks import TASKS, resolve
from jumok.tokenizer import EOS, Tokenizer

FROZEN = Path(__file__).parents[2] / "frozen" / "format-1"
KINDS: dict[str, dict[str, Any]] = {
    "translator, post-norm": {"task": "translator", "norm": "post"},
    "translator, pre-norm, GELU": {"task": "translator", "norm": "pre", "activation": "gelu", "attention_bias": True},
    "translator, rotary": {"task": "translator", "norm": "pre", "rotary": True, "encoder_layers": 2},
    "translator, learned positions": {"task": "translator", "norm": "pre", "positions": "learned", "max_length": 30},
    "classifier, post-norm": {"task": "classifier", "norm": "post", "ngrams": 64},
    "classifier, pre-norm, GELU, windows": {"task": "classifier", "norm": "pre", "activation": "gelu", "window": 41},
    "classifier, learned positions": {"task": "classifier", "norm": "post", "positions": "learned", "max_length": 30},
    "language model, post-norm, GELU": {"task": "language_model", "norm": "post", "activation": "gelu"},
    "language model, pre-norm": {"task": "language_model", "norm": "pre"},
    "language model, rotary": {"task": "language_model", "norm": "pre", "rotary": True},
    "language model, learned positions": {
        "task": "language_model",
        "norm": "pre",
        "positions": "learned",
        "max_length": 30,
    },
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_bytes((FROZEN / "model" / "tokenizer.model").read_bytes())


@pytest.fixture(autouse=True)
def _short_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "RANDOM_SOURCES", 3)
    monkeypatch.setattr(certificate, "LONGEST_RANDOM_SOURCE", 12)
    monkeypatch.setattr(certificate, "LONGEST_PROBE", 40)
    monkeypatch.setattr(language_model, "CONTINUED", 4)


def make_bundle(directory: Path, tokenizer: Tokenizer, kind: str) -> Bundle:
    """A model of which no weight is 0 or 1, not even those of the norms and biases."""
    changes = KINDS[kind]
    layers = {"classifier": {"encoder_layers": 2, "classes": 3}, "language_model": {"decoder_layers": 2}}
    sizes = {"vocabulary": tokenizer.size, "d_model": 16, "heads": 4, "d_ff": 24}
    settings = {"encoder_layers": 1, "decoder_layers": 2, **sizes, **changes}
    if changes["task"] != "translator":
        del settings["encoder_layers"], settings["decoder_layers"]
        settings |= layers[changes["task"]]
    config = config_from_dict(settings)
    torch.manual_seed(5)
    model = resolve(TASKS[changes["task"]].model)(config)
    weights = {name: (w + 0.2 * torch.randn(w.shape)).float().numpy() for name, w in model.state_dict().items()}
    card = {"classes": {"a": 1, "b": 1, "c": 1}} if changes["task"] == "classifier" else {}
    encoder = ("tokenizer", tokenizer.to_bytes())
    save_bundle(directory, config=config.to_dict(), weights=weights, encoder=encoder, card=card)
    return load_bundle(directory)


def stack_of(spec: Any) -> Any:
    """The decoder, if there is one, else the encoder."""
    return getattr(spec, "decoder", None) or spec.encoder


def changed(array: Any, *place: int) -> Any:
    """A copy of which one element is another."""
    array = array.copy()
    array[place] += 0.3
    return array


def change_a_weight(spec: Any) -> None:
    linear = stack_of(spec).layer[1].ffn.linear_1
    linear.weight = changed(linear.weight, 3, 5)


def drop_a_bias(spec: Any) -> None:
    linear = stack_of(spec).layer[0].ffn.linear_0
    linear.bias = np.zeros_like(linear.bias)


def swap_two_heads(spec: Any) -> None:
    """The queries of the first two of four heads, each of width 4."""
    linear = stack_of(spec).layer[0].self_attention.linear[0]
    order = [4, 5, 6, 7, 0, 1, 2, 3, *range(8, 48)]
    linear.weight = linear.weight[order]


def miscount_the_heads(spec: Any) -> None:
    stack_of(spec).num_heads = np.dtype("int16").type(2)


def shift_the_positions(spec: Any) -> None:
    table = stack_of(spec).position_encodings
    table.encodings = np.roll(table.encodings, 1, 0)


def spoil_the_last_position(spec: Any) -> None:
    table = stack_of(spec).position_encodings
    table.encodings = changed(table.encodings, min(len(table.encodings), 41) - 1, 3)


def swap_two_norms(spec: Any) -> None:
    layer = stack_of(spec).layer[0]
    one, other = layer.self_attention.layer_norm, layer.ffn.layer_norm
    one.gamma, other.gamma = other.gamma, one.gamma


def shift_a_norm(spec: Any) -> None:
    norm = stack_of(spec).layer[1].ffn.layer_norm
    norm.beta = changed(norm.beta, 7)


def forget_the_scale(spec: Any) -> None:
    stack_of(spec).scale_embeddings = False


def take_another_activation(spec: Any) -> None:
    stack = stack_of(spec)
    stack.activation = np.dtype("int8").type(2 if stack.activation == 0 else 0)  # ReLU, GELU


def change_an_embedding(spec: Any) -> None:
    """Of one token."""
    embeddings = stack_of(spec).embeddings
    embeddings = embeddings[0] if isinstance(embeddings, list) else embeddings
    embeddings.weight = changed(embeddings.weight, 200, 3)


def untie_the_output(spec: Any) -> None:
    projection = getattr(stack_of(spec), "projection", None)
    if projection is None:  # a classifier's is not exported
        return change_an_embedding(spec)
    projection.weight = changed(projection.weight, 201, 3)
    return None


FAULTS: list[Callable[[Any], None]] = [
    change_a_weight,
    swap_two_heads,
    shift_the_positions,
    swap_two_norms,
    # Those above are tried with int8 too.
    drop_a_bias,
    miscount_the_heads,
    spoil_the_last_position,
    shift_a_norm,
    forget_the_scale,
    take_another_activation,
    change_an_embedding,
    untie_the_output,
]


def change_cross_attention(spec: Any) -> None:
    linear = spec.decoder.layer[0].attention.linear[1]
    linear.weight = changed(linear.weight, 3, 5)


FAULTS_OF_ENCODERS = [swap_two_heads, shift_the_positions, swap_two_norms, drop_a_bias, change_an_embedding]


def write_export(directory: Path, config: dict[str, Any], weights: Weights, tokenizer: Tokenizer, kind: str) -> None:
    directory.mkdir()
    conversion._converted(config_from_dict(config), weights, tokenizer, kind).save(str(directory))


def certify(
    bundle: Bundle, tokenizer: Tokenizer, directory: Path, quantization: str, spoil: Callable[[Any], None]
) -> dict[str, Any]:
    """Certify an export of the bundle whose specification was changed by `spoil`."""
    task = TASKS[bundle.config["task"]]

    def make_spec(*arguments: Any) -> Any:
        spec = resolve(task.conversion)(*arguments)  # type: ignore[arg-type]
        spoil(spec)
        return spec

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conversion, "resolve", lambda _reference: make_spec)
        write_export(directory, bundle.config, bundle.weights(), tokenizer, quantization)
    export = Export(bundle, directory, quantization, tokenizer, [])
    result: dict[str, Any] = resolve(task.certify)(export)  # type: ignore[arg-type]
    return result


@pytest.mark.parametrize("quantization", conversion.QUANTIZATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_export_with_a_fault_is_certified(
    kind: str, quantization: str, tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jumok.recipes.certifying.classifier.MOST_DIFFERENT", 1.0)  # rounding is not the question here
    bundle = make_bundle(tmp_path / "model", tokenizer, kind)
    values = certify(bundle, tokenizer, tmp_path / "sound", quantization, lambda _: None)
    assert values["sources"] == certificate.RANDOM_SOURCES
    for fault in FAULTS if quantization == "float32" else FAULTS[:4]:
        with pytest.raises(ParityError, match="differ from PyTorch's"):
            certify(bundle, tokenizer, tmp_path / fault.__name__, quantization, fault)


@pytest.mark.parametrize("number", range(4))
def test_no_translator_with_a_fault_in_its_encoder_or_cross_attention_is_certified(
    number: int, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    """The faults above are those of its decoder. Each of these is tried with one kind of translator."""
    kind = [kind for kind in KINDS if KINDS[kind]["task"] == "translator"][number]
    bundle = make_bundle(tmp_path / "model", tokenizer, kind)
    for fault in (change_cross_attention, *FAULTS_OF_ENCODERS)[number::4]:

        def spoil(spec: Any, fault: Callable[[Any], None] = fault) -> None:
            fault(SimpleNamespace(encoder=spec.encoder) if fault in FAULTS_OF_ENCODERS else spec)

        with pytest.raises(ParityError, match="differ from PyTorch's"):
            certify(bundle, tokenizer, tmp_path / fault.__name__, "float32", spoil)


def test_positions_that_are_wrong_far_beyond_the_probes_are_found(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # texts as long as those of users
    monkeypatch.setattr(certificate, "LONGEST_RANDOM_SOURCE", 5)
    bundle = make_bundle(tmp_path / "model", tokenizer, "translator, post-norm")
    for side in ("encoder", "decoder"):

        def spoil(spec: Any, side: str = side) -> None:
            table = getattr(spec, side).position_encodings
            table.encodings = np.tile(table.encodings[:1024], (2, 1))

        with pytest.raises(ParityError, match="differ from PyTorch's"):
            certify(bundle, tokenizer, tmp_path / side, "float32", spoil)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_an_export_that_forgets_the_rotations_is_found(side: str, tmp_path: Path, tokenizer: Tokenizer) -> None:
    bundle = make_bundle(tmp_path / "model", tokenizer, "translator, rotary")

    def spoil(spec: Any) -> None:
        layer = getattr(spec, side).layer[1]
        plain = MultiHeadAttentionSpec(self_attention=True)
        plain.linear, plain.layer_norm = layer.self_attention.linear, layer.self_attention.layer_norm
        layer.self_attention = plain

    with pytest.raises(ParityError, match="differ from PyTorch's"):
        certify(bundle, tokenizer, tmp_path / "spoilt", "float32", spoil)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_tensor_can_have_another_weight(kind: str, tmp_path: Path, tokenizer: Tokenizer) -> None:
    bundle = make_bundle(tmp_path / "model", tokenizer, kind)
    draw = np.random.default_rng(1)
    exported = [
        name for name in bundle.weights() if not name.startswith(("head.", "ngrams.", "encoder_share"))
    ]  # the others are read from the bundle itself
    assert len(exported) > 20
    certify_export = resolve(TASKS[bundle.config["task"]].certify)
    for name in exported:
        weights = bundle.weights()
        rows = min(len(weights[name]), 41) if "positions" in name else len(weights[name])
        first = EOS + 1 if name == "embed.tokens.weight" else 0
        if name.endswith("key_value.bias"):
            first = rows - 1  # of a value: a bias of the keys adds the same to all scores, and changes nothing
        place = [draw.integers(first, rows), *map(draw.integers, weights[name].shape[1:])]
        weights[name] = changed(weights[name], *map(int, place))
        write_export(tmp_path / name, bundle.config, weights, tokenizer, "float32")
        with pytest.raises(ParityError, match="differ from PyTorch's"):
            certify_export(Export(bundle, tmp_path / name, "float32", tokenizer, []))


class Scripted:
    """An engine with a given probability of each token after each output, the same for every source."""

    def __init__(self, table: dict[tuple[int, ...], dict[int, float]]) -> None:
        self.table = table

    def greedy(self, sources: Any, prefixes: Any) -> list[list[int]]:
        assert [len(source) for source in sources] == [1] * len(prefixes)
        return [self._continue(list(prefix)) for prefix in prefixes]

    def _continue(self, output: list[int]) -> list[int]:
        while output[-1:] != [EOS]:
            options = self.table[tuple(output)]
            output.append(max(options, key=options.__getitem__))
        return output

    def score(self, sources: Any, outputs: Any) -> list[list[float]]:
        return [
            [self.table[tuple(output[:i])].get(token, -99.0) for i, token in enumerate([*output, EOS])]
            for output in outputs
        ]

    def engine(self) -> GreedyEngine:
        return GreedyEngine(self.greedy, self.score)


# 5 and 6 are equally probable at first; after either, the original has its own way to end.
ORIGINAL = {
    (): {5: -0.7, 6: -0.7003, 7: -3.0},
    (5,): {EOS: -0.1, 8: -2.5},
    (6,): {8: -0.2, EOS: -1.8},
    (7,): {EOS: -0.1},
    (5, 8): {EOS: -0.1},
    (6, 8): {EOS: -0.1, 9: -3.0},
    (6, 8, 9): {EOS: -0.1},
}


@pytest.mark.parametrize(
    ("changes", "ties"),
    [
        ({(): {5: -0.7003, 6: -0.7}}, 1),  # the other of two, and then as the original would go on
        ({(): {5: -3.0, 7: -0.7}}, 0),  # a token that is less probable to the original
        ({(): {5: -0.7003, 6: -0.7}, (6,): {EOS: -0.2, 8: -1.8}}, 0),  # a tie, and then a mistake
        ({(): {5: -0.7003, 6: -0.7}, (6, 8): {9: -0.1, EOS: -3.0}}, 0),  # and a mistake later
        ({(5,): {8: -0.1, EOS: -2.5}}, 0),  # does not end where the original ends
    ],
)
def test_a_tie_is_followed_to_the_end(changes: dict[Any, Any], ties: int) -> None:
    original, exported = Scripted(ORIGINAL), Scripted({**ORIGINAL, **changes})
    found = compare(original.engine(), exported.engine(), [[4]])
    assert (found.equal, found.ties) == (0, ties)
    assert (found.example is None) == bool(ties)


def test_an_end_that_is_as_probable_as_going_on_is_a_tie() -> None:
    goes_on = {(): {5: -0.1}, (5,): {8: -0.7, EOS: -0.7003}, (5, 8): {EOS: -0.1}}
    ends = {**goes_on, (5,): {8: -0.7003, EOS: -0.7}}
    found = compare(Scripted(goes_on).engine(), Scripted(ends).engine(), [[4]])
    assert (found.equal, found.ties) == (0, 1)


def test_after_a_tie_the_original_goes_on_for_as_many_tokens_as_the_outputs_have() -> None:
    def cut(engine: Scripted) -> GreedyEngine:
        """Outputs of two tokens at most, unless they go on from a tie."""
        return GreedyEngine(lambda s, p: [o if p[0] else o[:2] for o in engine.greedy(s, p)], engine.score)

    table = {(): {5: -0.7, 6: -0.7003}, (5,): {8: -0.1}, (5, 8): {9: -0.1}, (5, 8, 9): {EOS: -0.1}}
    table |= {(6,): {8: -0.1}, (6, 8): {9: -0.1}, (6, 8, 9): {EOS: -0.1}}
    for output in ((5, 8), (6, 8)):
        table[output] |= {EOS: -3.0}
    other = Scripted({**table, (): {5: -0.7003, 6: -0.7}})
    found = compare(cut(Scripted(table)), cut(other), [[4]])
    assert (found.equal, found.ties) == (0, 1)


def test_an_output_that_is_cut_off_is_no_tie() -> None:
    original = Scripted(ORIGINAL)
    cut = GreedyEngine(lambda sources, _prefixes: [[] for _ in sources], original.score)
    assert compare(original.engine(), cut, [[4]]).ties == 0
    assert compare(original.engine(), original.engine(), [[4]]).equal == 1


def test_outputs_that_differ_and_are_no_ties_are_refused_with_an_example() -> None:
    found = Certificate(4, 2, 1, 0.0, {"source": [4], "expected": [5], "found": [6]})
    with pytest.raises(ParityError) as error:
        require_parity(found)
    assert str(error.value) == (
        "The outputs of the exported model differ from PyTorch's for 1 of 4 probes, for example "
        "{'source': [4], 'expected': [5], 'found': [6]}. Nothing was exported; use `engine=\"torch\"` and report this."
    )
    for difference in (0.0, certificate.MOST_SCORE_DIFFERENCE):
        sound = Certificate(4, 3, 1, difference, None)
        assert require_parity(sound) is sound
    with pytest.raises(ParityError) as error:
        require_parity(Certificate(4, 3, 1, 0.5, None))
    assert str(error.value) == (
        "The exported model's scores differ from PyTorch's by up to 0.5; rounding explains at most 0.001. "
        'Nothing was exported; use `engine="torch"` and report this.'
    )


def test_a_difference_of_exactly_the_limit() -> None:
    best = {(): {5: 0.0, 6: -certificate.TIE}, (5,): {EOS: 0.0}, (6,): {EOS: 0.0}}
    other = {**best, (): {6: 0.0}}
    assert compare(Scripted(best).engine(), Scripted(other).engine(), [[4]]).ties == 0
    scores = np.array([[0.0, certificate.TIE]])
    assert compare_scores(scores, scores[:, ::-1], [[4]]).ties == 0
    arguments = ("scores", lambda engine: np.array([engine.model.value]))
    require_close(*arguments, NumberEngine(Number(0.0)), NumberEngine(Number(0.04)))


def test_without_numbers_nothing_differs() -> None:
    assert largest_difference(np.array([])) == 0.0


def test_what_is_no_number_is_not_close() -> None:
    with pytest.raises(ParityError, match="differ from PyTorch's by up to nan"):
        require_parity(Certificate(3, 3, 0, float("nan"), None))
    scores = np.array([[1.0, 0.0], [2.0, 1.0]], np.float32)
    spoiled = scores.copy()
    spoiled[1, 1] = np.nan
    with pytest.raises(ParityError):
        require_parity(compare_scores(scores, spoiled, [[4], [5]]))
    one, other = Scripted(ORIGINAL), Scripted({**ORIGINAL, (5,): {EOS: float("nan")}})
    with pytest.raises(ParityError, match="nan"):
        require_parity(compare(one.engine(), other.engine(), [[4], [4]]))


@dataclass(frozen=True)
class Number:
    """In place of a model: it computes 0.01 more in float64."""

    value: float

    def double(self) -> "Number":
        return Number(self.value + 0.01)


@dataclass(frozen=True)
class NumberEngine:
    model: Number


@pytest.mark.parametrize(
    ("value", "close"), [(1.0, True), (1.0009, True), (1.03, True), (1.05, False), (float("nan"), False)]
)
def test_rounding_errors_that_a_model_enlarges_are_no_fault(value: float, close: bool) -> None:
    original, exported = NumberEngine(Number(1.0)), NumberEngine(Number(value))
    arguments = ("scores", lambda engine: np.array([2.0, engine.model.value]), original, exported)
    if close:
        require_close(*arguments)
    else:
        with pytest.raises(ParityError, match=r"rounding explains at most 0\.04"):
            require_close(*arguments)


class Growing:
    """In place of a model that is changed by `double`, as those of PyTorch are."""

    def __init__(self) -> None:
        self.values = [1.0]

    def double(self) -> "Growing":
        self.values.append(0.01)
        return self


def test_the_original_stays_as_it_is_while_its_rounding_errors_are_measured() -> None:
    original = NumberEngine(Growing())  # type: ignore[arg-type]
    exported = NumberEngine(Number(1.05))
    with pytest.raises(ParityError) as error:
        require_close("states", lambda e: np.array(sum(getattr(e.model, "values", [1.05]))), original, exported)
    assert original.model.values == [1.0]  # type: ignore[attr-defined]
    assert str(error.value).startswith("The exported model's states differ from PyTorch's by up to 0.05; rounding")


INT8 = {
    "translator": ("_bleu", [(40.0, 39.5, True), (40.0, 39.49, False), (40.0, 45.0, True)], "has BLEU 39.49 instead"),
    "language_model": (
        "_bits_per_token",
        [(1.0, 1.02, True), (1.0, 1.021, False), (1.0, float("nan"), False), (1.0, 0.5, True)],
        "bits a token instead of 1.000 on the probes: more than 0.02 is lost",
    ),
    "classifier": (
        "_compare",
        [(200, 198, True), (200, 197, False)],
        "gives 3 of 200 probes another class: more than 1%",
    ),
}


@pytest.mark.parametrize("task", INT8)
def test_int8_may_cost_so_much_and_no_more(
    task: str, tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module(f"jumok.recipes.certifying.{task}")
    kind = next(kind for kind in KINDS if KINDS[kind]["task"] == task)
    bundle = make_bundle(tmp_path / "model", tokenizer, kind)
    write_export(tmp_path / "int8", bundle.config, bundle.weights(), tokenizer, "int8")
    measure, cases, message = INT8[task]
    probes = [("The small cat.", "고양이"), ("A dog.", "개")]
    export = Export(bundle, tmp_path / "int8", "int8", tokenizer, probes)
    for original, exported, allowed in cases:
        measured = iter([original, exported])
        if task == "classifier":
            exact, rounded = Certificate(200, original, 0, 0.0, None), Certificate(200, exported, 1, 0.5, None)
            measured = iter([exact, rounded])
        monkeypatch.setattr(module, measure, lambda *_, measured=measured: next(measured))
        if not allowed:
            with pytest.raises(ParityError, match=f"Rounded to int8 the model .*({message}|nan)"):
                module.certify(export)
            continue
        values = module.certify(export)
        assert values["largest_score_difference"] > 1e-3  # of what is computed in int8
        if task != "classifier":
            name = "bleu" if task == "translator" else "bits_per_token"
            assert (values[name], values[f"{name}_exported"]) == (original, exported)


def test_a_class_is_a_tie_only_if_the_original_nearly_gave_it() -> None:
    original = np.array([[0.0, 0.0009], [5.0, 5.002], [5.0, 5.0005]], np.float32)
    found = compare_scores(original, original[:, ::-1], [[4], [5], [6]])
    assert (found.equal, found.ties) == (0, 2)
    assert found.example == {"source": [5], "expected": 1, "found": 0}


class FakeLanguageModel:
    """Continues every text with 7, 8, 9 and then ends; the score of a token is its position."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[int], int, float]] = []

    def generate(self, prompt: list[int], options: GenerationOptions) -> list[int]:
        self.asked.append((prompt, options.max_tokens, options.temperature))
        return [7, 8, 9][: options.max_tokens]

    def score(self, texts: list[list[int]]) -> list[list[float]]:
        return [[float(place) for place in range(len(text) + 1)] for text in texts]


def test_a_continuation_goes_on_from_its_first_tokens() -> None:
    model = FakeLanguageModel()
    engine = continuing(model, 4)  # type: ignore[arg-type]
    assert engine.greedy([[5], [5, 6]], [[], [4]]) == [[7, 8, 9, EOS], [4, 7, 8, 9]]
    assert model.asked == [([5], 4, 0), ([5, 6, 4], 3, 0)]
    assert engine.greedy([[5]], [[1, 2, 4, 4]]) == [[1, 2, 4, 4]]
    assert len(model.asked) == 2
    assert engine.score([[5, 6], []], [[7], [8, 9]]) == [[2.0, 3.0], [0.0, 1.0, 2.0]]
    for compared in (engine.greedy, engine.score):
        with pytest.raises(ValueError, match="shorter"):
            compared([[5], [6]], [[7]])
        with pytest.raises(ValueError, match="longer"):
            compared([[5]], [[7], [8]])
    model.score = lambda texts: [[0.0]]  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="shorter"):
        engine.score([[5], [6]], [[7], [8]])
