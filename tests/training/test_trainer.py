import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from tests.training.toy import BATCHES, BackgroundEpochs, Toy, ToyBatch, ToyEpochs, ToyModel, squared_error
from torch import Tensor

from jumok.errors import CheckpointError, TrainingError
from jumok.training.averaging import average_checkpoints
from jumok.training.checkpoint import load_latest
from jumok.training.distributed import SINGLE_PROCESS, ProcessGroup
from jumok.training.progress import Progress
from jumok.training.trainer import Trainer


def weights(toy: Toy) -> dict[str, Tensor]:
    return dict(toy.model.state_dict())


def same(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> bool:
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def noted(toy: Toy) -> list[dict[str, Any]]:
    """The events without those that only say what begins."""
    return [event for event in toy.events if len(event) > 1]


@pytest.fixture(scope="module", autouse=True)
def two_threads() -> Iterator[None]:
    """Users train on all cores: everything here must hold with two threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A training that nobody interrupted."""
    toy = Toy(tmp_path_factory.mktemp("whole") / "run")
    assert toy.go() is not None
    return toy


# An epoch is four updates, the last of them from one batch instead of two; validations are at 6, 12, 18 and 24.
SAVE_POINTS = {
    1: "the first update",
    3: "before the end of an epoch",
    4: "the end of an epoch, in an update that is short of batches",
    5: "after it, at an ordinary checkpoint",
    6: "a validation",
    7: "after it",
    11: "before the end of an epoch and a validation",
    12: "both",
    13: "after both; the best score",
    17: "before the first validation without a better one",
    18: "that one",
    23: "before the end",
}
ENDINGS: dict[str, dict[str, Any]] = {
    "averaging": {"steps": 24, "average": 3},
    "early stop": {"steps": 300, "average": 1, "patience": 2, "score_of": lambda model, step: -abs(step - 12)},
}
assert len(SAVE_POINTS) == 12
WAYS: dict[str, dict[str, Any]] = {"Adam": {}, "Muon in bfloat16": {"precision": "bfloat16", "by_muon": True}}
SOME_STOPS = [4, 11, 12, 13, 24]


@pytest.mark.parametrize("epochs", [ToyEpochs, BackgroundEpochs], ids=["in turn", "in the background"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_training_goes_on_from_each_of_twelve_points_with_the_same_bits(
    tmp_path: Path, ending: str, epochs: type[ToyEpochs]
) -> None:
    def toy(name: str, **changes: Any) -> Toy:
        return Toy(tmp_path / name, epochs=epochs(), **ENDINGS[ending], **changes)

    whole = toy("whole")
    progress = whole.go()
    assert progress is not None
    assert progress.step == 24
    for point, what in SAVE_POINTS.items():
        first, second = toy(str(point), stop_after=point), toy(str(point))
        assert first.go() is None, what
        assert second.go() is not None, what
        assert same(weights(second), weights(whole)), what
        assert second.log() == whole.log(), what
        published = first.published | second.published
        assert {step: same(published[step], theirs) for step, theirs in whole.published.items()} == dict.fromkeys(
            whole.published, True
        ), what


def test_the_two_threads_of_these_tests_matter(tmp_path: Path, whole: Toy) -> None:
    """With one thread the last bits are others, so that the same bits in the other tests are not those of one."""
    torch.set_num_threads(1)
    try:
        one = Toy(tmp_path / "run")
        assert one.go() is not None
    finally:
        torch.set_num_threads(2)
    assert not same(weights(one), weights(whole))
    for name, weight in weights(one).items():
        torch.testing.assert_close(weight, weights(whole)[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("how", "stops"), [("Adam", SOME_STOPS), ("Adam", list(range(1, 30))), ("Muon in bfloat16", SOME_STOPS)]
)
def test_a_training_interrupted_anywhere_ends_with_the_same_bits(
    tmp_path: Path, whole: Toy, how: str, stops: list[int]
) -> None:
    path, plain = tmp_path / "run", whole
    if WAYS[how]:
        whole = Toy(tmp_path / "whole", **WAYS[how])
        assert whole.go() is not None
        assert not same(weights(whole), weights(plain))
    published: dict[int, dict[str, Tensor]] = {}
    for stop in stops:
        part = Toy(path, stop_after=stop, **WAYS[how])
        assert part.go() is None
        assert part.trainer.progress.step == stop
        published |= part.published
    last = Toy(path, **WAYS[how])
    assert last.go() is not None
    assert same(weights(last), weights(whole))
    assert last.log() == whole.log()
    published |= last.published
    assert published.keys() == whole.published.keys()
    assert all(same(published[step], whole.published[step]) for step in published)


def test_a_crash_between_two_checkpoints_costs_time_but_not_a_bit(tmp_path: Path, whole: Toy) -> None:
    def crash_at_13(model: ToyModel, batch: ToyBatch) -> Tensor:
        if toy.trainer.progress.step == 13:
            raise KeyError("power failure")
        return squared_error(model, batch)

    toy = Toy(tmp_path / "run", loss_of=crash_at_13)
    with pytest.raises(KeyError):
        toy.go()
    again = Toy(tmp_path / "run")
    again.go()
    assert noted(again)[0]["event"] == "resumed"
    assert noted(again)[0]["step"] == 12
    assert same(weights(again), weights(whole))
    assert again.log() == whole.log()


def test_accumulated_batches_give_the_update_of_one_large_batch(tmp_path: Path) -> None:
    class Joined(ToyEpochs):
        """The same rows, all batches of an epoch in one."""

        def size(self, epoch: int) -> int:
            return 1

        def batches(self, epoch: int, places: Sequence[int]) -> Any:
            rows = torch.cat([batch.inputs for batch in super().batches(epoch, range(BATCHES))])
            return iter([ToyBatch(rows) for _ in places])

    def without_dropout(model: ToyModel, batch: ToyBatch) -> Tensor:
        model.dropout.rate = 0.0
        return squared_error(model, batch)

    many = Toy(tmp_path / "many", accumulate=BATCHES, steps=10, loss_of=without_dropout, average=1)
    one = Toy(tmp_path / "one", accumulate=1, steps=10, loss_of=without_dropout, average=1, epochs=Joined())
    many.go()
    one.go()
    for name, weight in weights(many).items():
        torch.testing.assert_close(weight, weights(one)[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("spoiled", [math.nan, math.inf])
def test_a_loss_that_is_not_a_number_changes_nothing_and_names_the_batch(
    tmp_path: Path, spoiled: float, how: str
) -> None:
    before: dict[str, Tensor] = {}

    def spoiled_at_9(model: ToyModel, batch: ToyBatch) -> Tensor:
        loss = squared_error(model, batch)
        if toy.trainer.progress.step < 9:
            return loss
        before.update({name: weight.clone() for name, weight in model.state_dict().items()})
        return loss * spoiled

    toy = Toy(tmp_path / "run", loss_of=spoiled_at_9, **WAYS[how])
    with pytest.raises(TrainingError, match=rf"step 10 is {spoiled}.*no update was made.*toy rows") as error:
        toy.go()
    assert same(weights(toy), before)
    assert error.value.exit_code not in (0, 1, 2)
    checkpoint = load_latest(tmp_path / "run" / "checkpoints", lambda path, reason: None)
    assert checkpoint is not None
    assert checkpoint.step == 6
    assert all(bool(weight.isfinite().all()) for weight in checkpoint.tensors["model"].values())


def test_a_batch_too_large_for_memory_is_cut_and_the_update_stays_the_same(tmp_path: Path) -> None:
    def small_memory(model: ToyModel, batch: ToyBatch) -> Tensor:
        model.dropout.rate = 0.0
        if len(batch.inputs) > 4:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes")
        return squared_error(model, batch)

    def large_memory(model: ToyModel, batch: ToyBatch) -> Tensor:
        model.dropout.rate = 0.0
        return squared_error(model, batch)

    cut, uncut = Toy(tmp_path / "cut", loss_of=small_memory), Toy(tmp_path / "uncut", loss_of=large_memory)
    cut.go()
    uncut.go()
    assert cut.trainer.gradients.parts == 2
    assert {"event": "memory", "step": 0, "parts": 2} in cut.events  # found by the largest batch, before any step
    for name, weight in weights(cut).items():
        torch.testing.assert_close(weight, weights(uncut)[name], rtol=1e-4, atol=1e-5)


def test_an_error_that_is_not_about_memory_is_not_hidden(tmp_path: Path) -> None:
    def broken(model: ToyModel, batch: ToyBatch) -> Tensor:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        Toy(tmp_path / "run", loss_of=broken).go()


def test_patience_ends_a_training_that_no_longer_improves(tmp_path: Path) -> None:
    toy = Toy(tmp_path / "run", patience=2, steps=300, score_of=lambda model, step: -abs(step - 12), average=1)
    progress = toy.go()
    assert progress is not None
    assert (progress.step, progress.best_step) == (24, 12)
    assert list(toy.published) == [6, 12]


def test_the_best_and_the_last_checkpoints_are_averaged_and_the_best_of_all_is_published(tmp_path: Path) -> None:
    peaks = {6: 5.0, 12: 6.0, 18: 7.0, 24: 1.0, 30: 2.0}
    scores: list[float] = []

    def score(model: ToyModel, step: int) -> float:
        scores.append(peaks[step] if len(scores) < len(peaks) else 10.0 + len(scores))
        return scores[-1]

    toy = Toy(tmp_path / "run", score_of=score, average=2)
    toy.go()
    averaged = [entry for entry in toy.log() if "averaged" in entry]
    assert [entry["averaged"] for entry in averaged] == ["last", "best"]
    expected = average_checkpoints(tmp_path / "run" / "checkpoints", [12, 18])
    assert expected is not None
    assert same(toy.published[30], expected)
    assert not same(weights(toy), expected)  # the model itself stays where training left it


def test_the_average_is_the_mean(tmp_path: Path) -> None:
    toy = Toy(tmp_path / "run", average=3)
    toy.go()
    kept = [
        load_group["linear.weight"].double()
        for step in (18, 24, 30)
        if (load_group := _model_of(tmp_path / "run", step)) is not None
    ]
    average = average_checkpoints(tmp_path / "run" / "checkpoints", [18, 24, 30])
    assert average is not None
    torch.testing.assert_close(average["linear.weight"], torch.stack(kept).mean(0).float())


def _model_of(run: Path, step: int) -> dict[str, Tensor] | None:
    from jumok.training.checkpoint import load_group

    return load_group(run / "checkpoints", step, "model")


def test_other_data_than_before_is_refused(tmp_path: Path) -> None:
    Toy(tmp_path / "run", stop_after=8).go()
    with pytest.raises(CheckpointError, match="fresh=True"):
        Toy(tmp_path / "run", epochs=ToyEpochs(seed=1)).go()


def test_other_data_than_before_begins_the_next_epoch_where_that_is_allowed(tmp_path: Path) -> None:
    assert Toy(tmp_path / "run", stop_after=9).go() is None
    other = ToyEpochs(seed=1)
    changed = Toy(tmp_path / "run", epochs=other, new_order_allowed=True, stop_after=10)
    assert changed.go() is None
    assert (changed.trainer.progress.epoch, changed.trainer.progress.position) == (3, 2)  # step 9 was in epoch 2
    last = Toy(tmp_path / "run", epochs=other)  # allowed once, it needs no permission any more
    assert last.go() is not None


def test_allowed_changes_are_saved_at_once(tmp_path: Path) -> None:
    def crash(model: ToyModel, batch: ToyBatch) -> Tensor:
        if model.training:
            raise KeyError("power failure")
        return squared_error(model, batch)

    assert Toy(tmp_path / "run", stop_after=9).go() is None
    other = ToyEpochs(seed=1)
    with pytest.raises(KeyError):
        Toy(tmp_path / "run", epochs=other, new_order_allowed=True, loss_of=crash).go()
    assert Toy(tmp_path / "run", epochs=other).go() is not None


def test_a_damaged_checkpoint_is_passed_over_loudly_and_the_end_is_the_same(tmp_path: Path, whole: Toy) -> None:
    Toy(tmp_path / "run", stop_after=14).go()
    newest = max((tmp_path / "run" / "checkpoints").iterdir())
    (newest / "model.safetensors").write_bytes(b"damage")
    toy = Toy(tmp_path / "run")
    toy.go()
    assert noted(toy)[0]["event"] == "rejected"
    assert same(weights(toy), weights(whole))
    assert toy.log() == whole.log()


def test_starting_again_because_the_checkpoints_are_gone_is_said(tmp_path: Path, whole: Toy) -> None:
    assert Toy(tmp_path / "run", stop_after=14).go() is None
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    toy = Toy(tmp_path / "run")
    toy.go()
    assert noted(toy)[0] == {"event": "restarted", "path": str(tmp_path / "run" / "checkpoints"), "step": 14}
    assert toy.log() == whole.log()
    assert "restarted" not in [event["event"] for event in whole.events]


def test_one_row_too_large_for_memory_is_named(tmp_path: Path) -> None:
    def no_memory(model: ToyModel, batch: ToyBatch) -> Tensor:
        raise MemoryError

    with pytest.raises(TrainingError, match=r"Not even one example fits into the memory of cpu: 1 toy rows"):
        Toy(tmp_path / "run", loss_of=no_memory).go()


def test_a_score_that_no_checkpoint_knows_of_must_be_beaten(tmp_path: Path) -> None:
    Toy(tmp_path / "run", steps=6, average=1).go()
    longer = Toy(tmp_path / "run", steps=12, average=1, best_before=1.0)
    assert longer.go() is not None
    assert longer.published == {}
    assert longer.trainer.progress.best_score == 1.0


def test_scores_that_an_earlier_version_measured_in_another_way_need_not_be_beaten(tmp_path: Path) -> None:
    Toy(tmp_path / "run", steps=6, average=1, score_of=lambda *_: 91.5).go()
    longer = Toy(tmp_path / "run", steps=12, average=1, best_before=92.0, highest_score=0.0)
    assert longer.go() is not None
    assert longer.published
    assert longer.trainer.progress.best_score is not None
    assert longer.trainer.progress.best_score <= 0
    assert max(longer.trainer.progress.scores.values()) <= 0


def test_weights_that_diverged_are_noticed_before_they_are_validated(tmp_path: Path) -> None:
    def spoil_after_18(model: ToyModel, batch: ToyBatch) -> Tensor:
        loss = squared_error(model, batch)
        return loss * math.nan if toy.trainer.progress.step >= 18 and not model.training else loss

    toy = Toy(tmp_path / "run", loss_of=spoil_after_18)
    with pytest.raises(TrainingError, match=r"After step 18 the loss is nan.*the weights have diverged") as error:
        toy.go()
    assert error.value.exit_code == 4
    checkpoint = load_latest(tmp_path / "run" / "checkpoints", lambda path, reason: None)
    assert checkpoint is not None
    assert checkpoint.step == 15
    assert 18 not in toy.published


SAVES: dict[str, dict[str, Any]] = {
    "at checkpoint.every": {"checkpoint_every": 10},
    "by the clock": {"checkpoint_every": None},
    "on a signal": {"checkpoint_every": None, "stop_after": 10},
    "at the end": {"checkpoint_every": None, "steps": 10},
}


@pytest.fixture(params=["one process", "sharded"])
def group(request: pytest.FixtureRequest) -> Iterator[ProcessGroup]:
    """A group of one: alone, or by way of FSDP. Several are in tests/cli/test_processes.py."""
    if request.param == "one process":
        yield SINGLE_PROCESS
        return
    from jumok.training.sharded import Sharded

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield Sharded(0, 1)
    dist.destroy_process_group()


@pytest.mark.parametrize(
    "spoiled",
    ["a weight", "a moment", "a momentum of Muon", "a weight that no loss depends on", "a weight that is not trained"],
)
@pytest.mark.parametrize("save", SAVES)
def test_weights_that_diverge_between_validations_are_never_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: ProcessGroup, save: str, spoiled: str
) -> None:
    def spoil(toy: Toy) -> None:
        if toy.trainer.progress.step == 9:  # in the update of step 10
            parameter, states = toy.trainer.parameters[0], toy.trainer.optimizer.state
            untrained = torch.ones(1)
            toy.trainer.model.register_buffer("untrained", untrained)  # as the scores of n-grams in a classifier
            chosen = {"a moment": states[parameter]["exp_avg_sq"], "a weight that is not trained": untrained}
            if by_muon:
                chosen[spoiled] = states[toy.model.linear.weight]["momentum"]
            with torch.no_grad():
                chosen.get(spoiled, parameter).mul_(math.inf)

    def without_weights(model: ToyModel, batch: ToyBatch) -> Tensor:
        return squared_error(model, batch) if model.training else torch.tensor(1.0)

    if save == "by the clock":
        monkeypatch.setattr("jumok.training.trainer.CHECKPOINT_SECONDS", 0.0)
    loss_of = without_weights if spoiled.endswith("depends on") else squared_error
    by_muon = spoiled.endswith("Muon")
    toy = Toy(tmp_path / "run", group=group, after_update=spoil, loss_of=loss_of, by_muon=by_muon, **SAVES[save])
    with pytest.raises(TrainingError, match=r"After step 10 .*have diverged and were not saved") as error:
        toy.go()
    assert error.value.exit_code == 4
    assert toy.trainer.progress.step == 10
    checkpoint = load_latest(tmp_path / "run" / "checkpoints", lambda path, reason: pytest.fail(reason))
    assert checkpoint is not None
    assert checkpoint.step == (9 if save == "by the clock" else 6)
    assert all(bool(tensor.isfinite().all()) for each in checkpoint.tensors.values() for tensor in each.values())
    assert list(toy.published) == [6]


def test_a_learning_rate_far_too_high_is_noticed_before_the_first_checkpoint(tmp_path: Path) -> None:
    """The weights are still finite, but with them the loss is not."""
    toy = Toy(tmp_path / "run", peak=1e30, checkpoint_every=1)
    with pytest.raises(TrainingError, match=r"After step 1 the loss is (inf|nan)"):
        toy.go()
    assert all(bool(weight.isfinite().all()) for weight in weights(toy).values())
    assert not (tmp_path / "run" / "checkpoints").exists()


@pytest.mark.parametrize("metric", [math.nan, math.inf])
def test_a_validation_that_gives_no_number_publishes_nothing(tmp_path: Path, metric: float) -> None:
    toy = Toy(tmp_path / "run", score_of=lambda model, step: metric if step > 6 else 1.0)
    with pytest.raises(TrainingError, match=r"After step 12 validation gives .*diverged"):
        toy.go()
    assert list(toy.published) == [6]


@pytest.mark.parametrize(
    ("what", "where", "now"),
    [
        ("threads", "torch.get_num_threads", 77),
        ("processor", "platform.machine", "abacus"),
        ("numpy", "jumok.training.environment.version", "0.0"),
        ("sentencepiece", "jumok.training.environment.version", "0.0"),
        ("jumok", "jumok.training.environment.version", "0.0"),
    ],
)
def test_what_the_last_bits_depend_on_is_reported_when_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, where: str, now: Any
) -> None:
    Toy(tmp_path / "run", stop_after=8).go()
    monkeypatch.setattr(where, lambda *_: now)
    again = Toy(tmp_path / "run")
    again.go()
    [resumed] = [event for event in again.events if event["event"] == "resumed"]
    assert what in resumed["changed"]
    assert str(now) in str(resumed["changed"][what][1])


def test_attention_that_cannot_be_written_is_said_once_and_the_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "attention").write_text("in the way", encoding="utf-8")
    toy = Toy(tmp_path / "run", steps=12)
    measure = toy._validate
    monkeypatch.setattr(toy, "_validate", lambda: replace(measure(), attention=b"x"))
    assert toy.go() is not None
    assert len([event for event in toy.events if event["event"] == "valid"]) > 1
    [unsaved] = [event for event in toy.events if event["event"] == "unsaved"]
    assert unsaved["path"].endswith("attention")
    assert unsaved["reason"]


def test_steps_whose_losses_all_overflowed_are_not_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer.__new__(Trainer)
    trainer.progress, trainer._time_limit = Progress(), None
    logged: list[object] = []
    monkeypatch.setattr(trainer, "_log", logged.append)
    trainer.schedule = lambda step: 0.1
    for sums, losses in (((0.0, 0), []), ((6.0, 3), [2.0])):
        trainer.updates = SimpleNamespace(read=lambda sums=sums: sums)  # type: ignore[assignment]
        trainer._log_training()
        assert [entry["loss"] for entry in logged] == losses  # type: ignore[index]
