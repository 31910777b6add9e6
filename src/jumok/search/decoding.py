"""The loop that every search shares: step, apply constraints, choose candidates, collect ended outputs, continue.
Shape letters: B sentences still in the batch, R hypotheses of each, V vocabulary, C candidates, t tokens so far.
Sentences do not influence each other: outputs do not depend on the rest of the batch."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic

import torch
from torch import Tensor

from jumok.errors import JumokError
from jumok.model.devices import widest_float
from jumok.search.constraints import Rules
from jumok.search.hypothesis import Hypothesis
from jumok.search.step import CacheT, Prefill, Step
from jumok.tokenizer import BOS, EOS


@dataclass(frozen=True)
class State(Generic[CacheT]):
    """The hypotheses that continue. All have the same number of tokens."""

    cache: CacheT  # its rows are B * R
    sentences: Tensor  # [B] which sentence of the input each one is
    ids: Tensor  # [B, R, 1 + t] <s> and the tokens so far
    log_probs: Tensor  # [B, R, t] of those tokens
    totals: Tensor  # [B, R] their sums; -inf: a dead row, which fills up the R rows of its sentence
    worst: Tensor  # [B] the lowest score among the n_best that ended; -inf while there are fewer

    @property
    def length(self) -> int:
        """t, without <s>."""
        return self.log_probs.shape[2]


@dataclass(frozen=True)
class Candidates:
    """Hypotheses extended by one token."""

    rows: Tensor  # [B, C] the hypothesis 0 … R - 1 that each continues
    tokens: Tensor  # [B, C]
    log_probs: Tensor  # [B, C] of those tokens
    totals: Tensor  # [B, C] -inf: impossible
    ended: Tensor  # [B, C] True: a complete output
    survivors: Tensor  # [B, R of the next step] the candidates that continue; complete ones become dead rows


Choose = Callable[[Tensor, State[CacheT]], Candidates]  # (log-probabilities [B, R, V], state) → candidates


@dataclass(frozen=True)
class Scoring:
    """How outputs are compared: total / length ** length_penalty, where </s> counts as a token."""

    n_best: int
    divisors: Tensor  # [1 + longest possible length]: length ** length_penalty
    gain: float  # the most that one more token can add to a total; 0 unless there is a bias

    @classmethod
    def of(cls, n_best: int, length_penalty: float, rules: Rules) -> Scoring:
        """The scoring for the lengths that `rules` allow."""
        longest = max(rules.limits.tolist(), default=0) + 1
        divisors = [float(length) ** length_penalty for length in range(longest + 1)]
        wide = widest_float(rules.device)
        return cls(n_best, torch.tensor(divisors, dtype=wide, device=rules.device), rules.gain)

    def score(self, totals: Tensor, length: int | Tensor) -> Tensor:
        """Scores of outputs with these totals and lengths."""
        return totals / self.divisors[length].to(totals.dtype)

    def best_possible(self, totals: Tensor, length: int, longest: Tensor) -> Tensor:
        """An upper bound [B] for the scores of all outputs that begin with `length` tokens of these totals [B].

        Let an output end with l tokens, length < l <= longest. A log-probability is never above 0, so its own total is
        at most U = total + gain * (longest - length). The length penalty is never negative, so divisors do not shrink
        as l grows. If U <= 0, then its score <= U / divisor(l) <= U / divisor(longest). If U > 0, as only a bias can
        make it, then its score <= U / divisor(l) <= U / divisor(length + 1). Without a length penalty both are U.
        Addition and division round monotonically, so without a bias this holds for the rounded numbers too.
        """
        ceiling = totals + self.gain * (longest - length).to(totals.dtype)
        return self.score(ceiling, torch.where(ceiling <= 0, longest, (length + 1) * torch.ones_like(longest)))


def decode(
    step: Step[CacheT],
    cache: CacheT,
    choose: Choose[CacheT],
    rules: Rules,
    n_best: int,
    length_penalty: float,
    prefill: Prefill[CacheT] | None,
) -> list[list[Hypothesis]]:
    """The `n_best` outputs of each sentence, best first. Without `prefill`, prefixes are fed one token a step."""
    results: list[list[Hypothesis]] = [[] for _ in range(len(rules.limits))]
    scoring = Scoring.of(n_best, length_penalty, rules)
    with torch.inference_mode():
        state = _start(cache, rules, prefill)
        while len(state.sentences):
            log_probs, cache = step(state.ids[:, :, -1].reshape(-1, 1), state.cache)
            log_probs = log_probs.view(*state.totals.shape, -1)
            cut = rules.apply(log_probs, state.ids[:, :, 1:], state.sentences)
            candidates = choose(log_probs, state)
            require_numbers(candidates.totals)
            state = _collect(replace(state, cache=cache), candidates, cut, scoring, results)
            state = _proceed(state, candidates, rules, scoring)
    for number, hypotheses in enumerate(results):
        if not hypotheses:
            raise JumokError(f"The model gives probability 0 to every output allowed for sentence {number}.")
    return results


def require_numbers(values: Tensor) -> None:
    """Raise if a score is NaN."""
    if values.isnan().any():
        raise JumokError("The model gives NaN probabilities: its weights are damaged or have diverged.")


def _start(cache: CacheT, rules: Rules, prefill: Prefill[CacheT] | None) -> State[CacheT]:
    sentences = torch.arange(len(rules.limits), device=rules.device)
    ids = torch.full((len(sentences), 1), BOS, device=rules.device)
    log_probs = torch.zeros(len(sentences), 0, device=rules.device)
    if prefill is not None and rules.shared_prefix.numel():
        ids = torch.cat((ids, rules.shared_prefix), 1)
        log_probs, cache = prefill(ids, cache)
        log_probs = log_probs + rules.biases(rules.shared_prefix).to(log_probs.dtype)
    totals = log_probs.sum(1, keepdim=True)
    worst = torch.full_like(totals[:, 0], -torch.inf)
    return State(cache, sentences, ids[:, None], log_probs[:, None], totals, worst)


def _collect(
    state: State[CacheT], candidates: Candidates, cut: Tensor, scoring: Scoring, results: list[list[Hypothesis]]
) -> State[CacheT]:
    """Add the candidates that ended to the results, if they are among the n best of their sentence."""
    scores = scoring.score(candidates.totals, state.length + 1)
    # Strictly better: of two equal outputs the one that ended first stays.
    index, candidate = (candidates.ended & (scores > state.worst[:, None])).nonzero(as_tuple=True)
    if not len(index):
        return state
    row = candidates.rows[index, candidate]
    last = candidates.log_probs[index, candidate, None]
    worst = state.worst.to(scores.dtype, copy=True)
    for where, sentence, ids, log_probs, score, was_cut in zip(
        index.tolist(),
        state.sentences[index].tolist(),
        state.ids[index, row, 1:].tolist(),
        torch.cat((state.log_probs[index, row], last), 1).tolist(),
        scores[index, candidate].tolist(),
        cut[index, row].tolist(),
        strict=True,
    ):
        best = results[sentence]
        insort(best, Hypothesis(ids, score, log_probs, not was_cut), key=lambda hypothesis: -hypothesis.score)
        del best[scoring.n_best :]
        if len(best) == scoring.n_best:
            worst[where] = best[-1].score
    return replace(state, worst=worst)


def _proceed(state: State[CacheT], candidates: Candidates, rules: Rules, scoring: Scoring) -> State[CacheT]:
    """The state one token later, without the sentences whose n best are final."""
    chosen = candidates.survivors
    tokens = candidates.tokens.gather(1, chosen)
    totals = candidates.totals.gather(1, chosen).masked_fill_(tokens == EOS, -torch.inf)
    tokens.masked_fill_(totals == -torch.inf, EOS)  # a harmless token for dead rows
    log_probs = candidates.log_probs.gather(1, chosen)
    rows = candidates.rows.gather(1, chosen)
    rows += torch.arange(len(rows), device=rows.device)[:, None] * state.totals.shape[1]
    bound = scoring.best_possible(totals.amax(1), state.length + 1, rules.limits[state.sentences] + 1)
    stay = (state.worst < bound).nonzero()[:, 0]
    sentences, worst, kept = state.sentences, state.worst, None
    if len(stay) < len(sentences):
        rows, tokens, totals, log_probs = rows[stay], tokens[stay], totals[stay], log_probs[stay]
        sentences, worst, kept = sentences[stay], worst[stay], stay
    # Unchanged if all rows continue in the same order (mostly in greedy search), or none does.
    unchanged = not len(stay) or rows.flatten().equal(torch.arange(state.totals.numel(), device=rows.device))
    return State(
        state.cache if unchanged else state.cache.reorder(rows.flatten(), kept),
        sentences,
        torch.cat((state.ids.flatten(0, 1)[rows], tokens[:, :, None]), 2),
        torch.cat((state.log_probs.flatten(0, 1)[rows], log_probs[:, :, None]), 2),
        totals,
        worst,
    )
