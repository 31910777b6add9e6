"""What a newcomer meets first: how long `import jumok` and `--help` take, and what `jumok demo` reaches.

python benchmarks/first_minutes.py            # rewrites first_minutes.md; about four minutes
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import describe_machine

PAGE = Path(__file__).with_suffix(".md")
ROUNDS = 11
DEMO_MINUTES = 4


def seconds(*command: str) -> float:
    """The median over some rounds of how long a command takes."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def demo() -> tuple[float, str]:
    """Minutes, and what it says of the test."""
    with tempfile.TemporaryDirectory() as directory:
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "jumok", "demo"], check=True, capture_output=True, text=True, cwd=directory
        )
    found = re.search(r"exactly right: (.*)", done.stdout)
    assert found is not None
    return (time.perf_counter() - started) / 60, found[1]


def main() -> None:
    empty = seconds("-c", "pass")
    importing = seconds("-c", "import jumok") - empty
    helping = seconds("-m", "jumok", "translate", "--help")
    minutes, result = demo()
    text = f"""# The first minutes

`python benchmarks/first_minutes.py` writes this page: medians of {ROUNDS} measurements, and one run of `jumok demo`.
{describe_machine()}

| what | measured | target |
|---|---|---|
| `import jumok`, in addition to starting Python ({empty * 1000:.0f} ms) | {importing * 1000:.0f} ms | < 100 ms |
| `jumok translate --help` | {helping * 1000:.0f} ms | < 500 ms |
| `jumok demo`, in total | {minutes:.1f} minutes | < {DEMO_MINUTES} minutes |
| held-out sentences translated exactly right after it | {result} | ≥ 95 % |
"""
    PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
