"""What holds for every test of a recipe."""

import pytest


@pytest.fixture(autouse=True)
def _quick(quick_trainings: None) -> None:
    """Trainings that take no longer than their steps."""
