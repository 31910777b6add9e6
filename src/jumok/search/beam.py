"""Beam search and greedy search. Shape letters: B sentences, R hypotheses of each, V vocabulary, C candidates."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from jumok.errors import ConfigError
from jumok.search.constraints import Constraints, Rules
from jumok.search.decoding import Candidates, Choose, State, decode
from jumok.search.hypothesis import Hypothesis
from jumok.search.ranking import best_candidates
from jumok.search.step import CacheT, Prefill, Step

NO_CONSTRAINTS = Constraints()


def beam_search(
    step: Step[CacheT],
    cache: CacheT,
    max_lengths: Sequence[int] | Tensor,
    *,
    beam: int = 5,
    n_best: int = 1,
    length_penalty: float = 1.0,
    constraints: Constraints = NO_CONSTRAINTS,
    prefixes: Sequence[Sequence[int]] | None = None,
    prefill: Prefill[CacheT] | None = None,
    device: torch.device | str = "cpu",
) -> list[list[Hypothesis]]:
    """The `n_best` outputs of each sentence, best first; fewer only where fewer exist.

    `max_lengths` has one limit for every sentence: the most tokens before </s>. An output that reaches it ends there
    with finished=False, unless </s> is the most probable token at that position. Scores are log-probability /
    length ** length_penalty, where </s> counts as a token, as in CTranslate2. A sentence leaves the batch as soon as
    nothing in its beam can still beat its best outputs; with `beam` 1 (greedy search) at its first </s>. `prefill`
    feeds forced prefixes in one forward pass.
    """
    if beam < 1:
        raise ConfigError(f"beam is {beam}; it must be at least 1 (1 is greedy search).")
    if not 1 <= n_best <= beam:
        raise ConfigError(f"n_best is {n_best}; with a beam of {beam} it must be 1 to {beam}.")
    check_length_penalty(length_penalty)
    rules = Rules(constraints, max_lengths, prefixes, device)
    return decode(step, cache, choose_best(beam, constraints.end), rules, n_best, length_penalty, prefill)


def check_length_penalty(length_penalty: float) -> None:
    """Raise for penalties for which the bound of early finishing would not hold."""
    if not (math.isfinite(length_penalty) and length_penalty >= 0):
        raise ConfigError(
            f"length_penalty is {length_penalty}; it must be 0 (none) or more. 1 compares averages per token."
        )


def choose_best(beam: int, end: int) -> Choose[CacheT]:
    """The selection of beam search: the most probable continuations of all hypotheses of a sentence."""
    # Every hypothesis can end at most once a step, so among 2 * beam candidates at least `beam` continue.
    # Greedy search has one candidate: when it ends, the search is over.
    count = 2 * beam if beam > 1 else 1

    def choose(log_probs: Tensor, state: State[CacheT]) -> Candidates:
        totals, indices = best_candidates(log_probs, state.totals, count)
        tokens = indices % log_probs.shape[2]
        ends = tokens == end
        # An output is complete only if it is within the beam: candidates beyond it only replace those that ended.
        complete = ends.clone()
        complete[:, beam:] = False
        return Candidates(
            rows=indices // log_probs.shape[2],
            tokens=tokens,
            log_probs=log_probs.flatten(1).gather(1, indices),
            totals=totals,
            ended=complete,
            survivors=torch.sort(ends.byte(), dim=1, stable=True).indices[:, :beam],
        )

    return choose
