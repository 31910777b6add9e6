"""Beam search and greedy search. Shape letters: B sentences, R hypotheses of each, V vocabulary, C candidates."""

import torch
from torch import Tensor

from jumok.search.constraints import Rules
from jumok.search.decoding import Candidates, Choose, State, decode
from jumok.search.hypothesis import Hypothesis
from jumok.search.ranking import best_candidates
from jumok.search.step import CacheT, Prefill, Step
from jumok.tokenizer import EOS


def beam_search(
    step: Step[CacheT],
    cache: CacheT,
    rules: Rules,
    *,
    beam: int = 5,
    n_best: int = 1,
    length_penalty: float = 1.0,
    prefill: Prefill[CacheT] | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` outputs of each sentence, at most `beam`, best first; fewer only where fewer exist.

    An output that reaches its length limit ends there with finished=False, unless </s> is the most probable token at
    that position. Scores are log-probability / length ** length_penalty (0 or more), where </s> counts as a token, as
    in CTranslate2. A sentence leaves the batch as soon as nothing in its beam can still beat its best outputs; with
    `beam` 1 (greedy search) at its first </s>. `prefill` feeds forced prefixes in one forward pass.
    """
    return decode(step, cache, choose_best(beam), rules, n_best, length_penalty, prefill)


def choose_best(beam: int) -> Choose[CacheT]:
    """The selection of beam search: the most probable continuations of all hypotheses of a sentence."""
    # Every hypothesis can end at most once a step, so among 2 * beam candidates at least `beam` continue.
    # Greedy search has one candidate: when it ends, the search is over.
    count = 2 * beam if beam > 1 else 1

    def choose(log_probs: Tensor, state: State[CacheT]) -> Candidates:
        totals, indices = best_candidates(log_probs, state.totals, count)
        tokens = indices % log_probs.shape[2]
        ends = tokens == EOS
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
