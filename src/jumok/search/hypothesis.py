"""What every search returns, whichever engine ran it. No torch here: engines without it speak of hypotheses too."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One possible output for one sentence."""

    ids: list[int]  # without <s> and </s>; a forced prefix is part of it
    score: float  # sum(log_probs) / len(log_probs) ** length_penalty: higher is better
    log_probs: list[float]  # one for every id, and the last one for </s>; empty if the engine does not say
    finished: bool  # False: it did not end by itself, but was ended at its length limit
