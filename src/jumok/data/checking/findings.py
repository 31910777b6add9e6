"""The report of a corpus check: findings, each with places and advice, and the sizes of both sides."""

from dataclasses import asdict, dataclass
from typing import Any

from jumok.data.checking.survey import Excerpt
from jumok.errors import counted

# For each kind of finding, the most serious first: what was found, {n} times, and what to do about it.
KINDS = {
    "unequal-length": (
        "surplus lines on one side: {n}",
        "Look around this line: it seems to be the first without a partner.",
    ),
    "same-file": ("pairs with the same text on both sides: {n}", "Give the translation as the second file."),
    "swapped": ("source and target seem to be swapped", "Exchange the order of the files."),
    "labels": (
        "different texts on one side: only {n}",
        "This looks like labels, not translations; `jumok train classifier` learns from those.",
    ),
    "left-out": (
        "pairs that cannot be used: {n}",
        "Training stops if it is more than a third of a file. The findings below say why; correct the files, or train "
        "on the rest with `skip_unusable=True`.",
    ),
    "numbers": (
        "numbers or identifiers instead of texts on one side: {n}",
        "Look at the columns or files: another one probably holds the texts.",
    ),
    "constant": (
        "pairs with the same text on one side: {n}",
        "Look at the columns or files: another one probably holds the translations.",
    ),
    "swapped-pairs": (
        "pairs whose source and target seem to be swapped: {n}",
        "Exchange both sides of these lines, or the model learns to translate in both directions at once.",
    ),
    "open-quote": (
        "quoted fields that contain lines which look like rows: {n}",
        "Check whether a closing quote is missing there.",
    ),
    "malformed": (
        "lines that are not records with two texts: {n}",
        "Correct or remove them; training leaves them out.",
    ),
    "empty-side": ("pairs that lack a side: {n}", "Fill or remove both lines of each; training leaves them out."),
    "too-long": ("pairs with a line too long to be a sentence: {n}", "Split or remove them; training leaves them out."),
    "encoding-damage": (
        "pairs with damaged characters: {n}",
        'Convert the original to UTF-8 again, or say which encoding it has, for example: `encoding="cp1252"`. '
        "Training leaves out what cannot be decoded and learns the rest as it is.",
    ),
    "wrong-script": (
        "pairs with a side that has no letter of its usual script: {n}",
        "Remove them, unless they are meant: they are probably untranslated.",
    ),
    "wrong-language": (
        "pairs with a side in another language than most of that side: {n}",
        "Remove them, unless they are meant: they are probably untranslated.",
    ),
    "copied-source": ("pairs whose source was copied to the target: {n}", "Remove them, or the model learns to copy."),
    "length-ratio": (
        "pairs whose lengths do not fit each other: {n}",
        "Look at them: such pairs are often misaligned or only partly translated.",
    ),
    "duplicates": (
        "pairs that repeat an earlier pair exactly: {n}",
        "Remove them, unless their frequency is meant: they weigh more than others.",
    ),
    "validation-in-training": (
        "validation pairs that are also in training: {n}",
        "Remove them from one of the two, or the scores will be too good.",
    ),
    "validation-sources-in-training": (
        "validation sources that are also in training: {n}",
        "Remove them from one of the two, or the scores will be too good.",
    ),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of the corpus: how often, where first, and what to do."""

    kind: str
    count: int
    examples: tuple[Excerpt, ...] = ()
    share: float | None = None  # of the pairs, or of the validation pairs

    @property
    def what(self) -> str:
        """The finding as a phrase."""
        return KINDS[self.kind][0].format(n=f"{self.count:,}")

    @property
    def advice(self) -> str:
        """One sentence: what to do."""
        return KINDS[self.kind][1]

    def to_json(self) -> dict[str, Any]:
        """What was found, the first place (file:line, or empty), and what to do, as plain values."""
        where = self.examples[0].where if self.examples else ""
        return {"kind": self.kind, "count": self.count, "what": self.what, "where": where, "advice": self.advice}


@dataclass(frozen=True, slots=True)
class SideTotals:
    """The size of one side; lines that are not text do not count."""

    name: str
    lines: int
    characters: int
    words: int
    mean_characters: float
    mean_words: float
    script: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `jumok check`."""

    pairs: int
    usable: int
    source: SideTotals
    target: SideTotals
    findings: tuple[Finding, ...]
    read_as: tuple[str, ...] = ()  # how each file was read: its columns, its encoding …

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        """The report as plain values."""
        findings = [{**asdict(finding), "what": finding.what, "advice": finding.advice} for finding in self.findings]
        return {**asdict(self), "clean": self.clean, "findings": findings}

    def render(self) -> str:
        """The report as plain text."""
        lines = [*self.read_as, f"{self.usable:,} of {counted(self.pairs, 'pair')} can be used."]
        lines.append(
            f"{'':8}{'lines':>12}{'characters':>15}{'words':>14}{'characters/line':>17}{'words/line':>12}  script"
        )
        for role, side in (("source", self.source), ("target", self.target)):
            sizes = f"{side.lines:12,}{side.characters:15,}{side.words:14,}"
            means = f"{side.mean_characters:17.1f}{side.mean_words:12.1f}"
            lines.append(f"{role:8}{sizes}{means}  {side.script or 'mixed'}")
        lines.append("")
        for finding in self.findings:
            share = "" if finding.share is None else f" ({finding.share:.2%})"
            lines.append(f"{finding.kind}: {finding.what}{share}.")
            lines += [f"    {example.where}  {example.excerpt}".rstrip() for example in finding.examples]
            lines += [f"    → {finding.advice}", ""]
        lines.append("Nothing suspicious." if self.clean else f"Findings: {len(self.findings)}.")
        return "\n".join(lines)
