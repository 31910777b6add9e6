"""Constraints on outputs: biases, no repeated n-grams, forced prefixes, length limits, no special tokens.
Shape letters: B sentences, R hypotheses of each, V vocabulary, t tokens so far (without <s>), P longest prefix."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from jumok.errors import ConfigError, counted
from jumok.model.devices import widest_float
from jumok.tokenizer import BOS, EOS, PAD, UNK

FREE = -1  # in the table of prefixes: no token is forced here


class Rules:
    """The constraints on the outputs of one batch; no output is empty. `limits` are the most tokens before </s>, one
    for every sentence, `prefixes` forced beginnings. `bias` is added to the log-probability of an id, and to the score.
    With `no_repeat_ngram`, no n-gram of this length stands twice in an output."""

    def __init__(
        self,
        limits: Sequence[int],
        *,
        prefixes: Sequence[Sequence[int]] | None = None,
        bias: Mapping[int, float] | None = None,
        no_repeat_ngram: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        prefixes = [()] * len(limits) if prefixes is None else prefixes
        _check(limits, prefixes)
        self.device = torch.device(device)
        self.limits = torch.tensor(limits, dtype=torch.long, device=device)  # [B]
        longest, shortest = (of(map(len, prefixes), default=0) for of in (max, min))
        table = [[*prefix, *[FREE] * (longest - len(prefix))] for prefix in prefixes]
        self._prefixes = torch.tensor(table, dtype=torch.long, device=device).view(len(limits), longest)  # [B, P]
        self.shared_prefix = self._prefixes[:, :shortest]  # [B, shortest] the tokens that are forced for all sentences
        self._bias = bias or {}
        self._biased = torch.tensor(list(self._bias), dtype=torch.long, device=device)
        self._biases = torch.tensor(list(self._bias.values()), dtype=widest_float(self.device), device=device)
        self._no_repeat_ngram = no_repeat_ngram
        # Byte tokens spell every character that has no token of its own, so an output never needs <unk>.
        self._banned = torch.tensor((PAD, UNK, BOS), device=device)
        self._largest_id = max([EOS, *self._bias, *(token for prefix in prefixes for token in prefix)])

    @property
    def gain(self) -> float:
        """The most that one more token can add to a total: only a bias can be positive."""
        return max([0.0, *self._bias.values()])

    def biases(self, ids: Tensor) -> Tensor:
        """The bias of each of the ids."""
        total = torch.zeros(ids.shape, dtype=widest_float(ids.device), device=ids.device)
        for token, bias in self._bias.items():
            total[ids == token] = bias
        return total

    def apply(self, log_probs: Tensor, ids: Tensor, sentences: Tensor) -> Tensor:
        """Apply the constraints to log_probs [B, R, V] in place, for outputs so far [B, R, t] of `sentences` [B].
        Returns [B, R]: True where an output is ended here although the model would continue it."""
        so_far = ids.shape[2]
        if self._largest_id >= log_probs.shape[2]:
            last = log_probs.shape[2] - 1
            raise ConfigError(f"A bias or prefix names id {self._largest_id}; the vocabulary ends at {last}.")
        if len(self._biased):
            log_probs[:, :, self._biased] += self._biases.to(log_probs.dtype)
        held, tokens = self._prefix_tokens(so_far, sentences)
        of_prefix = log_probs[held, :, tokens]  # before any ban: a prefix may contain banned tokens and repetitions
        log_probs.index_fill_(2, self._banned, -torch.inf)
        if self._no_repeat_ngram:
            _ban_repeats(log_probs, ids, self._no_repeat_ngram)
        if so_far == 0:  # an empty output would lose the sentence
            log_probs[:, :, EOS] = -torch.inf
        cut = self._end_at_limit(log_probs, so_far, sentences)
        if len(held):
            log_probs[held] = -torch.inf
            log_probs[held, :, tokens] = of_prefix
        return cut

    def _prefix_tokens(self, so_far: int, sentences: Tensor) -> tuple[Tensor, Tensor]:
        """The indices in `sentences` of those still inside their prefix, and the tokens that are forced."""
        if so_far >= self._prefixes.shape[1]:
            return sentences[:0], sentences[:0]
        tokens = self._prefixes[sentences, so_far]
        held = (tokens != FREE).nonzero()[:, 0]
        return held, tokens[held]

    def _end_at_limit(self, log_probs: Tensor, so_far: int, sentences: Tensor) -> Tensor:
        """Allow only the end at the length limit; the output is cut, unless the end was the most probable token."""
        cut = torch.zeros(log_probs.shape[:2], dtype=torch.bool, device=log_probs.device)
        full = (self.limits[sentences] == so_far).nonzero()[:, 0]
        if len(full):
            rows = log_probs[full]
            cut[full] = rows.argmax(2) != EOS
            log_probs[full] = -torch.inf
            log_probs[full, :, EOS] = rows[:, :, EOS]
        return cut


def _ban_repeats(log_probs: Tensor, ids: Tensor, n: int) -> None:
    """Ban every token that would complete an n-gram for the second time in its row of ids [B, R, t]."""
    if ids.shape[2] < n:
        return
    ngrams = ids.unfold(2, n, 1)  # [B, R, t - n + 1, n]
    ending = ids[:, :, None, ids.shape[2] - n + 1 :]  # the last n - 1 tokens, which the next one would complete
    # Ended rows are continued with end tokens until their sentence leaves the batch, so the end must stay allowed.
    repeated = (ngrams[..., :-1] == ending).all(3) & (ngrams[..., -1] != EOS)
    sentence, row, position = repeated.nonzero(as_tuple=True)
    log_probs[sentence, row, ngrams[sentence, row, position, -1]] = -torch.inf


def _check(limits: Sequence[int], prefixes: Sequence[Sequence[int]]) -> None:
    if len(prefixes) != len(limits):
        raise ConfigError(
            f"{counted(len(prefixes), 'prefix', 'prefixes')} for {counted(len(limits), 'sentence')}; "
            "give one, perhaps empty, for each."
        )
    for number, (limit, prefix) in enumerate(zip(limits, prefixes, strict=True)):
        if limit < 1:
            raise ConfigError(f"The longest length of sentence {number} is {limit}; it must be at least 1.")
        if len(prefix) > limit:
            raise ConfigError(
                f"The prefix of sentence {number} has {len(prefix)} tokens, more than its longest length {limit}. "
                "Shorten the prefix or allow a longer output."
            )
        if EOS in prefix or min(prefix, default=0) < 0:
            raise ConfigError(
                f"The prefix of sentence {number} is {list(prefix)}; it may not contain the end of the output "
                f"({EOS}) or negative ids."
            )
