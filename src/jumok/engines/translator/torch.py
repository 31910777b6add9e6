"""The engine that runs a translator in PyTorch: a model from a bundle, or one that is being trained.
Shape letters: B sentences, N hypotheses, S source with `</s>`, T target with `<s>` or `</s>`, H heads, V vocabulary."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from jumok.engines.batching import FloatMatrix, TokenIds, sorted_batches
from jumok.engines.options import SearchOptions
from jumok.engines.torch_models import TorchEngine, computing, padded
from jumok.engines.translator.engine import Bias, longest_output
from jumok.engines.translator.text import SEGMENT_TOKENS
from jumok.errors import ConfigError, InputError, counted
from jumok.model.encoder_decoder import EncoderDecoder
from jumok.model.recording import attentions, record
from jumok.search.beam import beam_search
from jumok.search.constraints import Rules
from jumok.search.hypothesis import Hypothesis
from jumok.search.sampling import sample
from jumok.seeds import derive_seed
from jumok.tokenizer import BOS, EOS

FORCED_TOKENS = 4096  # padded tokens of either side at a time, when targets are given


class TorchTranslator(TorchEngine):
    """A `TranslatorEngine` around the network of a translator."""

    model: EncoderDecoder

    @property
    def longest(self) -> int | None:
        longest = self.model.config.longest
        return None if longest is None else longest - 1

    @computing
    def generate(
        self, sources: TokenIds, options: SearchOptions, *, prefixes: TokenIds | None = None, bias: Bias | None = None
    ) -> list[list[Hypothesis]]:
        prefixes = [()] * len(sources) if prefixes is None else prefixes
        limits = [
            longest_output(len(source), len(prefix), options, self.longest)
            for source, prefix in zip(sources, prefixes, strict=True)
        ]
        results: list[list[Hypothesis]] = [[] for _ in sources]
        with self.evaluating(max([0, *map(len, sources), *limits])):
            for batch in sorted_batches([len(source) + 1 for source in sources], options.batch_tokens, options.rows):
                rules = Rules(
                    [limits[i] for i in batch],
                    prefixes=[prefixes[i] for i in batch],
                    bias=bias,
                    no_repeat_ngram=options.no_repeat_ngram,
                    device=self.device,
                )
                found = self._search([sources[i] for i in batch], rules, options)
                for index, hypotheses in zip(batch, found, strict=True):
                    results[index] = hypotheses
        return results

    @computing
    def score(self, sources: TokenIds, targets: TokenIds) -> list[list[float]]:
        results: list[list[float]] = [[] for _ in sources]
        with self._forced(sources, targets) as batches:
            for batch, source, target in batches:
                found = self.forced_log_probs(self.model.states(source, target[:, :-1]), target)
                for index, row in zip(batch, found.tolist(), strict=True):
                    results[index] = row[: len(targets[index]) + 1]
        return results

    @computing
    def align(self, sources: TokenIds, targets: TokenIds) -> list[FloatMatrix]:
        """For each pair a matrix [T, S] of attention weights; rows sum to 1.
        They are the mean over the heads of the cross-attention of the last layer but one, which aligns best."""
        results: dict[int, FloatMatrix] = {}
        crossing = [(name, each.attend) for name, each in attentions(self.model).items() if name.endswith(".cross")]
        if not crossing:
            raise ConfigError("This model has no attention, so its outputs cannot be aligned with their sources.")
        name, attend = crossing[max(0, len(crossing) - 2)]
        with self._forced(sources, targets) as batches, record(self.model, name) as recorded:
            for batch, source, target in batches:
                self.model.states(source, target[:, :-1])
                inputs = recorded[f"{name}.q"], recorded[f"{name}.k"], recorded.get(f"{name}.mask")
                weights = attend.weights(*inputs).mean(1)  # [B, T, S]
                for index, matrix in zip(batch, weights.cpu().numpy(), strict=True):
                    results[index] = matrix[: len(targets[index]) + 1, : len(sources[index]) + 1].copy()
        return [results[index] for index in range(len(sources))]

    @computing
    def vectors(self, texts: TokenIds) -> FloatMatrix:
        """Sentence vectors [B, D] of length 1; a long text is encoded in parts, as it is translated."""
        with self.evaluating(min(max(map(len, texts), default=0), SEGMENT_TOKENS)):
            return self.mean_states(lambda rows: self.model.encode(rows).states, texts, SEGMENT_TOKENS)

    def _search(self, sources: TokenIds, rules: Rules, options: SearchOptions) -> list[list[Hypothesis]]:
        memory = self.model.encode(padded([[*source, EOS] for source in sources], self.device))
        cache = self.model.remember(memory)
        common: dict[str, Any] = {"length_penalty": options.length_penalty, "prefill": self.prefill}
        drawn = options.sampling
        if drawn is None:
            return beam_search(self.step, cache, rules, beam=options.beam, n_best=options.n_best, **common)
        # Seeded by the source itself, so that its position among the others has no influence.
        seeds = [derive_seed(drawn.seed, "source", *source) for source in sources]
        common |= {"temperature": drawn.temperature, "top_k": drawn.top_k, "top_p": drawn.top_p}
        return sample(self.step, cache, rules, seeds=seeds, samples=options.n_best, **common)

    @contextmanager
    def _forced(self, sources: TokenIds, targets: TokenIds) -> Iterator[Iterator[tuple[list[int], Tensor, Tensor]]]:
        """Batches for teacher forcing: (indices, sources [B, S] with `</s>`, targets [B, T] with `<s>` and `</s>`)."""
        if len(sources) != len(targets):
            given = f"{counted(len(sources), 'source')} and {counted(len(targets), 'target')}"
            raise InputError(f"There must be one target for each source; given are {given}.")
        lengths = [max(len(source), len(target)) + 1 for source, target in zip(sources, targets, strict=True)]
        with self.evaluating(max(map(len, [*sources, *targets]), default=0)):
            yield (
                (
                    batch,
                    padded([[*sources[i], EOS] for i in batch], self.device),
                    padded([[BOS, *targets[i], EOS] for i in batch], self.device),
                )
                for batch in sorted_batches(lengths, FORCED_TOKENS)
            )
