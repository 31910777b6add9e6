"""A command where PyTorch is not installed."""

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
PROGRAM = (
    "import sys\n"
    "sys.modules.update(dict.fromkeys(('torch', 'jaxtyping', 'sacrebleu')))\n"  # importing them fails from now on
    "from jumok.cli.app import run\n"
    "sys.exit(run(sys.argv[1:]))"
)


def run_without_torch(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `jumok` with these arguments in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    environment = {"PYTHONPATH": str(SOURCE)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)
