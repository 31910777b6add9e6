"""What was measured of the peers, kept as a file, so that the same command resumes where it stopped."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machine import MEASURED
from peers_environments import installed_size, interpreter

Measure = dict[str, Any]
SHOWN = ("rate", "seconds", "bleu", "failed")


class PeerError(Exception):
    """A contender did not do it; the reason."""


class Results:
    """What was measured, kept as a file after every measurement. What failed is tried again the next time."""

    def __init__(self, path: Path, settings: Measure, *, fresh: bool) -> None:
        self.path = path
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() and not fresh else {}
        if kept and kept["settings"] != settings:
            raise SystemExit(f"{path}: was measured otherwise ({kept['settings']}). Give the same, or --fresh.")
        self.kept: Measure = {"settings": settings, "measured": {}, **kept}
        self.measured: dict[str, Measure] = {
            key: answer for key, answer in self.kept["measured"].items() if "failed" not in answer
        }
        if self.measured:
            print(f"{path}: {len(self.measured)} measurements are there already; --fresh measures them again.")
        self.kept["measured"] = self.measured

    def get(self, key: str, measure: Callable[[], Measure]) -> Measure:
        """The kept answer, or a new one."""
        if key not in self.measured:
            started = time.perf_counter()
            try:
                self.measured[key] = {**measure(), "measured": MEASURED}
            except PeerError as error:
                self.measured[key] = {"failed": str(error)}
            shown = {name: value for name, value in self.measured[key].items() if name in SHOWN}
            print(f"{key} {shown} ({time.perf_counter() - started:.0f} s in all)", flush=True)
            self.save()
        return self.measured[key]

    def save(self) -> None:
        self.path.write_text(json.dumps(self.kept, indent=1) + "\n", encoding="utf-8")

    def with_environment(self, names: list[str], place: Path) -> list[str]:
        """The contenders whose environment is there or could be made."""
        for name in names:
            self.get(f"environment/{name}", lambda name=name: environment(name, place))  # type: ignore[misc]
        return [name for name in names if "failed" not in self.measured[f"environment/{name}"]]


def environment(name: str, place: Path) -> Measure:
    """Versions of everything that is installed, and bytes."""
    try:
        python = interpreter(name, place)
    except subprocess.CalledProcessError as error:
        raise PeerError(f"its environment cannot be made: {' '.join(error.cmd[-3:])} failed") from error
    code = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    versions = json.loads(subprocess.run([python, "-c", code], check=True, stdout=subprocess.PIPE).stdout)
    return {"versions": versions, "installed": installed_size(name, place)}


def last_error(log: Path) -> str:
    """The last line that speaks of an error, or the last one."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line]
    return (errors or lines or ["it ended without a word"])[-1][:200]
