"""Gradients are sent while the backward pass still runs; whatever happens in it, all processes send the same."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from jumok.training.gradient_sums import GradientSums
from jumok.training.gradients import Gradients

WIDTH, LAYERS = 20, 4
LAYER_BYTES = 4 * (WIDTH * WIDTH + WIDTH)


@dataclass
class Sent:
    """A message to a second process, which sends the same: the sum is twice as much, once it was waited for."""

    buffer: Tensor

    def wait(self) -> None:
        self.buffer *= 2


@dataclass
class TwoProcesses:
    """What happened, in order: "send" for each message, and the number of each layer whose backward pass began."""

    happened: list[Any] = field(default_factory=list)

    def all_reduce(self, buffer: Tensor, *, async_op: bool = False) -> Sent:
        self.happened.append("send")
        return Sent(buffer)


class Layer(nn.Module):
    """A layer that tells when its backward pass begins, and can fail in it."""

    def __init__(self, number: int, on_backward: Callable[[int], None]) -> None:
        super().__init__()
        self.linear, self.number, self.on_backward = nn.Linear(WIDTH, WIDTH), number, on_backward

    def forward(self, states: Tensor) -> Tensor:
        output: Tensor = self.linear(states)
        output.register_hook(lambda _: self.on_backward(self.number))
        return output


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> TwoProcesses:
    pretended = TwoProcesses()
    monkeypatch.setattr(dist, "all_reduce", pretended.all_reduce)
    return pretended


def model_of(on_backward: Callable[[int], None]) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(*(Layer(number, on_backward) for number in range(LAYERS)))


def expected_gradients(inputs: Tensor) -> list[Tensor]:
    model = model_of(lambda _: None)
    model(inputs).square().sum().backward()
    return [2 * parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def test_a_layers_gradients_are_sent_while_those_before_it_are_computed(two: TwoProcesses) -> None:
    model = model_of(two.happened.append)
    parameters = list(model.parameters())
    sums, inputs = GradientSums(parameters, LAYER_BYTES), torch.randn(3, WIDTH)
    for _ in range(2):  # updates
        two.happened.clear()
        model.zero_grad()
        sums.before_last_backward()
        model(inputs).square().sum().backward()
        sums.send_rest()
        assert two.happened == [3, "send", 2, "send", 1, "send", 0, "send"]
        sums.finish()
        for parameter, expected in zip(parameters, expected_gradients(inputs), strict=True):
            assert torch.equal(parameter.grad, expected)


@pytest.mark.parametrize("has_a_batch", [True, False])
def test_every_process_sends_the_same_messages_whatever_it_computed(two: TwoProcesses, has_a_batch: bool) -> None:
    """A parameter that no batch needed, and a process that had no batch, count as zeros."""
    model, unused = model_of(two.happened.append), nn.Parameter(torch.ones(WIDTH))
    sums = GradientSums([unused, *model.parameters()], LAYER_BYTES)
    for _ in range(2):
        two.happened.clear()
        if has_a_batch:
            sums.before_last_backward()
            model(torch.randn(3, WIDTH)).square().sum().backward()
        sums.send_rest()
        sums.finish()
        assert two.happened.count("send") == LAYERS + 1
        assert torch.equal(unused.grad, torch.zeros(WIDTH))
        model.zero_grad()
        unused.grad = None


@dataclass
class Inputs:
    """A batch that can be split."""

    rows: Tensor

    @property
    def tokens(self) -> int:
        return len(self.rows)

    def halves(self) -> "tuple[Inputs, Inputs] | None":
        middle = len(self.rows) // 2
        return (Inputs(self.rows[:middle]), Inputs(self.rows[middle:])) if middle else None

    def describe(self) -> str:
        return f"{len(self.rows)} rows"


def test_a_batch_that_is_split_in_the_midst_of_its_backward_pass_sends_nothing_twice(two: TwoProcesses) -> None:
    def fail_once(number: int) -> None:
        two.happened.append(number)
        if number == 1 and two.happened.count(1) == 2:  # in the last backward pass, when two messages were sent
            raise MemoryError

    model, inputs = model_of(fail_once), torch.randn(4, WIDTH)
    parameters = list(model.parameters())
    sums = GradientSums(parameters, LAYER_BYTES)
    optimizer = torch.optim.SGD(parameters)
    gradients = Gradients(lambda batch: model(batch.rows).square().sum(), optimizer)
    gradients.fill([Inputs(inputs[:2]), Inputs(inputs[2:])], before_last=sums.before_last_backward)
    sums.send_rest()
    sums.finish()
    assert two.happened.count("send") == LAYERS
    for parameter, expected in zip(parameters, expected_gradients(inputs), strict=True):
        assert torch.allclose(parameter.grad, expected, rtol=1e-5, atol=1e-6)


def test_a_card_that_gloo_does_not_know_sends_once_after_the_backward_pass(two: TwoProcesses) -> None:
    model = model_of(two.happened.append)
    sums = GradientSums(list(model.parameters()), LAYER_BYTES, by_host=True)
    sums.before_last_backward()
    model(torch.randn(3, WIDTH)).square().sum().backward()
    assert "send" not in two.happened
    sums.send_rest()
    sums.finish()
    assert two.happened.count("send") == 1
