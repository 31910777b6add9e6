"""The engine that runs an exported translator in CTranslate2, fast on CPUs and without PyTorch, and its conversion.
What CTranslate2 cannot do (biases, reproducible sampling, the encoder's states) is left to PyTorch, which is imported
only then."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from jumok.bundle import Bundle, Weights
from jumok.engines.batching import FloatMatrix, TokenIds, in_two_ways, sorted_batches
from jumok.engines.conversion import SHORTLIST, fill_decoder, fill_encoder, layer_options, longest_text
from jumok.engines.ctranslate2_models import Ctranslate2Model, wait_for
from jumok.engines.opening import needed_for, read_certificate
from jumok.engines.options import SearchOptions
from jumok.engines.translator.engine import Bias, TranslatorEngine, longest_output
from jumok.errors import BundleError
from jumok.model.config.translator import TranslatorConfig
from jumok.search.hypothesis import Hypothesis
from jumok.tokenizer import EOS, Tokenizer

# CTranslate2 ends a beam search when patience * beam outputs have ended, however good the unfinished ones are. With
# its default, 1, 949 of 1,000 outputs of a model of the built-in corpus equal the reference; with 1.4 it is 974, and
# with 1.6, 2 and 3 it is 978. On Multi30k 977, 995, 996, 999 and 1,000 outputs are those of 3. Every 0.2 costs a
# twentieth of the speed.
PATIENCE = 1.6
FAST_TOKENS = 512  # in a batch with a shortlist: the fewer sentences share it, the shorter it is
LEAST_TOKENS = 256  # in a batch: smaller batches hardly take less time
# Padded source tokens in a batch, with greedy search and with a beam, whose rows come on top. In greedy search a token
# takes a twentieth longer in batches of 1,024 than in those of 2,048, and a quarter in those of 512.
EFFICIENT_TOKENS, EFFICIENT_BEAM_TOKENS = 2048, 1024
BATCHES_AHEAD = 3  # for every worker, waiting in CTranslate2: those that are left after an interrupt
QUICK_TOKENS = 600  # to generate at most, rows of the beam counted: a sentence or two, so that Ctrl-C can wait for them
SCORED_TOKENS = 4096  # padded tokens in a batch, when scoring or aligning given targets

Batch = TypeVar("Batch")


def open_export(directory: Path, *arguments: Any, fast: bool, **options: Any) -> Ctranslate2Translator:
    """The engine of an export that is complete: its certificate says how `fast` it can be."""
    return Ctranslate2Translator(directory, *arguments, fast=fast_patience(directory) if fast else None, **options)


def fast_patience(directory: Path) -> float:
    """The patience of beam search with an export's shortlist, as certified."""
    if not (directory / SHORTLIST).is_file():
        raise BundleError(
            f"{directory}: has no shortlist, which `fast=True` needs. It is made from the training data and the "
            "probes of a run (export that again with `jumok export`), and left out where translations would get worse "
            "or the model does not translate yet."
        )
    shortlist = read_certificate(directory).get("shortlist")
    patience = shortlist.get("patience") if isinstance(shortlist, dict) else None
    return patience if isinstance(patience, float) else PATIENCE


