"""The result of every search, whichever engine ran it. No torch here."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One possible output for one sentence."""

    ids: list[int]  # without <s> and </s>; a forced prefix is part of it
    score: float  # sum(log_probs) / len(log_probs) ** length_penalty: higher is better; NaN if it was not asked for
    log_probs: list[float]  # one for every id, and the last one for </s>; empty if the engine does not return them
    finished: bool  # False: cut at its length limit
