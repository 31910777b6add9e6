"""Metrics of model outputs, a file a task."""
