"""Names and formats of the metrics of a validation."""

from collections.abc import Mapping
from typing import Any

# Key in the log, name, format. The first one that a task has is the metric the best model is chosen by.
METRICS = (
    ("bleu", "BLEU", ".1f"),
    ("chrf", "chrF", ".1f"),
    ("macro_f1", "macro-F1", ".1%"),
    ("accuracy", "accuracy", ".1%"),
    ("bits_per_byte", "bits/byte", ".3f"),
    ("perplexity", "perplexity", ".1f"),
)


def named_metrics(event: Mapping[str, Any]) -> dict[str, str]:
    """The metrics of a validation, formatted, by name, most important first: {"BLEU": "31.2", "chrF": "55.0"}."""
    return {name: format(event[key], form) for key, name, form in METRICS if key in event}
