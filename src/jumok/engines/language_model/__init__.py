"""Continuing texts."""
