"""Translating texts."""
