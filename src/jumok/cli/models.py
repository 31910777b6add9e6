"""Loading the model of a command."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jumok.engines.loading import WrongTaskError
from jumok.errors import BundleError


@contextmanager
def other_command_named(model: Path) -> Iterator[None]:
    """Context in which a model of another task is an error that names the command for it."""
    try:
        yield
    except WrongTaskError as error:
        command = error.task.usage.format(run=model, text="TEXT").split("| ")[-1]
        raise BundleError(f"{error} Use: {command}") from error
