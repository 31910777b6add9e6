"""Updates whose results the host does not wait for, as on a card: what is not finite changes nothing, and is told."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.training.toy import ToyBatch
from torch import Tensor, nn

from jumok.errors import TrainingError
from jumok.training.distributed import SINGLE_PROCESS
from jumok.training.optimizer import Adam
from jumok.training.precision import FIRST_SCALE, LEAST_SCALE, STEPS_TO_DOUBLE, LossScale, Precision
from jumok.training.updates import Updates

BATCH = ToyBatch(torch.ones(3, 4))
ELSEWHERE = torch.device("meta")  # a card, to code that only asks whether this is the CPU


class Training:
    """A linear map and its updates, with Adam as trainings have it."""

    def __init__(self, precision: Precision) -> None:
        torch.manual_seed(0)
        self.precision, self.model, self.step = precision, nn.Linear(4, 2), 0
        parameters = list(self.model.parameters())
        self.optimizer = Adam(parameters, (0.9, 0.999), 1e-8)
        self.updates = Updates(parameters, self.optimizer, clip=1.0, precision=precision, group=SINGLE_PROCESS)

    def update(self, change: Callable[[Tensor], Tensor] = lambda loss: loss) -> None:
        """One update; `change` makes another loss of the right one."""
        self.step += 1
        self.optimizer.zero_grad()
        loss = change(self.model(BATCH.inputs).square().sum())
        scale = self.precision.scale
        (loss if scale is None else loss * scale.factor).backward()  # type: ignore[no-untyped-call]
        self.updates.make(self.step, 0.1, loss.detach(), BATCH.tokens, [BATCH])

    def state(self) -> list[Tensor]:
        """Weights, moments and their counts of steps."""
        moments = [value for state in self.optimizer.state.values() for value in state.values()]
        return [tensor.detach().clone() for tensor in (*self.model.parameters(), *moments)]


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def overflow_in_backward(loss: Tensor) -> Tensor:
    """The loss itself, with an infinite gradient."""
    loss.register_hook(lambda gradient: gradient * math.inf)  # type: ignore[no-untyped-call]
    return loss


BROKEN: dict[str, Callable[[Tensor], Tensor]] = {
    "NaN": lambda loss: loss * math.nan,
    "infinite": lambda loss: loss * math.inf,
    "infinite gradient": overflow_in_backward,
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_card_skips_an_update_that_is_not_finite_and_the_error_comes_when_it_is_read(broken: str) -> None:
    training = Training(Precision("float32", ELSEWHERE))
    training.update()
    before = training.state()
    training.update(BROKEN[broken])
    assert same(training.state(), before)
    training.update()
    assert not same(training.state(), before)  # the next one is made again
    with pytest.raises(TrainingError, match=r"step 2 is .*no update was made\. Batch: 3 toy rows"):
        training.updates.read()


@pytest.mark.parametrize("broken", BROKEN)
def test_float16_skips_an_update_that_overflows_and_halves_the_scale(broken: str) -> None:
    training = Training(Precision("float16"))
    assert training.precision.scale is not None
    training.update()
    before = training.state()
    training.update(BROKEN[broken])
    assert same(training.state(), before)
    assert float(training.precision.scale.factor) == FIRST_SCALE / 2
    loss, _ = training.updates.read()
    assert math.isfinite(loss)


def test_float16_makes_the_updates_of_float32() -> None:
    one, other = Training(Precision("float32")), Training(Precision("float16"))
    for _ in range(3):
        one.update()
        other.update()
    for a, b in zip(one.state(), other.state(), strict=True):
        torch.testing.assert_close(a, b)
    assert one.updates.read() == pytest.approx(other.updates.read())


def test_what_overflows_at_the_smallest_scale_is_an_error() -> None:
    training = Training(Precision("float16"))
    for _ in range(round(math.log2(FIRST_SCALE / LEAST_SCALE))):
        training.update(BROKEN["NaN"])
    training.updates.read()
    training.update(BROKEN["NaN"])
    with pytest.raises(TrainingError, match=r"no update was made\. Batch: 3 toy rows"):
        training.updates.read()


def test_the_scale_is_doubled_after_many_steps_and_goes_on_from_a_checkpoint() -> None:
    scale, again = LossScale(torch.device("cpu")), LossScale(torch.device("cpu"))
    finite: Any = torch.tensor(False)
    for _ in range(STEPS_TO_DOUBLE - 1):
        scale.update(finite)
    again.restore(scale.to_state())
    for each in (scale, again):
        assert float(each.factor) == FIRST_SCALE
        each.update(finite)
        assert float(each.factor) == 2 * FIRST_SCALE
