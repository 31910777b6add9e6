"""One line that says on what a figure was measured."""

from __future__ import annotations

import datetime
import os
import platform
from importlib.metadata import version
from pathlib import Path


def processor() -> str:
    """The processor's name as the system tells it, with what it can do that matters here."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    vectors = [name for name in ("avx2", "avx512f") if name in fields.get("flags", "").split()]
    return f"{fields.get('model name', platform.processor())} ({', '.join(vectors) or 'no AVX2'})"


def peak_memory(process: int | str = "self") -> float:
    """Megabytes a process has used at most. Not from getrusage: there a child begins with its parent's peak."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def describe_machine() -> str:
    """Processor, cores, memory, versions and date, in one sentence."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"Measured on {os.cpu_count()} cores of {processor()}, {memory:.0f} GB, {platform.system()}, "
        f"Python {platform.python_version()}, PyTorch {version('torch')}, {datetime.date.today().isoformat()}."
    )