class Ctranslate2Translator:
    """A `TranslatorEngine` around a CTranslate2 model. `fallback` makes the engine for what this one cannot do.
    `fast` is the patience of beam search with the model's shortlist, which is used except for outputs with a prefix.
    `compute` is CTranslate2's type of computation; by default the type of the stored weights."""

    name = "CTranslate2"

    def __init__(
        self,
        directory: Path,
        bundle: Bundle,
        fallback: Callable[[], TranslatorEngine],
        *,
        tokenizer: Tokenizer,
        fast: float | None = None,
        threads: int | None = None,
        device: str = "cpu",
        compute: str = "default",
    ) -> None:
        self._fast = fast
        self.longest = longest_text(TranslatorConfig.from_dict(bundle.config))
        self._tokens = tokenizer.pieces(range(tokenizer.size))
        self._ids = {token: number for number, token in enumerate(self._tokens)}
        self.fallback = cache(fallback)
        # Two threads inside an operation would make a single sentence a third faster on an idle machine, but four times
        # slower beside one busy process, and int8 slower always.
        self._model = Ctranslate2Model(
            "Translator", directory, threads, device, max_queued_batches=-1, compute_type=compute
        )

    def generate(
        self, sources: TokenIds, options: SearchOptions, *, prefixes: TokenIds | None = None, bias: Bias | None = None
    ) -> list[list[Hypothesis]]:
        if options.sampling is not None or bias:
            purpose = "`bias=`" if bias else "Sampling (`temperature=`, `top_k=`, `top_p=`)"
            return self._original(purpose).generate(sources, options, prefixes=prefixes, bias=bias)
        prefixes = [()] * len(sources) if prefixes is None else prefixes
        results: list[list[Hypothesis]] = [[] for _ in sources]
        groups = defaultdict(list)  # by length limit: CTranslate2 takes one a batch
        for index, (source, prefix) in enumerate(zip(sources, prefixes, strict=True)):
            groups[longest_output(len(source), len(prefix), options, self.longest)].append(index)
        budget = self._budget(sum(len(source) + 1 for source in sources), options)
        batches = [
            (limit, [indices[i] for i in batch])
            for limit, indices in sorted(groups.items(), reverse=True)  # the longest first: no worker ends much later
            for batch in sorted_batches([len(sources[index]) + 1 for index in indices], budget, options.rows)
        ]

        def start(batch: tuple[int, list[int]]) -> list[Any]:
            return self._start(batch[1], sources, prefixes, batch[0], options)

        is_quick = options.rows * sum(limit * len(indices) for limit, indices in batches) <= QUICK_TOKENS
        for (_, indices), found in self._in_turn(batches, start, is_quick):
            for index, result in zip(indices, found, strict=True):
                results[index] = self._hypotheses(result)
        return results

    def score(self, sources: TokenIds, targets: TokenIds) -> list[list[float]]:
        return in_two_ways(
            self._fits(sources, targets), self._score, lambda *pairs: self._long().score(*pairs), sources, targets
        )

    def align(self, sources: TokenIds, targets: TokenIds) -> list[FloatMatrix]:
        """For each pair a matrix [T, S] of attention weights; rows sum to 1.
        They are those of `TorchTranslator.align`: `make_spec` names the layer, and CTranslate2 averages its heads."""
        return in_two_ways(
            self._fits(sources, targets), self._align, lambda *pairs: self._long().align(*pairs), sources, targets
        )

    def _fits(self, sources: TokenIds, targets: TokenIds) -> list[bool]:
        return [max(len(source), len(target)) <= self.longest for source, target in zip(sources, targets, strict=True)]

    def _score(self, sources: TokenIds, targets: TokenIds) -> list[list[float]]:
        options = {"max_batch_size": SCORED_TOKENS, "batch_type": "tokens", "max_input_length": 0}
        pairs = self._texts(sources), self._texts(targets)
        found = self._model.get().score_batch(*pairs, asynchronous=True, **options)
        return [list(wait_for(result).log_probs) for result in found]

    def _align(self, sources: TokenIds, targets: TokenIds) -> list[FloatMatrix]:
        results: dict[int, FloatMatrix] = {}
        lengths = [max(len(source), len(target)) + 1 for source, target in zip(sources, targets, strict=True)]

        def start(batch: list[int]) -> list[Any]:
            """Force the targets, and one token more: the attention of its step is that of `</s>`."""
            futures: list[Any] = self._model.get().translate_batch(
                self._texts([sources[index] for index in batch]),
                target_prefix=self._texts([targets[index] for index in batch]),
                asynchronous=True,
                beam_size=1,
                max_decoding_length=max(len(targets[index]) for index in batch) + 1,
                max_input_length=0,
                return_attention=True,
                return_end_token=True,
            )
            return futures

        for batch, found in self._in_turn(sorted_batches(lengths, SCORED_TOKENS), start):
            for index, result in zip(batch, found, strict=True):
                weights = np.array(result.attention[0][: len(targets[index]) + 1], np.float32)
                of_end = np.maximum(0, 1 - weights.sum(1, keepdims=True))  # CTranslate2 leaves out the source's </s>
                results[index] = np.concatenate((weights, of_end), 1)
        return [results[index] for index in range(len(sources))]

    def _in_turn(
        self, batches: list[Batch], start: Callable[[Batch], list[Any]], is_quick: bool = False
    ) -> Iterator[tuple[Batch, list[Any]]]:
        """Every batch with its results, in their order; `start` is called for a few batches ahead."""
        waiting: deque[tuple[Batch, list[Any]]] = deque()
        for batch in batches:
            waiting.append((batch, start(batch)))
            if len(waiting) > BATCHES_AHEAD * self._model.workers:
                first, futures = waiting.popleft()
                yield first, [wait_for(future, is_quick) for future in futures]
        for last, futures in waiting:
            yield last, [wait_for(future, is_quick) for future in futures]

    def vectors(self, texts: TokenIds) -> FloatMatrix:
        return self._original("Computing vectors with a translator").vectors(texts)

    def _long(self) -> TranslatorEngine:
        return self._original(f"A text of more than {self.longest:,} tokens")

    def _original(self, purpose: str) -> TranslatorEngine:
        with needed_for(purpose):
            return self.fallback()

    def _budget(self, tokens: int, options: SearchOptions) -> int:
        """The padded tokens of a batch, rows of the beam counted: an efficient number, if the options allow it and
        every worker has two batches then; else fewer, so that all workers are busy until the end."""
        share = -(-tokens // (2 * self._model.workers))
        efficient = EFFICIENT_TOKENS if options.rows == 1 else EFFICIENT_BEAM_TOKENS
        budget = max(min(share, efficient), LEAST_TOKENS) * options.rows
        most = options.batch_tokens if self._fast is None else min(options.batch_tokens, FAST_TOKENS * options.rows)
        return min(most, budget)

    def _start(
        self, indices: list[int], sources: TokenIds, prefixes: TokenIds, limit: int, options: SearchOptions
    ) -> list[Any]:
        # CTranslate2 looks a prefix up in the previous batch's shortlist: another prefix comes out, or it crashes.
        fast = None if any(prefixes[index] for index in indices) else self._fast
        futures: list[Any] = self._model.get().translate_batch(
            self._texts([sources[index] for index in indices]),
            target_prefix=self._texts([prefixes[index] for index in indices]),
            asynchronous=True,
            beam_size=options.beam,
            num_hypotheses=options.n_best,
            length_penalty=options.length_penalty,
            no_repeat_ngram_size=options.no_repeat_ngram,
            max_decoding_length=limit,
            max_input_length=0,
            max_batch_size=0,
            return_scores=options.scores or options.beam > 1,  # a beam has them anyway
            return_end_token=True,
            use_vmap=fast is not None,
            patience=PATIENCE if fast is None else fast,
        )
        return futures

    def _hypotheses(self, result: Any) -> list[Hypothesis]:
        found = []
        scores = result.scores or [math.nan] * len(result.hypotheses)
        for tokens, score in zip(result.hypotheses, scores, strict=True):
            ids = [self._ids[token] for token in tokens]
            finished = bool(ids) and ids[-1] == EOS
            found.append(Hypothesis(ids[:-1] if finished else ids, float(score), [], finished))
        return found

    def _texts(self, rows: TokenIds) -> list[list[str]]:
        return [[self._tokens[number] for number in row] for row in rows]


def make_spec(config: TranslatorConfig, weights: Weights, tokens: list[str]) -> Any:
    """The specification of a sequence-to-sequence model with a shared vocabulary of `tokens`."""
    from ctranslate2.specs import transformer_spec

    spec = transformer_spec.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        alignment_layer=max(0, config.decoder_layers - 2),
        alignment_heads=config.heads,
        **layer_options(config),
    )
    fill_encoder(spec.encoder, config, weights)
    fill_decoder(spec.decoder, config, weights, cross=True)
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.add_source_eos = True
    return spec
