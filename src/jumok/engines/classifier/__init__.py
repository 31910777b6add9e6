"""Classifying texts."""
