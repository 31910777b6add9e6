"""How a painter draws."""

from dataclasses import dataclass
from typing import TypedDict

from jumok.engines.options import Sampling, require_integers, require_number


@dataclass(frozen=True)
class PaintingOptions(Sampling):
    """How a painter draws pictures of a caption."""

    n: int = 1  # pictures of each caption
    guidance: float = 2.0  # how much the caption counts: 0 not at all, 1 as in training, more is stricter

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integers(self, 1, "n")
        require_number(self, "guidance", 0, 100)


class PaintingKeywords(TypedDict, total=False):
    """The fields of `PaintingOptions` as keyword arguments, for editors and type checkers."""

    n: int
    guidance: float
    temperature: float
    top_k: int
    top_p: float
    seed: int
