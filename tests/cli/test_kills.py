"""A real training, through the command line, killed again and again: it ends with the bits of one left in peace."""

from pathlib import Path

from commands import write_corpus
from kills import assert_same, train

KILLS, KILLS_IN_ONE_EPOCH, STEPS = 30, 10, 140
# Two pairs a batch make an epoch long enough to be killed in ten times.
SETTINGS = ["--set=batch.tokens=24", "--set=log.every=1", "--set=checkpoint.every=3", "--set=validate.every=35"]


def test_thirty_kills_change_nothing(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    assert train(tmp_path, "whole", SETTINGS, steps=STEPS) == []
    epochs = train(tmp_path, "killed", SETTINGS, steps=STEPS, kills=KILLS)
    assert len(epochs) == KILLS
    assert max(epochs.count(epoch) for epoch in epochs) >= KILLS_IN_ONE_EPOCH
    assert_same(tmp_path / "killed", tmp_path / "whole", STEPS)
