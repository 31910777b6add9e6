"""One random stream for each purpose, so that no part of the program changes the numbers another part draws."""

import json
from hashlib import sha256

import numpy as np


def derive_seed(seed: int, purpose: str, *numbers: int) -> int:
    """Return a seed (63 bits) for one purpose, such as `derive_seed(seed, "dropout", epoch, step, rank)`. The same
    arguments give the same seed on every machine and in every version; others, or another order, an unrelated one."""
    # As JSON, because different arguments never have the same text.
    text = json.dumps([int(seed), purpose, *(int(number) for number in numbers)])
    return int.from_bytes(sha256(text.encode()).digest()[:8], "little") >> 1


def bit_stream(seed: int, purpose: str, *numbers: int) -> np.random.Philox:
    """Return a generator of raw bits (`.random_raw(n)`), which unlike NumPy's distributions never change."""
    return np.random.Philox(key=derive_seed(seed, purpose, *numbers))
