"""One random stream per purpose, so that no part of the program disturbs the numbers another part draws."""

from __future__ import annotations

import json
from hashlib import sha256

import numpy as np


def derive_seed(seed: int, purpose: str, *numbers: int) -> int:
    """A seed of 63 bits for one purpose, e.g. `derive_seed(seed, "dropout", epoch, step, rank)`.

    The same arguments give the same seed on every machine and in every version; any other argument, order or count of
    them gives an unrelated one. 63 bits, so that it fits a signed 64-bit integer.
    """
    # JSON keeps the arguments apart: no two different calls have the same text.
    text = json.dumps([int(seed), purpose, *(int(number) for number in numbers)])
    return int.from_bytes(sha256(text.encode()).digest()[:8], "little") >> 1


def bit_stream(seed: int, purpose: str, *numbers: int) -> np.random.Philox:
    """Raw random bits (`.random_raw(n)`): the same in every NumPy version, as its distributions are not."""
    return np.random.Philox(key=derive_seed(seed, purpose, *numbers))
