"""jumok train: one command for each task of the table."""

from jumok.cli.lazy_group import LazyGroup
from jumok.tasks import TASKS

command = LazyGroup(
    lambda: {task.train_command: task.command for task in TASKS.values() if task.command},
    name="train",
    help="Train a model.",
)
