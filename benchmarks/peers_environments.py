"""A virtual environment for each peer, with the versions its requirements file in benchmarks/peers/ pins."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path

HERE = Path(__file__).parent / "peers"
PLACE = (
    Path(__file__).parents[1] / ".peers"
)  # where environments, scratch files and results are, if nothing else is said
# Before everything else and with what it needs itself: a peer may ask for a version that is no longer there.
TORCH = "torch==2.13.0"
OWN = ("jumok", "ctranslate2")  # run with the interpreter of this process
WITHOUT_TORCH = ("marian",)


def interpreter(name: str, directory: Path) -> Path:
    """The Python that runs a contender, made first if it is not there."""
    if name in OWN:
        return Path(sys.executable)
    environment = directory / name
    requirements = HERE / f"{name}.txt"
    ready, wanted = environment / ".ready", sha256(requirements.read_bytes()).hexdigest()
    python = environment / "bin" / "python"
    if not ready.exists() or ready.read_text(encoding="utf-8") != wanted:
        print(f"{name}: making its environment, once …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if name not in WITHOUT_TORCH:
            subprocess.run([*install, TORCH], check=True)
        # Everything stands in the file, so that no resolver has to agree to what the peers ask of torch.
        subprocess.run([*install, "--no-deps", "--requirement", str(requirements)], check=True)
        ready.write_text(wanted, encoding="utf-8")
    return python


def installed_size(name: str, directory: Path) -> int:
    """Bytes of what must be installed to translate."""
    if name in OWN:
        roots = ["jumok"] if name == "jumok" else ["ctranslate2", "sentencepiece"]
        return sum(_distribution_size(package) for package in _with_needed(roots))
    packages = next((directory / name / "lib").glob("python*")) / "site-packages"
    return sum(path.stat().st_size for path in packages.rglob("*") if path.is_file() and path.suffix != ".pyc")


def _with_needed(roots: list[str]) -> set[str]:
    from packaging.requirements import Requirement

    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        needed = [Requirement(line) for line in distribution(name).requires or []]
        waiting += [each.name.lower() for each in needed if not each.marker or each.marker.evaluate({"extra": ""})]
    return found


def _distribution_size(name: str) -> int:
    places = [Path(str(file.locate())) for file in distribution(name).files or []]
    return sum(place.stat().st_size for place in places if place.is_file() and place.suffix != ".pyc")
