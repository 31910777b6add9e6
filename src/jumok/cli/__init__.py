"""The command line: one file for each command. Slow imports happen when a command runs."""

import os


def main() -> None:
    """The command `jumok`. Ctrl-C ends it quietly, also while its modules are imported."""
    try:
        from jumok.cli.app import main as run_command

        run_command()
    except KeyboardInterrupt:
        os._exit(130)
