"""Metrics of translations: BLEU and chrF by sacreBLEU, exact matches, and the perplexity of given pairs."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from jumok.data.checking.symptoms import majority_script
from jumok.errors import ConfigError, InputError, MissingExtraError, counted, did_you_mean

_KANA = re.compile("[\u3040-\u30ff]")


@dataclass(frozen=True, slots=True)
class CorpusScores:
    """BLEU and chrF of a corpus, 0 to 100. Scores are comparable only if their sacreBLEU signatures are equal."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str


@dataclass(frozen=True, slots=True)
class PairScore:
    """The log-probability of a target, given its source."""

    log_prob: float
    tokens: int  # with </s>

    @property
    def per_token(self) -> float:
        """The mean log-probability of a token."""
        return self.log_prob / self.tokens

    @property
    def perplexity(self) -> float:
        """exp of the mean negative log-probability of a token."""
        return math.exp(-self.per_token) if self.per_token > -700 else math.inf


def corpus_scores(hypotheses: Sequence[str], references: Sequence[str], tokenize: str | None = None) -> CorpusScores:
    """BLEU and chrF of all sentences, one reference each. `tokenize` is sacreBLEU's, else see `choose_tokenization`."""
    _require_pairs(hypotheses, references)
    try:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
    except ModuleNotFoundError as error:
        raise MissingExtraError("sacrebleu", "train", "Measuring BLEU and chrF") from error
    tokenize = choose_tokenization(references) if tokenize is None else tokenize
    if tokenize not in BLEU.TOKENIZERS:
        raise ConfigError(f'Unknown tokenisation "{tokenize}".{did_you_mean(tokenize, BLEU.TOKENIZERS)}')
    try:
        bleu, chrf = BLEU(tokenize=tokenize, force=True), CHRF()
    except (RuntimeError, ImportError, OSError) as error:  # it needs another package, or a file from the Internet
        raise ConfigError(f'The tokenisation "{tokenize}" cannot be used: {" ".join(str(error).split())}') from error
    return CorpusScores(
        bleu.corpus_score(hypotheses, [references]).score,
        chrf.corpus_score(hypotheses, [references]).score,
        str(bleu.get_signature()),
        str(chrf.get_signature()),
    )


def choose_tokenization(references: Sequence[str]) -> str:
    """sacreBLEU's tokenisation: `zh` for Chinese, `char` for Japanese and Korean, `13a` for everything else."""
    script = majority_script(references)
    if script == "Hangul":
        return "char"
    if script == "Han or Kana":
        japanese = sum(_KANA.search(reference) is not None for reference in references)
        return "char" if japanese > len(references) / 10 else "zh"
    return "13a"


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The share of sentences, 0 to 1, that equal their reference except for surrounding white space."""
    _require_pairs(hypotheses, references)
    equal = sum(one.strip() == other.strip() for one, other in zip(hypotheses, references, strict=True))
    return equal / len(references)


def pair_scores(log_probs: Sequence[Sequence[float]]) -> list[PairScore]:
    """The score of each pair, from the log-probabilities of its target tokens."""
    return [PairScore(math.fsum(tokens), len(tokens)) for tokens in log_probs]


def total_score(scores: Sequence[PairScore]) -> PairScore:
    """The score of all pairs together: its perplexity is that of the corpus."""
    if not scores:
        raise InputError("There are no pairs to score: the files are empty.")
    return PairScore(math.fsum(score.log_prob for score in scores), sum(score.tokens for score in scores))


def _require_pairs(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise InputError(
            f"{counted(len(hypotheses), 'translation')}, but {counted(len(references), 'reference')}; "
            "give one reference for each translation."
        )
    if not references:
        raise InputError("There is nothing to evaluate: the files are empty.")
