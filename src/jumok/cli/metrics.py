"""What validations measure, as people read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Key in the log, what it is called, and how it is written. The first that is there is what the best model is chosen by.
METRICS = (
    ("bleu", "BLEU", ".1f"),
    ("chrf", "chrF", ".1f"),
    ("macro_f1", "macro-F1", ".1%"),
    ("accuracy", "accuracy", ".1%"),
    ("bits_per_byte", "bits/byte", ".3f"),
    ("perplexity", "perplexity", ".1f"),
)


def named_metrics(event: Mapping[str, Any]) -> dict[str, str]:
    """The metrics of a validation by name, most important first: {"BLEU": "31.2", "chrF": "55.0"}."""
    return {name: format(event[key], form) for key, name, form in METRICS if key in event}
