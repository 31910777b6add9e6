"""Lines of several sentences: how many are split right, and what it is worth in BLEU.

    python benchmarks/sentences.py --texts en=test.en de=test.de ko=pairs.tsv#2 --bleu RUN test.en test.de

rewrites benchmarks/sentences.md. Lines of a text are joined by a space, two or three at random; a joined line is split
right if it is split exactly where it was joined. `#2` is the second column of a TSV file. Lines that do not end in a
sentence mark, and those that hold several sentences already, are counted and left out. `--bleu` may be repeated: a
model, a source and its references, of which the first 200 lines are joined in pairs. Libraries that are installed
(pysbd, sentencex) are measured on the same lines.
"""

from __future__ import annotations

import argparse
import importlib
import random
import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path

from machine import describe_machine

from jumok.data.reading.pairs import read_lines
from jumok.demo.pairs import demo_pairs
from jumok.engines.loading import load
from jumok.engines.options import DecodingOptions
from jumok.engines.translator.sentences import CLOSING, ENDS, sentence_ends
from jumok.metrics.translation import corpus_scores

PAGE = Path(__file__).with_suffix(".md")
LINES, SENTENCES = 1_000, 200
Splitter = Callable[[str, str], list[int]]  # text, language → indices of the ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", nargs="+", default=[], metavar="LANGUAGE=FILE[#COLUMN]")
    parser.add_argument("--bleu", nargs=3, action="append", default=[], metavar=("RUN", "SRC", "REF"))
    asked = parser.parse_args()
    built_in = demo_pairs(count=20_000).test
    texts = {name: read(name) for name in asked.texts}
    texts |= {"en=built-in": [pair[0] for pair in built_in], "ko=built-in": [pair[1] for pair in built_in]}
    rows = [row for name, lines in texts.items() for row in measure(name, lines)]
    bleu = [row for model, source, reference in asked.bleu for row in measure_bleu(model, source, reference)]
    PAGE.write_text(page(rows, bleu), encoding="utf-8")


def read(name: str) -> list[str]:
    """The lines of a text, or one column of a table."""
    path, _, column = name.partition("=")[2].partition("#")
    lines = [line for line in read_lines(Path(path)) if line.strip()]
    return [line.split("\t")[int(column) - 1] for line in lines] if column else lines


def splitters() -> dict[str, Splitter]:
    """Ours and those of installed libraries."""
    found: dict[str, Splitter] = {"Jumok": lambda text, language: sentence_ends(text, language)}

    def ends(sentences: Sequence[str]) -> list[int]:
        behind = accumulate(map(len, sentences))
        return [end - len(s) + len(s.rstrip()) for s, end in zip(sentences, behind, strict=True)][:-1]

    for name in ("pysbd", "sentencex"):
        try:
            library = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        if name == "pysbd":
            found[name] = lambda text, language, library=library: ends(
                library.Segmenter(language=language, clean=False).segment(text)
            )
        else:
            found[name] = lambda text, language, library=library: ends(list(library.segment(language, text)))
    return found


def measure(name: str, lines: Sequence[str]) -> list[str]:
    """A row of the page for each splitter."""
    language, _, file = name.partition("=")
    lines = [line.strip() for line in lines]
    unended = sum(not line.rstrip(f"{CLOSING} ").endswith(tuple(ENDS)) for line in lines)
    several = sum(bool(sentence_ends(line, language)) for line in lines)
    usable = [
        line for line in lines if line.rstrip(f"{CLOSING} ").endswith(tuple(ENDS)) and not sentence_ends(line, language)
    ]
    rows = []
    for splitter, split in splitters().items():
        cells = []
        for count in (2, 3):
            draw = random.Random(count)
            joined = [draw.sample(usable, count) for _ in range(LINES)]
            began = time.perf_counter()
            try:
                right = sum(split(" ".join(parts), language) == joints(parts) for parts in joined)
            except ValueError:  # pysbd does not know the language
                cells.append("–")
                continue
            seconds = (time.perf_counter() - began) / LINES
            cells.append(f"{right / LINES:.1%}")
        cells.append("–" if cells == ["–", "–"] else f"{1e6 * seconds:.0f}")
        shown = f"{Path(file.partition('#')[0]).name} | {language} | {len(lines):,} | {unended} | {several}"
        rows.append(f"| {shown if splitter == 'Jumok' else ' | | | | '} | {splitter} | {' | '.join(cells)} |")
    return rows


def has_end(line: str) -> bool:
    """Whether a line ends with a sentence mark, quotes and brackets aside."""
    return line.rstrip(f"{CLOSING} ").endswith(tuple(ENDS))


def joints(parts: Sequence[str]) -> list[int]:
    """Where the parts end in the text that joins them with spaces."""
    return [end + number for number, end in enumerate(accumulate(map(len, parts[:-1])))]


def measure_bleu(model: str, source: str, reference: str) -> list[str]:
    """BLEU of single lines, of pairs of them split and not split: all of the same sentences."""
    translator = load(Path(model), task="translator")
    pairs = list(zip(read_lines(Path(source)), read_lines(Path(reference)), strict=True))
    pairs = [pair for pair in pairs if has_end(pair[0])][:SENTENCES]
    sources, references = [source for source, _ in pairs], [" ".join(two) for two in _pairs([r for _, r in pairs])]
    joined = [" ".join(two) for two in _pairs(sources)]

    def bleu(texts: Sequence[str], split: bool) -> tuple[float, list[str]]:
        results = translator.translate_batch(texts, DecodingOptions(split_sentences=split))
        outputs = [result.text for result in results]
        outputs = [" ".join(two) for two in _pairs(outputs)] if len(outputs) > len(references) else outputs
        return corpus_scores(outputs, references).bleu, outputs

    single, apart = bleu(sources, False)
    split, together = bleu(joined, True)
    fused, _ = bleu(joined, False)
    same = sum(a == b for a, b in zip(apart, together, strict=True)) / len(apart)
    name = f"{Path(source).name} → {Path(reference).name}"
    return [f"| {name} | {len(sources)} | {single:.2f} | {split:.2f} | {fused:.2f} | {same:.1%} |"]


def _pairs(texts: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(texts[::2], texts[1::2], strict=False))


def page(rows: Sequence[str], bleu: Sequence[str]) -> str:
    """The page of all measurements."""
    return f"""# Lines of several sentences

`python benchmarks/sentences.py --texts LANGUAGE=FILE … --bleu RUN SRC REF` writes this page. {describe_machine()}

## Split right

Two or three random lines of a text, joined by a space, {LINES:,} times: the share that is split exactly where it was
joined. Lines without a sentence mark at their end cannot be split from the next by punctuation; they are left out, and
so are lines that hold several sentences themselves (those of the files below were read: all really do, except two in
which `&quot;` follows the last full stop). Jumok's splitter needs no language, but is told it here like the others.

| text | language | lines | without an end | of several sentences | splitter | two lines | three lines | µs a text |
|---|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}

## BLEU

The first sentences of a test that end with a mark (beam 5): alone, joined in pairs and split, and joined in pairs and
not split. The last column is the share of pairs whose translation is the same as that of the sentences alone.

| test | sentences | alone | pairs, split | pairs, not split | same translation |
|---|---|---|---|---|---|
{chr(10).join(bleu)}
"""


if __name__ == "__main__":
    main()
