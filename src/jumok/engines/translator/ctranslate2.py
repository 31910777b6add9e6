"""The engine that runs an exported model in CTranslate2: fast on CPUs, and without PyTorch.

What CTranslate2 cannot do (biases, reproducible sampling, all heads' attention) is left to PyTorch, which is imported
only then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jumok.bundle import Bundle
from jumok.engines.conversion import CERTIFICATE, DIRECTORY, POSITIONS, SHORTLIST
from jumok.engines.engine import Matrix, SearchOptions, TokenEngine, longest_output, sorted_batches
from jumok.errors import BundleError
from jumok.files import MAX_JSON_BYTES, UnreadableError, parse_json_object, read_bounded, verify_directory
from jumok.search.hypothesis import Hypothesis
from jumok.system import usable_cores
from jumok.tokenizer import EOS, Tokenizer

# CTranslate2 ends a beam search when so many times `beam` outputs have ended, however good those still open are. With
# its own choice, 1, 949 of 1,000 outputs of a model of the built-in corpus equal the reference; with 1.4 it is 974, and
# with 1.6, 2 and 3 it is 978. On Multi30k 977, 995, 996, 999 and 1,000 outputs are those of 3. Every 0.2 costs a
# twentieth of the speed.
PATIENCE = 1.6
FAST_TOKENS = 512  # in a batch: the fewer sentences share a shortlist, the shorter it is
BATCHES_EACH = 8  # for every worker, of sources about as long: with few, some worker is done long before the other
LEAST_TOKENS = 256  # in a batch, if there are as many: alone a sentence takes hardly less time than with others
SCORED_TOKENS = 4096  # padded tokens at a time, when targets are given

Ids = Sequence[Sequence[int]]


def exported_model(bundle: Bundle) -> Path | None:
    """The CTranslate2 model of a bundle, verified; None if there is none, or one of other weights."""
    directory = bundle.path / DIRECTORY
    if not directory.is_dir():
        return None
    try:
        verify_directory(directory)
        where = directory / CERTIFICATE
        certificate = parse_json_object(read_bounded(where, MAX_JSON_BYTES), where)
    except UnreadableError as error:
        raise BundleError(f"{error.problem} Export it again: jumok export -m {bundle.path} --to ctranslate2") from error
    return directory if certificate.get("weights") == bundle.weights_digest else None


def fast_patience(directory: Path) -> float:
    """How long a beam search with an export's shortlist goes on; the certificate says what does no harm."""
    if not (directory / SHORTLIST).is_file():
        raise BundleError(
            f"{directory}: has no shortlist, which --fast needs. It is made from the training data and the "
            "probes of a run (export that again: jumok export -m RUN), and left out where translations would suffer "
            "or are none yet."
        )
    where = directory / CERTIFICATE
    shortlist = parse_json_object(read_bounded(where, MAX_JSON_BYTES), where).get("shortlist")
    patience = shortlist.get("patience") if isinstance(shortlist, dict) else None
    return patience if isinstance(patience, float) else PATIENCE


