"""A model small enough to enumerate: for every sentence a random table of log-probabilities, by time and last token.

Its cache remembers everything it was ever told and checks that search keeps its side of the protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from jumok.search.hypothesis import Hypothesis
from jumok.search.step import Prefill, Step
from jumok.tokenizer import BOS, EOS

WORD = EOS + 1  # the first id that is a word
TOLERANCE = 1e-12  # tables are float64


@dataclass
class ToyCache:
    sentences: Tensor  # [B]
    rows_of: Tensor  # [N] the sentence of each row
    history: Tensor  # [N, t]

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> ToyCache:
        kept = self.sentences if sentences is None else self.sentences[sentences]
        assert len(rows) % len(kept) == 0
        rows_of = self.rows_of[rows]
        assert rows_of.equal(kept.repeat_interleave(len(rows) // len(kept))), "rows are sentence-major"
        assert sentences is None or len(sentences) < len(self.sentences), "sentences are given only when some leave"
        return ToyCache(kept, rows_of, self.history[rows])


class ToyModel:
    """Tables [time, last token, next token] for each sentence; time beyond the table stays at its end."""

    def __init__(self, tables: list[Tensor]) -> None:
        self.tables = tables
        self.steps = 0

    @classmethod
    def random(cls, seeds: list[int], words: int, times: int = 6, sharpness: float = 2.0) -> ToyModel:
        def table(seed: int) -> Tensor:
            generator = torch.Generator().manual_seed(seed)
            size = (times, WORD + words, WORD + words)
            scores = torch.randn(size, generator=generator, dtype=torch.float64) * sharpness
            return scores.log_softmax(2)

        return cls([table(seed) for seed in seeds])

    @classmethod
    def without_memory(cls, scores: list[list[float]] | Tensor, sentences: int = 1) -> ToyModel:
        """The same for all last tokens. Scores are [time, 1 + words]: of the end and of every word."""
        scores = torch.as_tensor(scores, dtype=torch.float64)
        table = torch.nn.functional.pad(scores, (EOS, 0), value=-torch.inf).log_softmax(1)
        return cls([table[:, None].expand(-1, table.shape[1], -1)] * sentences)

    def cache(self) -> ToyCache:
        everyone = torch.arange(len(self.tables))
        return ToyCache(everyone, everyone, torch.empty(len(everyone), 0, dtype=torch.long))

    @property
    def step(self) -> Step[ToyCache]:
        def step(ids: Tensor, cache: ToyCache) -> tuple[Tensor, ToyCache]:
            self.steps += 1
            assert ids.shape == (len(cache.rows_of), 1)
            history = torch.cat((cache.history, ids), 1)
            assert (history[:, 0] == BOS).all()
            rows = [self.log_probs(s, row) for s, row in zip(cache.rows_of.tolist(), history.tolist(), strict=True)]
            return torch.stack(rows), ToyCache(cache.sentences, cache.rows_of, history)

        return step

    @property
    def prefill(self) -> Prefill[ToyCache]:
        def prefill(ids: Tensor, cache: ToyCache) -> tuple[Tensor, ToyCache]:
            self.steps += 1
            assert len(ids) == len(cache.rows_of) == len(cache.sentences), "one row a sentence"
            assert not cache.history.numel()
            history = ids[:, :-1]
            found = [
                [float(self.log_probs(s, row[: t + 1])[row[t + 1]]) for t in range(len(row) - 1)]
                for s, row in zip(cache.rows_of.tolist(), ids.tolist(), strict=True)
            ]
            scores = torch.tensor(found, dtype=self.tables[0].dtype, device=ids.device)
            return scores, ToyCache(cache.sentences, cache.rows_of, history)

        return prefill

    def log_probs(self, sentence: int, history: list[int]) -> Tensor:
        table = self.tables[sentence]
        return table[min(len(history), len(table)) - 1, history[-1]]

    def of_output(self, sentence: int, ids: list[int]) -> list[float]:
        """The log-probabilities of the tokens of an output and of its end."""
        history = [BOS, *ids]
        wanted = [*ids, EOS]
        return [float(self.log_probs(sentence, history[: t + 1])[token]) for t, token in enumerate(wanted)]

    def everything(self, sentence: int, longest: int, penalty: float) -> list[tuple[float, list[int]]]:
        """(score, ids) of every possible output, best first; none is empty."""
        words = range(WORD, self.tables[sentence].shape[2])
        outputs = [list(ids) for length in range(1, longest + 1) for ids in product(words, repeat=length)]
        scored = [(sum(self.of_output(sentence, ids)) / (len(ids) + 1) ** penalty, ids) for ids in outputs]
        return sorted(scored, key=lambda pair: -pair[0])


def consistent(model: ToyModel, sentence: int, hypothesis: Hypothesis, penalty: float) -> bool:
    """Whether a hypothesis says about itself what the model says about it."""
    truth = model.of_output(sentence, hypothesis.ids)
    close = all(abs(a - b) < TOLERANCE for a, b in zip(truth, hypothesis.log_probs, strict=True))
    return close and abs(sum(truth) / len(truth) ** penalty - hypothesis.score) < TOLERANCE
