"""benchmarks/time_to_quality.md and .png from what benchmarks/time_to_quality.py measured."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import Any

from peers_page import PACKAGES, TITLES, command_line, version_of

Measure = dict[str, Any]
COLOURS = {
    "jumok": "#c0392b",
    "joeynmt": "#2980b9",
    "opennmt": "#27ae60",
    "marian": "#8e44ad",
    "huggingface": "#e67e22",
}


class Row:
    """One contender with one recipe; its measurements are joined, because Jumok has one for each number of minutes."""

    def __init__(self, name: str, recipe: str) -> None:
        self.name, self.recipe = name, recipe
        self.marks: dict[float, Measure] = {}
        self.answers: list[Measure] = []

    @property
    def title(self) -> str:
        if self.recipe != "documented":
            return f"{TITLES[self.name]}, {self.recipe}"
        return TITLES[self.name] if self.name == "jumok" else f"{TITLES[self.name]}, documented recipe"

    def curve(self) -> dict[float, float]:
        """Minutes → BLEU. Without a checkpoint there is no translation."""
        return {mark: found.get("bleu", 0.0) for mark, found in sorted(self.marks.items())}


def rows_of(measured: dict[str, Measure], minutes: list[float]) -> list[Row]:
    """Rows with these marks only: others may have been measured earlier."""
    rows: dict[tuple[str, str], Row] = {}
    for key, answer in measured.items():
        what, *parts = key.split("/")
        if what == "quality" and "failed" not in answer:
            name, recipe, _ = parts
            row = rows.setdefault((name, recipe), Row(name, recipe))
            marks = {float(mark): found for mark, found in answer["marks"].items() if float(mark) in minutes}
            row.marks |= marks
            row.answers += [answer] if marks else []
    measured_rows = [row for row in rows.values() if row.marks]
    return sorted(measured_rows, key=order_of)


def write_page(path: Path, kept: list[Measure], minutes: list[float]) -> None:
    """The page, with a table for each kind of processor, and the picture beside it."""
    machines = [(each, rows_of(each["measured"], minutes)) for each in kept]
    machines = [(each, rows) for each, rows in machines if rows]
    if not machines:
        print("Nothing was measured: the page stays as it is.")
        return
    # First where Jumok stands beside the most others.
    machines.sort(key=lambda machine: (all(row.name != "jumok" for row in machine[1]), -len(machine[1])))
    all_rows = list({row.title: row for _, rows in reversed(machines) for row in rows}.values())
    all_rows = sorted(all_rows, key=order_of)
    parts = head(path, machines[0][0])
    for each, rows in machines:
        parts += ["", f"## On {each['settings']['processor']}", *table(rows), "", *lines_of(each["machine"])]
        failed = [f"- Failed: {key.removeprefix('quality/')}: {why}" for key, why in failures(each).items()]
        parts += ["", *failed] if failed else []
    parts += [*sources(all_rows), *commands(all_rows)]
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
    draw(path.with_suffix(".png"), {each["settings"]["processor"]: rows for each, rows in machines})
    print("\n".join(parts))


def order_of(row: Row) -> tuple[int, bool]:
    return list(COLOURS).index(row.name), row.recipe != "documented"


def failures(kept: Measure) -> dict[str, str]:
    return {key: answer["failed"] for key, answer in kept["measured"].items() if "failed" in answer}


def lines_of(text: str) -> list[str]:
    return wrap(text, 120, break_on_hyphens=False)


def head(path: Path, kept: Measure) -> list[str]:
    measured = kept["measured"]
    versions = [
        f"{TITLES[name]} {version_of(measured[f'environment/{name}']['versions'], package)}"
        for name, package in PACKAGES.items()
        if "versions" in measured.get(f"environment/{name}", {})
    ]
    about = f"""`{command_line(path)}` writes this page: Multi30k en→de (lc.norm.tok, 29,000 pairs), BLEU on
