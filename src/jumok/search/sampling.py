"""Reproducible sampling. Axes: B sentences, R samples of each, N = B * R rows, V vocabulary, C tokens to draw from."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from jumok.model.devices import widest_float
from jumok.search.beam import choose_best
from jumok.search.constraints import Rules
from jumok.search.decoding import Candidates, Choose, State, decode, require_numbers
from jumok.search.hypothesis import Hypothesis
from jumok.search.ranking import best_candidates
from jumok.search.step import CacheT, Prefill, Step
from jumok.seeds import bit_stream
from jumok.tokenizer import EOS


def sample(
    step: Step[CacheT],
    cache: CacheT,
    rules: Rules,
    *,
    seeds: Sequence[int],
    samples: int = 1,
    first_sample: int = 0,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    length_penalty: float = 1.0,
    prefill: Prefill[CacheT] | None = None,
) -> list[list[Hypothesis]]:
    """`samples` random outputs of each sentence, those with the best score first.

    Tokens are drawn from the distribution after `temperature` (0: greedy search), of its `top_k` most probable tokens
    (0: all), of the fewest that together have probability `top_p`. Each sentence has its own seed, so its samples
    depend on nothing else; they are numbered from `first_sample`, so that many can be drawn in several calls. Scores
    and limits are those of `beam_search`; log-probabilities are the model's own.
    """
    if temperature == 0:
        greedy = decode(step, cache, choose_best(1), rules, 1, length_penalty, prefill)
        return [hypotheses * samples for hypotheses in greedy]
    choose: Choose[CacheT] = _choose_randomly(
        _random_numbers(seeds, range(first_sample, first_sample + samples), rules), temperature, top_k, top_p
    )
    return decode(step, cache, choose, rules, samples, length_penalty, prefill)


def _random_numbers(seeds: Sequence[int], samples: range, rules: Rules) -> Tensor:
    """[B, R, longest + 1] numbers in [0, 1), one a token: from a stream of its own for every (seed, sample)."""
    length = max(rules.limits.tolist(), default=0) + 1
    bits = [[bit_stream(seed, "sampling", number).random_raw(length) for number in samples] for seed in seeds]
    numbers = (np.array(bits, dtype=np.uint64).reshape(len(seeds), len(samples), length) >> np.uint64(11)) * 2.0**-53
    return torch.from_numpy(numbers).to(widest_float(rules.device)).to(rules.device)


def _choose_randomly(numbers: Tensor, temperature: float, top_k: int, top_p: float) -> Choose[CacheT]:
    samples = numbers.shape[1]

    def choose(log_probs: Tensor, state: State[CacheT]) -> Candidates:
        sentences, hypotheses, _ = log_probs.shape
        everyone = torch.arange(samples, device=log_probs.device).expand(sentences, samples)
        rows = everyone % hypotheses  # the first step has one row a sentence, which all its samples continue
        log_probs = log_probs.expand(-1, samples, -1)
        wanted = numbers[state.sentences, :, state.length].flatten()
        tokens = _draw(log_probs.flatten(0, 1) / temperature, wanted, top_k, top_p).view(sentences, samples)
        chosen = log_probs.gather(2, tokens[:, :, None])[:, :, 0]
        totals = state.totals.gather(1, rows) + chosen
        return Candidates(rows, tokens, chosen, totals, ended=tokens == EOS, survivors=everyone)

    return choose


def _draw(log_probs: Tensor, numbers: Tensor, top_k: int, top_p: float) -> Tensor:
    """A token [N] for each row of log_probs [N, V]: the one in whose share of [0, 1) the number [N] falls."""
    ids, weights = _probable(log_probs, top_k, top_p)
    require_numbers(weights)
    reached = weights.cumsum(1, dtype=numbers.dtype)
    total = reached[:, -1:]
    # Rounding can raise the product to the total, which would be beyond the last share.
    wanted = torch.minimum(numbers[:, None] * total, total.nextafter(torch.zeros_like(total)))
    return ids.gather(1, torch.searchsorted(reached, wanted, right=True))[:, 0]


def _probable(log_probs: Tensor, top_k: int, top_p: float) -> tuple[Tensor, Tensor]:
    """The tokens that may be drawn, as ids [N, C] and their weights [N, C]; weight 0 is outside."""
    rows, vocabulary = log_probs.shape
    weights = log_probs.softmax(1)
    if top_k:
        count = top_k
    elif top_p < 1:
        # Tokens below this have less than 1 - top_p together, so top_p is reached without them: no need to sort those.
        count = int((weights >= (1 - top_p) / vocabulary).sum(1).amax())
    else:
        return torch.arange(vocabulary, device=log_probs.device).expand(rows, -1), weights
    _, ids = best_candidates(log_probs[:, None], log_probs.new_zeros(rows, 1), count)
    weights = weights.gather(1, ids)
    if top_k:
        weights /= weights.sum(1, keepdim=True)
    if top_p < 1:
        before = weights.cumsum(1, dtype=widest_float(weights.device)) - weights
        weights.masked_fill_(before >= top_p, 0.0)
    return ids, weights
