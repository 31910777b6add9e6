"""benchmarks/peers.md and benchmarks/peers.png from what benchmarks/peers.py measured."""

from __future__ import annotations

import shlex
import statistics
import sys
from pathlib import Path
from typing import Any

from machine import describe_machine

from jumok.tokenizer import Tokenizer

TITLES = {
    "jumok": "Jumok",
    "joeynmt": "JoeyNMT",
    "opennmt": "OpenNMT-py",
    "marian": "Marian (pymarian)",
    "huggingface": "Hugging Face",
    "ctranslate2": "CTranslate2, as its README shows",
}
PACKAGES = {
    "joeynmt": "joeynmt",
    "opennmt": "opennmt-py",
    "marian": "pymarian",
    "huggingface": "transformers",
    "ctranslate2": "ctranslate2",
}
Measure = dict[str, Any]
Rounds = dict[int, float]


class Figures:
    """What was measured, by contender and round, without what failed."""

    def __init__(self, measured: dict[str, Measure]) -> None:
        self.measured = measured

    def rounds(self, what: str, name: str) -> dict[int, Measure]:
        """Round to answer of, say, `training/tiny` and a contender."""
        prefix = f"{what}/{name}/"
        found = {key.removeprefix(prefix): answer for key, answer in self.measured.items() if key.startswith(prefix)}
        return {int(number): answer for number, answer in found.items() if "failed" not in answer}

    def names(self, what: str) -> list[str]:
        """Contenders that have figures of it."""
        return [name for name in TITLES if self.rounds(what, name)]

    def failures(self) -> list[str]:
        """A line for each contender and task that failed."""
        reasons = {}
        for key, answer in self.measured.items():
            if "failed" in answer:
                parts = [part for part in key.split("/") if not part.isdigit()]
                reasons[parts[-1], tuple(parts[:-1])] = answer["failed"]
        return [f"- {TITLES[name]}, {' '.join(what)}: {reason}" for (name, what), reason in reasons.items()]


def write_page(path: Path, kept: Measure, tokenizer: Path, references: list[str]) -> None:
    """The page, and the plot beside it."""
    figures = Figures(kept["measured"])
    settings = kept["settings"]
    parts = [*head(path, settings, figures)]
    sizes = [size for size in ("tiny", "base") if figures.names(f"training/{size}")]
    bars: dict[str, dict[str, float]] = {}
    for size in sizes:
        parts += training_table(size, figures)
        bars[f"training `{size}`, target tokens/s"] = medians(rates(figures, f"training/{size}"))
    if figures.names("translation"):
        counter = Tokenizer.from_bytes(tokenizer.read_bytes())
        for beam in ("1", "5"):
            found = translation_rates(figures, beam, counter)
            parts += translation_table(beam, found, figures, references)
            bars[f"a file, beam {beam}, sentences/s"] = medians(found["file"])
        parts += start_table(figures)
    parts += [
        "",
        "CTranslate2 cannot train. Marian's translation is not measured; benchmarks/peers/run_marian.py says why.",
    ]
    if failures := figures.failures():
        parts += ["", "Failed:", "", *failures]
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
    draw(path.with_suffix(".png"), bars)
    print(path.read_text(encoding="utf-8"))


def head(path: Path, settings: Measure, figures: Figures) -> list[str]:
    versions = [
        f"{TITLES[name].split(',')[0]}: {package} "
        f"{version_of(figures.measured[f'environment/{name}']['versions'], package)}"
        for name, package in PACKAGES.items()
        if "versions" in figures.measured.get(f"environment/{name}", {})
    ]
    return [
        "# Jumok and its peers",
        "",
        f"`{command_line(path)}`",
        "writes this page; the docstring of that file says what is compared, and how. `make bench-peers` alone",
        f"uses the built-in corpus. Files: {', '.join(settings['files'])};",
        f"vocabulary for training {settings['vocabulary']:,}, {settings['threads']} threads, float32.",
        "All train for the same number of updates with the same batches, of up to",
        f"{settings['batch_tokens']:,} tokens with padding (Marian makes its own, of about as many tokens).",
        "Jumok's translations run on CTranslate2's engine too.",
        "In parentheses: Jumok's speed divided by the other's (median of the rounds; smallest to largest).",
        f"{describe_machine()} Each table says when it was measured.",
        "",
        f"{'; '.join(versions)}." if versions else "",
    ]


def command_line(page: Path) -> str:
    """The command that writes a page, with the names of files alone, and without where it works."""
    arguments = sys.argv[1:]
    if "--place" in arguments:
        place = arguments.index("--place")
        del arguments[place : place + 2]
    return shlex.join(["python", f"benchmarks/{page.stem}.py", *(Path(word).name for word in arguments)])


def version_of(versions: dict[str, str], package: str) -> str:
    return next(version for name, version in versions.items() if name.lower().replace("_", "-") == package)


def rates(figures: Figures, what: str) -> dict[str, Rounds]:
    return {
        name: {number: answer["rate"] for number, answer in figures.rounds(what, name).items()}
        for name in figures.names(what)
    }


def medians(found: dict[str, Rounds]) -> dict[str, float]:
    return {name: statistics.median(rounds.values()) for name, rounds in found.items()}


def cell(found: dict[str, Rounds], name: str) -> str:
    """A rate and how many times as fast Jumok is, compared round by round."""
    rounds, ours = found[name], found.get("jumok", {})
    value = statistics.median(rounds.values())
    shown = f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"
    ratios = sorted(ours[number] / rounds[number] for number in rounds if number in ours)
    if name == "jumok" or not ratios:
        return f"**{shown}**" if name == "jumok" else shown
    return f"{shown} ({statistics.median(ratios):.2f}×; {ratios[0]:.2f}–{ratios[-1]:.2f})"