class Ctranslate2Engine:
    """A `TokenEngine` around a CTranslate2 model. `fallback` makes the engine for what this one cannot do.

    With `fast`, the patience of beam search then, the model's shortlist is used, except for outputs with a prefix.
    """

    def __init__(
        self,
        directory: Path,
        tokenizer: Tokenizer,
        fallback: Callable[[], TokenEngine],
        *,
        longest: int = POSITIONS - 1,
        fast: float | None = None,
    ) -> None:
        import ctranslate2

        self._fast = fast
        self._longest = longest
        self._pieces = tokenizer.pieces(range(tokenizer.size))
        self._ids = {piece: number for number, piece in enumerate(self._pieces)}
        self._make_fallback = fallback
        self._fallback: TokenEngine | None = None
        # Threads across batches. Inside an operation of a small model two bring a third more speed to a sentence that
        # is alone, if nothing else runs; beside one busy process they were four times slower than one, int8 always.
        workers = usable_cores()
        self._translator = ctranslate2.Translator(
            str(directory), device="cpu", inter_threads=workers, intra_threads=1, max_queued_batches=-1
        )
        self._workers = workers

    @property
    def longest(self) -> int | None:
        """The most tokens a source or an output can have, `</s>` not counted."""
        return self._longest

    def generate(
        self,
        sources: Ids,
        options: SearchOptions,
        *,
        prefixes: Ids | None = None,
        bias: Mapping[int, float] | None = None,
    ) -> list[list[Hypothesis]]:
        """The `n_best` outputs for each source, best first."""
        if options.sampling is not None or bias:
            return self._other().generate(sources, options, prefixes=prefixes, bias=bias)
        prefixes = [()] * len(sources) if prefixes is None else prefixes
        results: list[list[Hypothesis]] = [[] for _ in sources]
        waiting = []
        groups = self._by_limit(sources, prefixes, options)
        for limit, places in sorted(groups.items(), reverse=True):  # the longest first: at the end, none waits long
            lengths = [len(sources[place]) + 1 for place in places]
            for batch in self._batches(lengths, options):
                chosen = [places[i] for i in batch]
                waiting.append((chosen, self._start(chosen, sources, prefixes, limit, options)))
        for chosen, answers in waiting:
            for place, answer in zip(chosen, answers, strict=True):
                results[place] = self._hypotheses(answer.result())
        return results

    def score(self, sources: Ids, targets: Ids) -> list[list[float]]:
        """The log-probability of every token of each target, and last that of its `</s>`."""
        pairs = list(zip(sources, targets, strict=True))
        fitting = [max(map(len, pair)) <= self._longest for pair in pairs]
        too_long = [place for place, fits in enumerate(fitting) if not fits]
        others = [place for place, fits in enumerate(fitting) if fits]
        found = self._translator.score_batch(
            self._texts([sources[place] for place in others]),
            self._texts([targets[place] for place in others]),
            max_batch_size=SCORED_TOKENS,
            batch_type="tokens",
            max_input_length=0,
        )
        results = {place: list(result.log_probs) for place, result in zip(others, found, strict=True)}
        if too_long:  # more positions than were exported
            chosen = [[texts[place] for place in too_long] for texts in (sources, targets)]
            results.update(zip(too_long, self._other().score(*chosen), strict=True))
        return [results[place] for place in range(len(pairs))]

    def align(self, sources: Ids, targets: Ids) -> list[Matrix]:
        """For each pair a matrix [T, S]: how much of each source token went into each target token."""
        return self._other().align(sources, targets)

    def _by_limit(self, sources: Ids, prefixes: Ids, options: SearchOptions) -> dict[int, list[int]]:
        """Sources by the longest output they may have: CTranslate2 knows one limit for all that it is given at once."""
        groups = defaultdict(list)
        for place, (source, prefix) in enumerate(zip(sources, prefixes, strict=True)):
            groups[longest_output(len(source), len(prefix), options, self.longest)].append(place)
        return groups

    def _batches(self, lengths: list[int], options: SearchOptions) -> list[list[int]]:
        """As large as the options allow, but enough of them to keep all workers busy."""
        share = -(-sum(lengths) // (self._workers * BATCHES_EACH))
        budget = max(share, LEAST_TOKENS) * options.rows
        most = options.batch_tokens if self._fast is None else min(options.batch_tokens, FAST_TOKENS * options.rows)
        return sorted_batches(lengths, min(most, budget), options.rows)

    def _start(self, places: list[int], sources: Ids, prefixes: Ids, limit: int, options: SearchOptions) -> list[Any]:
        # CTranslate2 looks a prefix up in the shortlist of the batch before: another prefix comes out, or it crashes.
        fast = None if any(prefixes[place] for place in places) else self._fast
        answers: list[Any] = self._translator.translate_batch(
            self._texts([sources[place] for place in places]),
            target_prefix=self._texts([prefixes[place] for place in places]),
            asynchronous=True,
            beam_size=options.beam,
            num_hypotheses=options.n_best,
            length_penalty=options.length_penalty,
            no_repeat_ngram_size=options.no_repeat_ngram,
            max_decoding_length=limit,
            max_input_length=0,
            max_batch_size=0,
            return_scores=True,
            return_end_token=True,
            use_vmap=fast is not None,
            patience=PATIENCE if fast is None else fast,
        )
        return answers

    def _hypotheses(self, result: Any) -> list[Hypothesis]:
        found = []
        for tokens, score in zip(result.hypotheses, result.scores, strict=True):
            ids = [self._ids[token] for token in tokens]
            finished = bool(ids) and ids[-1] == EOS
            found.append(Hypothesis(ids[:-1] if finished else ids, float(score), [], finished))
        return found

    def _texts(self, rows: Ids) -> list[list[str]]:
        return [[self._pieces[number] for number in row] for row in rows]

    def _other(self) -> TokenEngine:
        if self._fallback is None:
            self._fallback = self._make_fallback()
        return self._fallback
