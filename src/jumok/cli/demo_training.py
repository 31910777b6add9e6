"""What the demos share: write data, train on it, and name the run in commands to try."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from jumok.cli.options import say
from jumok.cli.panel import open_display
from jumok.cli.training import train_with_display
from jumok.errors import InputError, counted


@dataclass(frozen=True)
class DemoTraining:
    """A training on built-in data in a directory."""

    directory: Path
    minutes: float
    fresh: bool
    continue_with_changes: bool
    device: str = "auto"
    precision: str = "auto"

    @property
    def run(self) -> Path:
        """The run directory."""
        return self.directory / "run"

    @property
    def quoted_run(self) -> str:
        """The run directory as a word of a shell command."""
        return shlex.quote(str(self.run))

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a data file."""
        path = self.directory / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise InputError(
                f"{path}: cannot be written ({error.strerror}). Choose another place with --directory."
            ) from error
        return path

    def train(self, task: str, *data: Path, settings: dict[str, Any], valid: list[Path] | None = None) -> None:
        """Train and show the progress; exits if the training is stopped."""
        print(f"2. Training for about {counted(self.minutes, 'minute', form='g')} → {self.run}")
        arguments = {"fresh": self.fresh, "continue_with_changes": self.continue_with_changes, "valid": valid}
        settings = {**settings, "stop.minutes": self.minutes, "device": self.device, "precision": self.precision}
        with open_display("jumok demo") as display:
            code, result = train_with_display(display, task, *data, out=self.run, settings=settings, **arguments)
        if result is None:
            without = " without --fresh" if self.fresh else ""
            say(f"Stopped; everything so far is saved. The same command{without} continues.")
            raise click.exceptions.Exit(code)