def most_memory(figures: Figures, what: str, name: str) -> str:
    return f"{max(answer['memory'] for answer in figures.rounds(what, name).values()):,.0f} MB"


def training_table(size: str, figures: Figures) -> list[str]:
    what = f"training/{size}"
    found = rates(figures, what)
    lines = ["", f"## Training, `{size}`", "", when(figures, what), ""]
    lines += ["| | target tokens/s | rounds | updates and target tokens of each | memory |", "|---|---|---|---|---|"]
    for name in found:
        rounds = figures.rounds(what, name)
        each = {f"{answer['steps']}, {answer['tokens']:,}" for answer in rounds.values()}
        cells = [cell(found, name), str(len(rounds)), "; ".join(sorted(each)), most_memory(figures, what, name)]
        lines.append(f"| {TITLES[name]} | {' | '.join(cells)} |")
    return lines


def when(figures: Figures, what: str) -> str:
    """A sentence with the days and commits at which the rounds of a table were measured."""
    found = {answer["measured"] for name in figures.names(what) for answer in figures.rounds(what, name).values()}
    return f"Measured on {'; '.join(sorted(found))}."


def translation_rates(figures: Figures, beam: str, tokenizer: Tokenizer) -> dict[str, dict[str, Rounds]]:
    """Sentences and output tokens a second of a file, and sentences one at a time."""
    found: dict[str, dict[str, Rounds]] = {"file": {}, "tokens": {}, "alone": {}}
    for name in figures.names("translation"):
        answers = {number: answer["beams"][beam] for number, answer in figures.rounds("translation", name).items()}
        found["file"][name] = {number: len(one["outputs"]) / one["seconds"] for number, one in answers.items()}
        found["alone"][name] = {number: one["alone"] for number, one in answers.items()}
        found["tokens"][name] = {
            number: sum(len(ids) + 1 for ids in tokenizer.encode(one["outputs"])) / one["seconds"]
            for number, one in answers.items()
        }
    return found


def translation_table(
    beam: str, found: dict[str, dict[str, Rounds]], figures: Figures, references: list[str]
) -> list[str]:
    lines = [
        "",
        f"## Translation, beam {beam}",
        "",
        when(figures, "translation"),
        "",
        "| | a file, sentences/s | output tokens/s | one sentence at a time, sentences/s | outputs equal to Jumok's "
        "| BLEU |",
        "|---|---|---|---|---|---|",
    ]
    for name in found["file"]:
        cells = [cell(found[what], name) for what in ("file", "tokens", "alone")]
        cells += [agreement(figures, name, beam), bleu(figures, name, beam, references)]
        lines.append(f"| {TITLES[name]} | {' | '.join(cells)} |")
    return lines


def bleu(figures: Figures, name: str, beam: str, references: list[str]) -> str:
    """Of as many lines as every contender translated."""
    if not references:
        return ""
    import sacrebleu

    found = {one: figures.rounds("translation", one) for one in figures.names("translation")}
    outputs = {one: next(iter(rounds.values()))["beams"][beam]["outputs"] for one, rounds in found.items()}
    count = min(len(references), *map(len, outputs.values()))
    score = sacrebleu.corpus_bleu(outputs[name][:count], [references[:count]], tokenize="none", force=True).score
    return f"{score:.1f} of {count:,}"


def agreement(figures: Figures, name: str, beam: str) -> str:
    """The share of the first sentences, as many as both translated, that came out the same."""
    ours, theirs = (list(figures.rounds("translation", one).values()) for one in ("jumok", name))
    if not ours:
        return ""
    pairs = list(zip(ours[0]["beams"][beam]["outputs"], theirs[0]["beams"][beam]["outputs"], strict=False))
    return f"{sum(a == b for a, b in pairs) / len(pairs):.1%} of {len(pairs):,}"


def start_table(figures: Figures) -> list[str]:
    lines = [
        "",
        "## First sentence, memory, size",
        "",
        when(figures, "first"),
        "",
        "| | from starting the command to the first sentence | memory while translating | model on disk | installed |",
        "|---|---|---|---|---|",
    ]
    for name in figures.names("first"):
        seconds = [answer["seconds"] for answer in figures.rounds("first", name).values()]
        disk = figures.measured.get(f"conversion/{name}", {}).get("disk")
        installed = figures.measured[f"environment/{name}"]["installed"]
        lines.append(
            f"| {TITLES[name]} | {statistics.median(seconds):.2f} s | {most_memory(figures, 'translation', name)} "
            f"| {f'{disk / 1e6:,.1f} MB' if disk else ''} | {installed / 1e6:,.0f} MB |"
        )
    return lines


def draw(path: Path, bars: dict[str, dict[str, float]]) -> None:
    """One panel of bars for each figure, Jumok's in another colour."""
    from matplotlib.figure import Figure

    if not bars:
        return
    figure = Figure(figsize=(9, 0.6 + 1.7 * len(bars)), layout="constrained")
    panels = figure.subplots(len(bars), 1, squeeze=False)[:, 0]
    for panel, (title, values) in zip(panels, bars.items(), strict=True):
        names = list(reversed(values))
        drawn = panel.barh(
            [TITLES[name] for name in names],
            [values[name] for name in names],
            color=["#c0392b" if name == "jumok" else "#95a5a6" for name in names],
        )
        panel.bar_label(drawn, fmt="{:,.0f}", padding=3)
        panel.set_title(title.replace("`", ""), loc="left", fontsize=10)
        panel.margins(x=0.12)
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
