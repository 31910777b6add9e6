"""Jumok: the Transformer of "Attention Is All You Need" as software. Importing it is quick and imports no torch."""

from jumok.errors import JumokError

__version__ = "0.1.0"
__all__ = ["JumokError", "__version__"]
