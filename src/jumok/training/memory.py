"""Memory that training uses again and again should not be given back to the system in between.

A step makes and frees hundreds of tensors. The C library returns large ones to the system at once, and the next step
has them cleared and mapped anew, page by page: with a small model 40 % of all time.
"""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # glibc's names for these numbers: M_TRIM_THRESHOLD, M_MMAP_MAX


def keep_freed_memory() -> bool:
    """Asks the C library, for this process; False where it is not glibc, and nothing changes."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, 2**31 - 1))
