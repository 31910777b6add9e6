"""What a corpus check reports: findings that name places and say what to do, and the size of both sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from jumok.data.survey import Example

__all__ = ["KINDS", "Example", "Finding", "Report", "SideTotals"]

# For each kind: what was found, {n} times, and what to do about it.
KINDS = {
    "unequal-length": (
        "{n} lines more on one side than on the other",
        "Look around the line named here: it seems to be the first without a partner.",
    ),
    "same-file": ("{n} pairs have the same text on both sides", "Give the translation as the second file."),
    "swapped": ("source and target seem to be swapped", "Exchange the order of the files."),
    "labels": (
        "one side has only {n} different values",
        "This looks like labels, not translations; `jumok train classifier` learns from those.",
    ),
    "malformed": ("{n} lines are not records with two texts", "Correct or remove them; training leaves them out."),
    "empty-side": ("{n} pairs lack a side", "Fill or remove both lines of each; training leaves them out."),
    "too-long": ("{n} lines are too long to be sentences", "Split or remove them; training leaves them out."),
    "encoding-damage": (
        "{n} pairs have damaged characters",
        "Convert the original to UTF-8 anew; training leaves out what cannot be decoded and learns the rest as it is.",
    ),
    "wrong-script": (
        "{n} pairs have a side without a single letter of its usual script",
        "Remove them, unless they are meant: they are probably untranslated.",
    ),
    "copied-source": ("{n} pairs have the source copied to the target", "Remove them, or the model learns to copy."),
    "length-ratio": (
        "{n} pairs have sides whose lengths do not fit each other",
        "Look at them: such pairs are often misaligned or only partly translated.",
    ),
    "duplicates": (
        "{n} pairs repeat an earlier pair exactly",
        "Remove them, unless their frequency is meant: they weigh more than others.",
    ),
    "validation-in-training": (
        "{n} validation pairs are also in training",
        "Remove them from one of the two, or the scores will be too good.",
    ),
    "validation-sources-in-training": (
        "{n} validation sources are also in training",
        "Remove them from one of the two, or the scores will be too good.",
    ),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong: how often, where first, and what to do."""

    kind: str
    count: int
    examples: tuple[Example, ...]

    @property
    def what(self) -> str:
        """The finding in words."""
        return KINDS[self.kind][0].format(n=f"{self.count:,}")

    @property
    def advice(self) -> str:
        """One sentence: what to do."""
        return KINDS[self.kind][1]


@dataclass(frozen=True, slots=True)
class SideTotals:
    """The size of one side, over the lines that are text."""

    name: str
    lines: int
    characters: int
    words: int
    mean_characters: float
    mean_words: float
    script: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """What `jumok check` says of a corpus."""

    pairs: int
    usable: int
    source: SideTotals
    target: SideTotals
    findings: tuple[Finding, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        findings = [{**asdict(finding), "what": finding.what, "advice": finding.advice} for finding in self.findings]
        return {**asdict(self), "clean": self.clean, "findings": findings}

    def render(self) -> str:
        """The report as plain text."""
        lines = [f"{self.usable:,} of {self.pairs:,} pairs can be used.", *self._table(), ""]
        for finding in self.findings:
            share = f" ({finding.count / self.pairs:.2%})" if "pairs" in finding.what else ""
            lines.append(f"{finding.kind}: {finding.what}{share}.")
            lines += [f"    {example.where}  {example.excerpt}".rstrip() for example in finding.examples]
            lines += [f"    → {finding.advice}", ""]
        lines.append("Nothing suspicious." if self.clean else f"Findings: {len(self.findings)}.")
        return "\n".join(lines)

    def _table(self) -> Iterator[str]:
        yield f"{'':8}{'lines':>12}{'characters':>15}{'words':>14}{'characters/line':>17}{'words/line':>12}  script"
        for role, side in (("source", self.source), ("target", self.target)):
            yield (
                f"{role:8}{side.lines:12,}{side.characters:15,}{side.words:14,}"
                f"{side.mean_characters:17.1f}{side.mean_words:12.1f}  {side.script or 'mixed'}"
            )
