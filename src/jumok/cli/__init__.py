"""The command line. One file a command; what is heavy to import is imported when a command runs."""

from jumok.cli.app import main

__all__ = ["main"]
