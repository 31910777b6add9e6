"""Constraints on outputs: banned tokens, biases, no repeated n-grams, forced prefixes, length limits.

Shape letters: B sentences, R hypotheses of each, V vocabulary, t tokens so far (without <s>), P longest prefix.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from jumok.errors import ConfigError
from jumok.tokenizer import BOS, EOS, PAD, UNK

FREE = -1  # in the table of prefixes: no token is forced here


@dataclass(frozen=True)
class Constraints:
    """Constraints that are the same for all sentences."""

    # Byte tokens spell every character that has no token of its own, so an output never needs <unk>.
    banned: tuple[int, ...] = (PAD, UNK, BOS)
    bias: Mapping[int, float] = field(default_factory=dict)  # id → added to its log-probability, and to the score
    no_repeat_ngram: int = 0  # no n-gram of this length twice in an output; 0: no such rule
    min_length: int = 1  # tokens before </s>; an empty output would lose the sentence
    start: int = BOS
    end: int = EOS

    def __post_init__(self) -> None:
        if self.no_repeat_ngram < 0:
            raise ConfigError(f"no_repeat_ngram is {self.no_repeat_ngram}; it must be 0 (off) or more.")
        if self.min_length < 0:
            raise ConfigError(f"min_length is {self.min_length}; it must be 0 or more.")
        if self.end in self.banned:
            raise ConfigError(f"banned holds {self.end}, the id that ends an output; without it none would end.")
        for token, value in self.bias.items():
            if not math.isfinite(value):
                raise ConfigError(
                    f"The bias of id {token} is {value}; it must be a finite number. To rule it out, ban it."
                )
        for token in (*self.banned, *self.bias, self.start, self.end):
            if token < 0:
                raise ConfigError(f"{token} is not a token id: ids begin with 0.")


class Rules:
    """The constraints of one batch, with the length limit and the forced prefix of every sentence."""

    def __init__(
        self,
        constraints: Constraints,
        max_lengths: Sequence[int] | Tensor,
        prefixes: Sequence[Sequence[int]] | None,
        device: torch.device | str,
    ) -> None:
        limits = [int(limit) for limit in max_lengths]
        prefixes = [()] * len(limits) if prefixes is None else prefixes
        _check(constraints, limits, prefixes)
        self.constraints = constraints
        self.device = torch.device(device)
        self.limits = torch.tensor(limits, dtype=torch.long, device=device)  # [B]
        longest, shortest = (of(map(len, prefixes), default=0) for of in (max, min))
        table = [[*prefix, *[FREE] * (longest - len(prefix))] for prefix in prefixes]
        self._prefixes = torch.tensor(table, dtype=torch.long, device=device).view(len(limits), longest)  # [B, P]
        self.shared_prefix = self._prefixes[:, :shortest]  # [B, shortest] the tokens that are forced for all sentences
        self._banned = torch.tensor(constraints.banned, dtype=torch.long, device=device)
        self._biased = torch.tensor(list(constraints.bias), dtype=torch.long, device=device)
        self._bias = torch.tensor(list(constraints.bias.values()), dtype=torch.float64, device=device)
        named = (constraints.banned, constraints.bias, *prefixes)
        self._largest_id = max([constraints.end, *(token for ids in named for token in ids)])

    @property
    def gain(self) -> float:
        """The most that one more token can add to a total: only a bias can be positive."""
        return max([0.0, *self.constraints.bias.values()])

    def biases(self, ids: Tensor) -> Tensor:
        """The bias of each of the ids."""
        total = torch.zeros(ids.shape, dtype=torch.float64, device=ids.device)
        for token, bias in self.constraints.bias.items():
            total[ids == token] = bias
        return total

    def apply(self, log_probs: Tensor, ids: Tensor, sentences: Tensor) -> Tensor:
        """Apply the constraints to log_probs [B, R, V] in place, for outputs so far [B, R, t] of `sentences` [B].

        Returns [B, R]: True where an output is ended here although the model would continue it.
        """
        so_far = ids.shape[2]
        self._check_vocabulary(log_probs.shape[2])
        if len(self._biased):
            log_probs[:, :, self._biased] += self._bias.to(log_probs.dtype)
        held, tokens = self._prefix_tokens(so_far, sentences)
        of_prefix = log_probs[held, :, tokens]  # before any ban: a prefix may contain banned tokens and repetitions
        log_probs.index_fill_(2, self._banned, -torch.inf)
        if self.constraints.no_repeat_ngram:
            _ban_repeats(log_probs, ids, self.constraints.no_repeat_ngram, self.constraints.end)
        cut = self._forbid_early_end(log_probs, so_far)
        self._end_at_limit(log_probs, cut, so_far, sentences)
        if len(held):
            log_probs[held] = -torch.inf
            log_probs[held, :, tokens] = of_prefix
        return cut

    def _check_vocabulary(self, size: int) -> None:
        if self._largest_id >= size:
            raise ConfigError(f"A ban, bias or prefix names id {self._largest_id}; the vocabulary ends at {size - 1}.")

    def _prefix_tokens(self, so_far: int, sentences: Tensor) -> tuple[Tensor, Tensor]:
        """The indices in `sentences` of those still inside their prefix, and the tokens that are forced."""
        if so_far >= self._prefixes.shape[1]:
            return sentences[:0], sentences[:0]
        tokens = self._prefixes[sentences, so_far]
        held = (tokens != FREE).nonzero()[:, 0]
        return held, tokens[held]

    def _forbid_early_end(self, log_probs: Tensor, so_far: int) -> Tensor:
        """Ban the end before the shortest length, except where every other token is banned: those outputs are cut."""
        if so_far >= self.constraints.min_length:
            return torch.zeros(log_probs.shape[:2], dtype=torch.bool, device=log_probs.device)
        ending = log_probs[:, :, self.constraints.end].clone()
        log_probs[:, :, self.constraints.end] = -torch.inf
        stuck = log_probs.amax(2) == -torch.inf
        log_probs[:, :, self.constraints.end] = ending.masked_fill_(~stuck, -torch.inf)
        return stuck

    def _end_at_limit(self, log_probs: Tensor, cut: Tensor, so_far: int, sentences: Tensor) -> None:
        """Allow only the end at the length limit; the output is cut, unless the end was the most probable token."""
        full = (self.limits[sentences] == so_far).nonzero()[:, 0]
        if len(full):
            rows = log_probs[full]
            cut[full] |= rows.argmax(2) != self.constraints.end
            log_probs[full] = -torch.inf
            log_probs[full, :, self.constraints.end] = rows[:, :, self.constraints.end]


def _ban_repeats(log_probs: Tensor, ids: Tensor, n: int, end: int) -> None:
    """Ban every token that would complete an n-gram for the second time in its row of ids [B, R, t]."""
    if ids.shape[2] < n:
        return
    ngrams = ids.unfold(2, n, 1)  # [B, R, t - n + 1, n]
    ending = ids[:, :, None, ids.shape[2] - n + 1 :]  # the last n - 1 tokens, which the next one would complete
    # Ended rows are continued with end tokens until their sentence leaves the batch, so the end must stay allowed.
    repeated = (ngrams[..., :-1] == ending).all(3) & (ngrams[..., -1] != end)
    sentence, row, position = repeated.nonzero(as_tuple=True)
    log_probs[sentence, row, ngrams[sentence, row, position, -1]] = -torch.inf


def _check(constraints: Constraints, limits: Sequence[int], prefixes: Sequence[Sequence[int]]) -> None:
    if len(prefixes) != len(limits):
        raise ConfigError(
            f"There are {len(prefixes)} prefixes for {len(limits)} sentences; give one, perhaps empty, for each."
        )
    for number, (limit, prefix) in enumerate(zip(limits, prefixes, strict=True)):
        least = max(1, constraints.min_length)
        if limit < least:
            raise ConfigError(f"The longest length of sentence {number} is {limit}; it must be at least {least}.")
        if len(prefix) > limit:
            raise ConfigError(
                f"The prefix of sentence {number} has {len(prefix)} tokens, more than its longest length {limit}. "
                "Shorten the prefix or allow a longer output."
            )
        if constraints.end in prefix or min(prefix, default=0) < 0:
            raise ConfigError(
                f"The prefix of sentence {number} is {list(prefix)}; it may not contain the end of the output "
                f"({constraints.end}) or negative ids."
            )
