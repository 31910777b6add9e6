"""The kinds of examples that the built-in tasks learn from: sentence pairs, labelled texts, passages of text."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, cast

from jumok.data.checking.check import PairCheck
from jumok.data.examples import Example, ExampleKind
from jumok.data.reading.labelled import read_labelled
from jumok.data.reading.options import DEFAULT, ReadingOptions
from jumok.data.reading.pairs import read_pairs
from jumok.data.reading.passages import read_passages
from jumok.tokenizer import TextStatistics, Tokenizer, choose_size

LONGEST = 512  # tokens on either side of a sentence pair
LARGEST_VOCABULARY = 4000  # of a classifier, unless a size is given: n-grams of tokens tell more than rare tokens


def learn_tokenizer(
    examples: Callable[[], Iterator[Example]],
    size: int | None,
    seed: int,
    *,
    largest: int | None = None,
    two_languages: bool = False,
) -> tuple[Tokenizer, str]:
    """Train a subword tokenizer on the texts of the examples; returns it with the reason for its size.
    Without a `size`, it is chosen by the amount of text, and is at most `largest`."""
    chosen, reason = size or 0, f"{size:,} asked for" if size else ""

    def choose(statistics: TextStatistics) -> int:
        nonlocal chosen, reason
        chosen, reason = choose_size(statistics, two_languages=two_languages)
        if largest is not None and chosen > largest:
            chosen, reason = largest, f"at most {largest:,} are enough for a classifier"
        return chosen

    texts = (text for example in examples() for text in example.inputs)
    tokenizer = Tokenizer.train(texts, size or choose, seed=seed)
    if tokenizer.size < chosen:
        reason += "; the texts contain no more"
    return tokenizer, reason


PAIRS = ExampleKind(
    name="pairs",
    columns=("source", "target"),
    files="two aligned text files, or one TSV, CSV, XLSX, JSONL or TMX file",
    read=read_pairs,
    check=PairCheck,
    learn_encoder=partial(learn_tokenizer, two_languages=True),
    longest=LONGEST,
)
TEXTS_WITH_LABELS = ExampleKind(
    name="texts",
    columns=("text",),
    files="TSV, CSV, XLSX or JSONL files with a label and a text a row, or a directory with one directory a class",
    read=read_labelled,
    learn_encoder=partial(learn_tokenizer, largest=LARGEST_VOCABULARY),
    labelled=True,
)
PASSAGES = ExampleKind(
    name="passages", columns=("text",), files="text files", read=read_passages, learn_encoder=learn_tokenizer
)


def reading_with(kind: ExampleKind, options: ReadingOptions) -> ExampleKind:
    """The same kind of examples, read from files as the options say."""
    if options == DEFAULT:
        return kind
    read: Any = kind.read
    check: Any = kind.check and partial(cast(Any, kind.check), options=options)
    return replace(
        kind, read=partial(read, options=options), check=check, variant=options.variant, reading=options.to_json()
    )
