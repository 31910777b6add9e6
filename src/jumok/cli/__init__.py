"""The command line: one file for each command. Slow imports happen when a command runs."""

from jumok.cli.app import main

__all__ = ["main"]
