"""What every task's `certify` is given."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jumok.bundle import Bundle
from jumok.data.store import TokenStore
from jumok.engines.certificate import Certificate, ParityError, require_parity

MOST_PROBES = 500

Probes = Sequence[tuple[str, ...]]  # the inputs of each example: source and reference, or the one text


@dataclass(frozen=True)
class Export:
    """A converted model that is to be compared with the bundle it was made from."""

    bundle: Bundle
    directory: Path  # holds the CTranslate2 model
    quantization: str
    encoder: Any
    probes: Probes
    train: TokenStore | None = None  # the training examples, if they are still there

    @property
    def is_exact(self) -> bool:
        """Whether outputs must be equal but for rounding."""
        return self.quantization == "float32"

    def values(self, found: Certificate) -> dict[str, Any]:
        """The certificate as plain values; raises ParityError if an exact export differs."""
        if self.is_exact:
            require_parity(found)
        return asdict(found)

    def too_lossy(self, problem: str) -> ParityError:
        """The error for a model whose quantization changes its outputs too much."""
        return ParityError(
            f"Rounded to {self.quantization} the model {problem}. Nothing was exported; export it as float32."
        )
