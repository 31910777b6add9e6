"""Which heads matter: each one switched off in turn, and how much worse the model then does on given examples."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumok.data.examples import Rejections
from jumok.errors import ConfigError
from jumok.lens.interventions import changed, mean_outputs
from jumok.lens.tracing import lens_module, torch_engine
from jumok.model.recording import attentions
from jumok.tasks import task_named


@dataclass(frozen=True)
class Quality:
    """How well a model does on some examples."""

    log_prob: float  # mean log-probability of a token, or of a text's label
    score: float | None = None  # BLEU or accuracy in percent; None: not measured
    tokens: tuple[float, ...] = ()  # log-probabilities of the tokens of the first example


@dataclass(frozen=True)
class HeadImportance:
    """What switching a head off changes. Negative: the model does worse without it."""

    attention: str
    head: int
    log_prob: float  # change of the mean log-probability
    score: float | None  # change of BLEU or accuracy
    tokens: tuple[float, ...]  # change of each token's log-probability in the first example


Measure = Callable[[], Quality]


def rank_heads(model: Any, measure: Measure, way: str = "zero") -> Iterator[HeadImportance]:
    """The importance of every head, one after the other, in the order of the model: sort by `log_prob`."""
    with mean_outputs(model) as means:
        before = measure()
    for attention, module in attentions(torch_engine(model).model).items():
        for head in range(module.heads):
            with changed(model, heads={(attention, head): way}, means=means):
                after = measure()
            scores = (after.score, before.score)
            yield HeadImportance(
                attention,
                head,
                after.log_prob - before.log_prob,
                None if None in scores else scores[0] - scores[1],  # type: ignore[operator]
                tuple(now - then for now, then in zip(after.tokens, before.tokens, strict=True)),
            )


def require_rankable(model: Any) -> None:
    """Raise if the heads of this kind of model cannot be ranked."""
    _of_task(model, "measure")


def measure_for(model: Any, examples: Sequence[tuple[str, str]], *, score: bool) -> Measure:
    """How to measure a model on examples (input, target): its own task knows. With `score`, BLEU or accuracy too."""
    found: Measure = _of_task(model, "measure")(model, examples, score)
    return found


def read_examples(model: Any, path: Path, rejections: Rejections, **reading: Any) -> Iterator[tuple[str, str]]:
    """The usable examples (input, target) of a file: pairs, labelled texts or passages. The model's own task knows.
    `reading` are arguments of `reading_options`; how the file was read is added to the layouts of the rejections."""
    found: Iterator[tuple[str, str]] = _of_task(model, "read_examples")(model, path, rejections, **reading)
    return found


def _of_task(model: Any, name: str) -> Any:
    """A function of the file of `lens/` that belongs to the task of a model."""
    module = lens_module(model.task)
    if not hasattr(module, name):
        raise ConfigError(f"Heads of a {task_named(model.task).title} cannot be ranked: choose a model of texts.")
    return getattr(module, name)