test_2016_flickr after so many minutes on {kept["settings"]["threads"]} threads, from the first command on; the
docstring of that file says what counts.
Beam 5, sacreBLEU with `tokenize=none`. A "documented recipe" is the one that the contender's own documentation has for
the smallest corpus. But for OpenNMT-py's none is for a corpus this small, and none is for a CPU, where they hardly
begin in this time: the warm-up of Marian's is 16,000 updates. So rows with "sizes of tiny" have the sizes of a
`tiny` translator of Jumok's (two and two layers, 192 wide), its batches, and a peak rate of 0.003. One training each,
with one seed:
differences of less than a BLEU mean little. {"; ".join(versions)}. Minutes on different processors cannot be
compared, so each kind has a table of its own."""
    return ["# Time to quality", "", *lines_of(about), "", "![BLEU by minutes](time_to_quality.png)"]


def table(rows: list[Row]) -> list[str]:
    marks = sorted({mark for row in rows for mark in row.marks})
    titles = [f"BLEU after {mark:g} minutes | saved after" for mark in marks]
    lines = ["", f"| | {' | '.join(titles)} | commands | lines of configuration or code | measured |"]
    lines.append(f"|{'---|' * (2 * len(marks) + 4)}")
    for row in rows:
        cells = [cell(row, mark) for mark in marks]
        answer = row.answers[0]
        count, days = sum(answer["lines"].values()), sorted({answer["measured"] for answer in row.answers})
        lines.append(f"| {row.title} | {' | '.join(cells)} | {len(answer['commands'])} | {count} | {'; '.join(days)} |")
    return lines


def cell(row: Row, mark: float) -> str:
    if mark not in row.marks:
        return " | "
    found = row.marks[mark]
    if not found:
        return "nothing saved yet | "
    bleu = f"**{found['bleu']:.1f}**" if row.name == "jumok" else f"{found['bleu']:.1f}"
    return f"{bleu} | {found['written']:.1f} min"


def sources(rows: list[Row]) -> list[str]:
    lines = ["", "## Where the settings come from", ""]
    for row in rows:
        lines.append(f"- **{row.title}**: {row.answers[0]['source']}".replace("\n", "\n  "))
    lines += ["", "Marian's translations are written by CTranslate2; benchmarks/recipes/marian.py says why."]
    return lines


def commands(rows: list[Row]) -> list[str]:
    """What was typed, and how long the files are that had to be written."""
    lines = ["", "## Commands", ""]
    for row in rows:
        answer = row.answers[-1]
        files = ", ".join(f"{file} ({count} lines)" for file, count in answer["lines"].items())
        lines += [f"{row.title}{f'; with {files}' if files else ''}:", "", "```bash"]
        lines += [*answer["commands"], "```", ""]
    return lines[:-1]


def shortened(command: str) -> str:
    """Without the paths of this machine."""
    return " ".join(Path(word).name if word.count("/") > 1 else word for word in command.split(" "))


def draw(path: Path, machines: dict[str, list[Row]]) -> None:
    """BLEU as bars, a darker one for more minutes; a panel for each kind of processor, the best contender on top."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    most = max(map(len, machines.values()))
    best = max(bleu for rows in machines.values() for row in rows for bleu in row.curve().values())
    figure = Figure(figsize=(8 * len(machines), 1.2 + 0.55 * most), layout="constrained")
    panels = figure.subplots(1, len(machines), squeeze=False)[0]
    for axes, (processor, rows) in zip(panels, machines.items(), strict=True):
        ordered = sorted(rows, key=lambda row: max(row.curve().values()))
        marks = sorted({mark for row in rows for mark in row.marks})
        height = 0.8 / len(marks)
        shades = {mark: (number + 1) / len(marks) for number, mark in enumerate(marks)}
        for place, row in enumerate(ordered):
            for number, (mark, bleu) in enumerate(row.curve().items()):
                at = place + 0.4 - (number + 0.5) * height
                axes.barh(at, bleu, height, color=COLOURS[row.name], alpha=shades[mark])
                text = f"{bleu:.1f}" if row.marks[mark] else "nothing saved yet"
                axes.text(bleu + 0.5, at, text, va="center", fontsize=8)
        axes.set_yticks(range(len(ordered)), [row.title for row in ordered])
        axes.set_title(f"Multi30k en→de on 2 cores of {processor}", fontsize=9)
        axes.set_xlabel("BLEU on test 2016, minutes counted from the first command on")
        axes.set_xlim(0, 1.15 * best)
        axes.spines[["top", "right"]].set_visible(False)
        legend = [Patch(color="#555555", alpha=shades[mark], label=f"{mark:g} minutes") for mark in marks]
        axes.legend(handles=legend, fontsize=8, loc="lower right")
    figure.savefig(path, dpi=120)
