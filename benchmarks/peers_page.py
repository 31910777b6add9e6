"""benchmarks/peers.md and benchmarks/peers.png from what benchmarks/peers.py measured."""
from pathlib import Path
from typing import Any

def write_page(path: Path, kept: dict[str, Any]) -> None:
    pass
