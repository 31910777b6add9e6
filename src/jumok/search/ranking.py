"""The best candidates, equal ones by index. Axes: B sentences, R hypotheses of each, V vocabulary, C candidates."""

import torch
from torch import Tensor

BLOCK = 64


def best_candidates(log_probs: Tensor, totals: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` highest of totals [B, R] + log_probs [B, R, V], best first: values and indices in R * V, [B, C].
    Ties go to the earlier hypothesis, then to the lower id. C is smaller than `count` only if R * V is."""
    everything = totals.shape[1] * log_probs.shape[2]
    count = min(count, everything)
    # One more than asked for shows whether the last one is tied.
    wanted = min(count + 1, everything)
    # Only worth it if few of many blocks are searched.
    search = _search_blocks if wanted * BLOCK * 4 <= everything else _search_all
    values, indices = search(log_probs, totals, wanted)
    # topk promises no order among equal values. They are rare in real models, so those sentences are simply sorted.
    tied = ((values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -torch.inf)).any(1)
    values, indices = values[:, :count], indices[:, :count]
    if tied.any():
        sums = (log_probs[tied] + totals[tied, :, None]).flatten(1)
        ordered = torch.sort(sums, dim=1, descending=True, stable=True)
        values[tied], indices[tied] = ordered.values[:, :count], ordered.indices[:, :count]
    return values, indices


def _search_all(log_probs: Tensor, totals: Tensor, count: int) -> tuple[Tensor, Tensor]:
    found = (log_probs + totals[:, :, None]).flatten(1).topk(count)
    return found.values, found.indices


def _search_blocks(log_probs: Tensor, totals: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Search only the `count` blocks with the highest maxima: they contain all of the best. A maximum a block is
    several times faster than topk over everything; adding the totals to the maxima alone saves another pass."""
    vocabulary = log_probs.shape[2]
    full = vocabulary // BLOCK
    maxima = log_probs[:, :, : full * BLOCK].view(*totals.shape, full, BLOCK).amax(3)
    if vocabulary % BLOCK:
        maxima = torch.cat((maxima, log_probs[:, :, full * BLOCK :].amax(2, keepdim=True)), 2)
    blocks = (maxima + totals[:, :, None]).flatten(1).topk(count).indices
    rows, starts = blocks // maxima.shape[2], blocks % maxima.shape[2] * BLOCK
    ids = starts[:, :, None] + torch.arange(BLOCK, device=blocks.device)
    indices = (rows[:, :, None] * vocabulary + ids.clamp(max=vocabulary - 1)).flatten(1)
    sums = log_probs.flatten(1).gather(1, indices) + totals.gather(1, rows).repeat_interleave(BLOCK, 1)
    if vocabulary % BLOCK:  # the last block of a row is short; the surplus would be found twice
        sums.masked_fill_((ids >= vocabulary).flatten(1), -torch.inf)
    found = sums.topk(count)
    return found.values, indices.gather(1, found.indices)
