"""Input unlike the training data: other case, languages and scripts. What is translated, and what is marked?

    python benchmarks/unusual_input.py --models with=RUN1 without=RUN2 --test test.en test.de --foreign french=test.fr

rewrites benchmarks/unusual_input.md. The models differ in `augment.case`. Marked are results with `low_confidence`.
`--trainings RUN …` are trainings with and without it, of several seeds, whose validations are compared; given alone, it
rewrites this part of the page only.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from machine import describe_machine

from jumok.data.reading.pairs import read_lines
from jumok.engines.loading import load
from jumok.engines.options import DecodingOptions
from jumok.engines.translator.text import TextTranslator
from jumok.metrics.translation import corpus_scores
from jumok.tokenizer import lower_case, title_case, upper_case

PAGE = Path(__file__).with_suffix(".md")
TRAININGS = re.compile(r"## What training with variants costs\n.*?(?=^## )", re.DOTALL | re.MULTILINE)
SENTENCES = 200
CASES = {"as it is": str, "small letters": lower_case, "Title Case": title_case, "CAPITAL LETTERS": upper_case}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", metavar="NAME=RUN")
    parser.add_argument("--test", nargs=2, metavar=("SRC", "REF"))
    parser.add_argument("--trainings", nargs="*", default=[], metavar="RUN", type=Path)
    parser.add_argument("--foreign", nargs="*", default=[], metavar="NAME=FILE[#COLUMN]")
    asked = parser.parse_args()
    if asked.models:
        PAGE.write_text(measured_page(asked), encoding="utf-8")
    if asked.trainings:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(TRAININGS.sub(lambda _: trainings_part(asked.trainings), text), encoding="utf-8")


def measured_page(asked: argparse.Namespace) -> str:
    """What the models do with unusual input."""
    sources, references = (list(read_lines(Path(file)))[:SENTENCES] for file in asked.test)
    models = {name: load(Path(run), task="translator") for name, _, run in (m.rpartition("=") for m in asked.models)}
    inputs = {"test sentences": sources, **dict(map(read, asked.foreign)), **nonsense(sources)}
    case_rows = [case_row(name, model, sources, references) for name, model in models.items()]
    mark_rows = [
        f"| {kind} | {len(texts)} | " + " | ".join(f"{marked(model, texts):.1%}" for model in models.values()) + " |"
        for kind, texts in inputs.items()
    ]
    return page(case_rows, mark_rows, list(models), len(sources))


def trainings_part(runs: Sequence[Path]) -> str:
    """The part of the page about trainings with and without variants, from the logs of the runs."""
    found: dict[float, dict[int, dict[str, Any]]] = defaultdict(dict)
    for run in runs:
        settings = json.loads((run / "run.json").read_text(encoding="utf-8"))["settings"]
        events = map(json.loads, (run / "log.jsonl").read_text(encoding="utf-8").splitlines())
        last = [event for event in events if event["event"] == "valid" and "averaged" not in event][-1]
        found[settings["augment"]["case"]][settings["seed"]] = last
    seeds = sorted(set.intersection(*(set(each) for each in found.values())))
    rows = [training_row(share, [found[share][seed] for seed in seeds]) for share in sorted(found)]
    shares = "|".join(f"{share:g}" for share in sorted(found))
    command = f"--preset tiny --steps {last['step']} --seed {'|'.join(map(str, seeds))} --set model.dropout=0.1"
    return f"""## What training with variants costs

`{command} --set augment.case={shares}`, Multi30k en→de, greedy,
1,000 validation sentences: the mean of {len(seeds)} seeds, and in parentheses each.
{describe_machine()}

| `augment.case` | validation loss | BLEU | chrF |
|---|---|---|---|
{chr(10).join(rows)}

"""


def training_row(share: float, validations: Sequence[dict[str, Any]]) -> str:
    """Loss, BLEU and chrF of the trainings with this share of variants."""
    cells = []
    for name, form in (("loss", ".3f"), ("bleu", ".2f"), ("chrf", ".2f")):
        values = [validation[name] for validation in validations]
        cells.append(f"{mean(values):{form}} ({', '.join(f'{value:{form}}' for value in values)})")
    return f"| {share:g} | {' | '.join(cells)} |"


def read(argument: str) -> tuple[str, list[str]]:
    """A name and the lines of a file, or those of a column."""
    name, _, file = argument.partition("=")
    path, _, column = file.partition("#")
    lines = [line for line in read_lines(Path(path)) if line.strip()][:SENTENCES]
    return name, [line.split("\t")[int(column) - 1] for line in lines] if column else lines


def nonsense(sources: Sequence[str]) -> dict[str, list[str]]:
    """Shuffled letters, emoji, and letters of a script that no corpus here has."""
    draw = random.Random(1)
    shuffled = [" ".join("".join(draw.sample(word, len(word))) for word in text.split()) for text in sources]
    return {
        "letters of each word shuffled": shuffled,
        "emoji": ["".join(draw.choices("😀😂🎉🔥👍🐶🌍🚀", k=draw.randint(1, 8))) for _ in range(100)],
        "Greek letters": ["".join(draw.choices("αβγδεζηθικλμ  ", k=40)) for _ in range(100)],
        "CAPITAL LETTERS": list(map(upper_case, sources)),
        "small letters": list(map(lower_case, sources)),
    }


def case_row(name: str, model: TextTranslator, sources: Sequence[str], references: Sequence[str]) -> str:
    """BLEU for every case; what was in capital letters is compared with references in capital letters."""
    cells = []
    for case, convert in CASES.items():
        outputs = model.translate([convert(source) for source in sources])
        capitals = case == "CAPITAL LETTERS"
        cells.append(
            f"{corpus_scores(outputs, list(map(upper_case, references)) if capitals else references).bleu:.2f}"
        )
    return f"| {name} | {' | '.join(cells)} |"


def marked(model: TextTranslator, texts: Sequence[str]) -> float:
    """The share of the texts whose translation is marked."""
    return sum(bool(result.low_confidence) for result in model.translate_batch(texts, DecodingOptions())) / len(texts)


def page(case_rows: Sequence[str], mark_rows: Sequence[str], models: Sequence[str], sentences: int) -> str:
    """The page of all measurements."""
    return f"""# Unusual input

`python benchmarks/unusual_input.py --models NAME=RUN … --test SRC REF --foreign NAME=FILE …` writes this page.
{describe_machine()}

## Case

BLEU (beam 5) of {sentences} test sentences whose source is written in another case. The references of CAPITAL LETTERS
are in capital letters too.

| model | {" | ".join(CASES)} |
|---|{"---|" * len(CASES)}
{chr(10).join(case_rows)}

## What training with variants costs

Not measured.

## Doubtful translations

The share of translations with `low_confidence`. Those of test sentences and of their variants in another case are
marked in vain.

| input | texts | {" | ".join(models)} |
|---|---|{"---|" * len(models)}
{chr(10).join(mark_rows)}
"""


if __name__ == "__main__":
    main()
