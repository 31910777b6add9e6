"""A whole training of each task with the shapes of its tensors checked at run time. The tests of the model check them
too; most other tests switch the checks off, because a search or a training takes thousands of steps."""

from pathlib import Path

import jaxtyping
import pytest
from commands import CLASSIFIER, LM, SMALL, write_corpus

from jumok.recipes.training import train
from jumok.training.settings import parse_assignments

TASKS: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "translator": (("a.en", "a.ko"), SMALL),
    "classifier": (("a.tsv",), CLASSIFIER),
    "language_model": (("a.en",), LM),
}


@pytest.mark.parametrize("task", TASKS)
def test_every_tensor_of_a_training_has_the_shape_of_its_annotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    monkeypatch.setattr("jumok.recipes.certifying.certificate.LONGEST_PROBE", 20)
    write_corpus(tmp_path)
    sentences = (tmp_path / "a.en").read_text(encoding="utf-8").splitlines()
    labelled = "".join(f"{line.split()[1]}\t{line}\n" for line in sentences)
    (tmp_path / "a.tsv").write_text(labelled, encoding="utf-8")
    names, options = TASKS[task]
    settings = parse_assignments(option.removeprefix("--set=") for option in options) | {"validate.sentences": 2}
    assert not jaxtyping.config.jaxtyping_disable
    trained = train(task, *(tmp_path / name for name in names), out=tmp_path / "run", steps=2, settings=settings)
    assert trained.steps == 2
