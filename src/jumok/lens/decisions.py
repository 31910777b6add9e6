"""Which tokens decided: attributions of a classifier that add up to the difference between the scores of two classes.

The score of a class is the encoder's plus that of n-grams. The n-gram part is a sum already: each n-gram's score is
shared by its tokens. The encoder's part is attributed by integrated gradients (Sundararajan et al., 2017) from token
vectors of zero, positions kept, to those of the text; the number of points grows until the parts add up.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jumok.engines.torch_models import padded
from jumok.errors import ConfigError, require_choice
from jumok.lens.tracing import require_tokens, torch_engine
from jumok.tokenizer import EOS, SPACE_MARK, normalize

FEWEST_POINTS, MOST_POINTS = 16, 512  # of the integral
ENOUGH = 1e-3  # largest error, as a share of the difference (of 1 if it is smaller)
BATCH_TOKENS = 4_096  # of all points that are computed together
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Word:
    """A word of the text: what its tokens add, and what is lost without it."""

    text: str
    first: int  # its tokens: first … end - 1
    end: int
    attribution: float
    left_out: float  # the difference less that of the text without this word


@dataclass(frozen=True)
class Attribution:
    """`difference` = `baseline` + the sum of `encoder` and `ngrams` over all tokens + `error`."""

    label: str
    other: str  # the class that `label` is compared with
    tokens: tuple[str, ...]  # of the text, `</s>` last
    encoder: tuple[float, ...]  # what each token adds to the difference through the encoder
    ngrams: tuple[float, ...]  # and through n-grams
    baseline: float  # the difference for token vectors of zero
    difference: float  # score of `label` minus score of `other`
    error: float  # what is missing in the sum: the integral has finitely many points
    points: int
    words: tuple[Word, ...]

    @property
    def totals(self) -> tuple[float, ...]:
        """What each token adds."""
        return tuple(a + b for a, b in zip(self.encoder, self.ngrams, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def attribution(classifier: Any, text: str, *, label: str | None = None, other: str | None = None) -> Attribution:
    """How much each token of a text adds to the score of `label` (None: the most probable class) minus the score of
    `other` (None: the most probable of the rest), checked by leaving words out."""
    if getattr(classifier, "task", "") != "classifier":
        raise ConfigError("Attributions explain the decision of a classifier; this is another kind of model.")
    engine, tokenizer = torch_engine(classifier), classifier.tokenizer
    [ids] = tokenizer.encode([normalize(text)])
    require_tokens(ids, text)
    [scores] = engine.scores([ids])
    chosen, against = _two_classes(classifier.classes, scores, label, other)
    row, model = padded([[*ids, EOS]], engine.device), engine.model
    share = 1.0 if model.encoder_share is None else float(model.encoder_share)
    integral = _Integral(engine, row, chosen, against)
    encoder, points = integral.until_it_adds_up(share, max(1.0, abs(float(scores[chosen] - scores[against]))))
    ngrams = _ngram_part(model, row, chosen, against)
    difference, baseline = float(scores[chosen]) - float(scores[against]), share * integral.start
    pieces = tuple(tokenizer.pieces([*ids, EOS]))
    totals = share * encoder + ngrams
    return Attribution(
        classifier.classes[chosen],
        classifier.classes[against],
        pieces,
        tuple((share * encoder).tolist()),
        tuple(ngrams.tolist()),
        baseline,
        difference,
        difference - baseline - float(totals.sum()),
        points,
        _words(classifier, ids, totals, chosen, against, difference),
    )


def _two_classes(classes: Sequence[str], scores: Any, label: str | None, other: str | None) -> tuple[int, int]:
    for name, value in (("label", label), ("other", other)):
        if value is not None:
            require_choice(name, value, classes)
    if label is not None and label == other:
        raise ConfigError("`label=` and `other=` are the same class; choose two.")
    order = [int(each) for each in np.argsort(-scores, kind="stable")]
    against = None if other is None else classes.index(other)
    chosen = classes.index(label) if label is not None else next(each for each in order if each != against)
    return chosen, next(each for each in order if each != chosen) if against is None else against


class _Integral:
    """The encoder's score of one class minus that of another, along the line from zero vectors to those of a text."""

    def __init__(self, engine: Any, row: Tensor, chosen: int, against: int) -> None:
        self.engine, self.model, self.row, self.chosen, self.against = engine, engine.model, row, chosen, against
        with engine.evaluating(self.model.attended(row.shape[1]) - 1):
            pass  # grows the table of positions outside inference mode
        (self.start, self.end), _ = self._along(np.array([0.0, 1.0]))

    def until_it_adds_up(self, share: float, size: float) -> tuple[Vector, int]:
        """The attribution [S] of every token, and how many points it took."""
        points = FEWEST_POINTS
        while True:
            at, weights = np.polynomial.legendre.leggauss(points)
            _, gradients = self._along((at + 1) / 2)
            found: Vector = (weights / 2) @ gradients
            missing = share * abs(self.end - self.start - float(found.sum()))
            if missing <= ENOUGH * size or points >= MOST_POINTS:
                return found, points
            points *= 2

    def _along(self, shares: Vector) -> tuple[list[float], Vector]:
        """The difference at each share of the vectors, and gradient · vectors of every token [P, S]."""
        size = max(1, BATCH_TOKENS // self.row.shape[1])
        values, gradients = [], []
        with self.engine.limited_threads(), torch.enable_grad():
            for start in range(0, len(shares), size):
                batch = torch.from_numpy(shares[start : start + size]).float().to(self.row.device)
                with _scaled_vectors(self.model, batch) as (full, scaled):
                    scores = self.model.encoder_scores(self.row.expand(len(batch), -1))
                    difference = scores[:, self.chosen] - scores[:, self.against]
                    [gradient] = torch.autograd.grad(difference.sum(), scaled)
                values += difference.tolist()
                products = (gradient.cpu().double() * full[0].cpu().double()).sum(-1).reshape(len(batch), -1)
                gradients.append(products[:, : self.row.shape[1]].numpy())  # windows in their order
        return values, np.concatenate(gradients)


@contextmanager
def _scaled_vectors(model: Any, shares: Tensor) -> Iterator[tuple[list[Tensor], list[Tensor]]]:
    """The token vectors, times the share of their text, as leaves of the graph: the lists are filled by a forward
    pass inside of the `with` block."""
    full: list[Tensor] = []
    scaled: list[Tensor] = []

    def change(_module: nn.Module, _inputs: Any, vectors: Tensor) -> Tensor:
        each = shares.repeat_interleave(len(vectors) // len(shares))  # a text of several windows has as many rows
        full.append(vectors.detach())
        scaled.append((full[0] * each[:, None, None]).requires_grad_())
        return scaled[0]

    hook = model.embed.tokens.register_forward_hook(change)
    try:
        yield full, scaled
    finally:
        hook.remove()


def _ngram_part(model: Any, row: Tensor, chosen: int, against: int) -> Vector:
    """What each token adds through n-grams. `NgramScores.attribution` compares a class with the mean of the others;
    of two such comparisons the difference is that of the two scores, times C / (C - 1)."""
    found: Vector = np.zeros(row.shape[1])
    for part in model.ngrams:
        of_one, of_other = (part.attribution(row.cpu(), each).double().numpy() for each in (chosen, against))
        found += of_one - of_other
    classes = model.config.classes
    found *= (classes - 1) / classes
    return found


def _words(
    classifier: Any, ids: Sequence[int], totals: Vector, chosen: int, against: int, difference: float
) -> tuple[Word, ...]:
    """The words of a text: groups of tokens of which the first begins a word."""
    pieces = classifier.tokenizer.pieces(ids)
    starts = [number for number, piece in enumerate(pieces) if number == 0 or piece.startswith(SPACE_MARK)]
    spans = list(zip(starts, [*starts[1:], len(ids)], strict=True))
    texts = classifier.tokenizer.decode([ids[first:end] for first, end in spans])
    scores = torch_engine(classifier).scores([[*ids[:first], *ids[end:]] for first, end in spans])
    without = (scores[:, chosen] - scores[:, against]).tolist()
    return tuple(
        Word(text.strip() or SPACE_MARK, first, end, float(totals[first:end].sum()), difference - one)
        for text, (first, end), one in zip(texts, spans, without, strict=True)
    )
