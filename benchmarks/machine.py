"""On what, when and at which commit a figure was measured."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path


def processor() -> str:
    """The processor's name as the system tells it, with what it can do that matters here."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    vectors = [name for name in ("avx2", "avx512f") if name in fields.get("flags", "").split()]
    # Virtual machines call all generations alike, and the same step may take twice as long on one as on another.
    generation = [f"family {fields['cpu family']}"] if "cpu family" in fields else []
    return f"{fields.get('model name', platform.processor())} ({', '.join([*generation, *(vectors or ['no AVX2'])])})"


def peak_memory(process: int | str = "self") -> float:
    """Megabytes a process has used at most. Not from getrusage: there a child begins with its parent's peak."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def current_commit() -> str:
    """The commit of this checkout, for example `commit 1a2b3c4`; says so if source files differ from it."""
    git = ["git", "-C", str(Path(__file__).parent)]
    found = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    if found.returncode:
        return "commit unknown: not a git checkout"
    source = ["status", "--porcelain", "--", ":/src", ":/benchmarks/*.py"]
    changed = subprocess.run([*git, *source], capture_output=True, text=True, check=True).stdout.strip()
    return f"commit {found.stdout.strip()}{' with uncommitted changes' if changed else ''}"


# Taken when a benchmark starts: the checkout may change while it runs.
MEASURED = f"{datetime.date.today().isoformat()}, {current_commit()}"


def describe_machine() -> str:
    """Processor, cores, memory, versions, date and commit, in one sentence."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"Measured on {os.cpu_count()} cores of {processor()}, {memory:.0f} GB, {platform.system()}, "
        f"Python {platform.python_version()}, PyTorch {version('torch')}, {MEASURED}."
    )
