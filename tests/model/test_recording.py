"""What is recorded is what the model computed: each value follows from the ones before it, and nothing is missing."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from jumok.errors import ShapeError
from jumok.model.attention import attention_weights
from jumok.model.recording import Recorded, attentions, record, sublayers

PARTS = {
    "encoder": {"self": "attention", "feed_forward": "feed_forward"},
    "decoder": {"self": "self_attention", "cross": "cross_attention", "feed_forward": "feed_forward"},
}
ATTENTION = ("q", "k", "v", "mixed", "merged", "output", "residual", "norm")
OF_A_STACK = ("ids", "embedding", "scaled", "positions", "embedded", "output")


def parts(task: str, stack: str) -> dict[str, str]:
    return {part: name for part, name in PARTS[stack].items() if task == "translator" or part != "cross"}


def stacks(task: str) -> list[str]:
    return {"translator": ["encoder", "decoder"], "classifier": ["encoder"], "language_model": ["decoder"]}[task]


def texts(task: str) -> tuple[Tensor, ...]:
    source, target = torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0]]), torch.tensor([[2, 7, 8], [2, 9, 0]])
    return (source, target) if task == "translator" else (source,)


def check_attention(values: Recorded, name: str, module: Any) -> None:
    weights = attention_weights(values[f"{name}.q"], values[f"{name}.k"], values.get(f"{name}.mask"))
    torch.testing.assert_close(weights @ values[f"{name}.v"], values[f"{name}.mixed"])
    assert torch.equal(values[f"{name}.mixed"].transpose(1, 2).flatten(2), values[f"{name}.merged"])
    assert torch.equal(module.output(values[f"{name}.merged"]), values[f"{name}.output"])


def check_stack(values: Recorded, model: Any, task: str, stack: str, ids: Tensor) -> None:
    embed, norm = model.embed, model.config.norm
    assert torch.equal(values[f"{stack}.ids"], ids)
    assert torch.equal(values[f"{stack}.embedding"], embed.tokens.weight[ids])
    torch.testing.assert_close(values[f"{stack}.embedding"] * math.sqrt(12), values[f"{stack}.scaled"])
    assert torch.equal(values[f"{stack}.scaled"] + values[f"{stack}.positions"], values[f"{stack}.embedded"])
    assert values[f"{stack}.positions"].shape == (1, *values[f"{stack}.scaled"].shape[1:])
    x = values[f"{stack}.embedded"]
    for depth, layer in enumerate(getattr(model, stack).layers):
        for part, attribute in parts(task, stack).items():
            name, module = f"{stack}.{depth}.{part}", getattr(layer, attribute)
            seen = values[f"{name}.norm"] if norm == "pre" else x  # the input of the sublayer
            if part == "feed_forward":
                torch.testing.assert_close(module.activation(module.widen(seen)), values[f"{name}.hidden"])
                torch.testing.assert_close(module.narrow(values[f"{name}.hidden"]), values[f"{name}.output"])
            else:
                check_attention(values, name, module)
            torch.testing.assert_close(x + values[f"{name}.output"], values[f"{name}.residual"])
            x = values[f"{name}.residual"] if norm == "pre" else values[f"{name}.norm"]
    torch.testing.assert_close(getattr(model, stack).norm(x), values[f"{stack}.output"])


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("task", ["translator", "classifier", "language_model"])
def test_every_value_follows_from_those_before_it(build: Callable[..., Any], task: str, norm: str) -> None:
    model, ids = build(task, norm=norm, positions="learned" if norm == "pre" else "sinusoidal"), texts(task)
    with record(model) as values:
        model(*ids)
    names = {f"{stack}.{name}" for stack in stacks(task) for name in OF_A_STACK}
    for stack in stacks(task):
        check_stack(values, model, task, stack, ids[stacks(task).index(stack)])
        for depth in range(2):
            for part in parts(task, stack):
                kept = ("hidden", "output", "residual", "norm") if part == "feed_forward" else (*ATTENTION, "mask")
                names |= {f"{stack}.{depth}.{part}.{name}" for name in kept}
    assert set(values) == names


def test_positions_are_those_of_the_tokens_and_a_mask_is_there_only_if_something_is_hidden(
    build: Callable[..., Any],
) -> None:
    model = build("language_model")
    with record(model) as values:
        _, cache = model.decode(torch.tensor([[5, 6]]))
        assert "decoder.0.self.mask" in values
        model.decode(torch.tensor([[7]]), cache)
        assert "decoder.0.self.mask" not in values
        assert torch.equal(values["decoder.ids"], torch.tensor([[7]]))
        assert torch.equal(values["decoder.positions"][0, 0], model.embed.positions(torch.zeros(1, 1, 12), 2)[0, 0])


def test_weights_that_do_not_follow_from_queries_and_keys_are_recorded(build: Callable[..., Any]) -> None:
    model, name = build("translator"), "decoder.1.cross"
    model.decoder.layers[1].cross_attention.attend.is_dot_product = False
    with record(model) as values:
        model(*texts("translator"))
    torch.testing.assert_close(values[f"{name}.weights"] @ values[f"{name}.v"], values[f"{name}.mixed"])
    assert [key for key in values if key.endswith(".weights")] == [f"{name}.weights"]


def test_hooks_are_gone_after_the_block_even_after_an_error(build: Callable[..., Any]) -> None:
    model = build("translator")
    source, _ = texts("translator")
    with pytest.raises(ShapeError, match="outside the vocabulary"), record(model) as values:
        model(source, torch.tensor([[99], [99]]))
    assert "encoder.output" in values
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_one_sublayer_can_be_recorded_alone(build: Callable[..., Any]) -> None:
    model, ids = build("translator"), texts("translator")
    with record(model) as everything:
        model(*ids)
    with record(model, only="decoder.1.cross") as values:
        model(*ids)
    assert set(values) == {f"decoder.1.cross.{name}" for name in (*ATTENTION, "mask")}
    assert all(torch.equal(value, everything[name]) for name, value in values.items())


def test_sublayers_and_attentions_have_names(build: Callable[..., Any]) -> None:
    model = build("translator")
    layer = model.decoder.layers[1]
    assert [name for name, _, _ in sublayers(build("classifier", encoder_layers=1))] == [
        "encoder.0.self",
        "encoder.0.feed_forward",
    ]
    assert list(sublayers(model))[-3:] == [
        ("decoder.1.self", layer.self_attention, layer.add_norm_1),
        ("decoder.1.cross", layer.cross_attention, layer.add_norm_2),
        ("decoder.1.feed_forward", layer.feed_forward, layer.add_norm_3),
    ]
    assert attentions(model) == {
        "encoder.0.self": model.encoder.layers[0].attention,
        "encoder.1.self": model.encoder.layers[1].attention,
        "decoder.0.self": model.decoder.layers[0].self_attention,
        "decoder.0.cross": model.decoder.layers[0].cross_attention,
        "decoder.1.self": layer.self_attention,
        "decoder.1.cross": layer.cross_attention,
    }
    assert list(attentions(build("language_model"))) == ["decoder.0.self", "decoder.1.self"]
