"""Which task learns from given files, where several share a training command: `jumok train classifier` takes texts or
pictures."""

from jumok.data.examples import Paths
from jumok.data.reading.options import ReadingOptions
from jumok.data.source_files import require_files
from jumok.errors import InputError
from jumok.tasks import TASKS, Task, resolve, task_named


def task_for(train_command: str, files: Paths, options: ReadingOptions) -> Task:
    """The task that learns from these files. InputError if they are of different kinds."""
    require_files(files)
    sharing = [task for task in TASKS.values() if task.train_command == train_command]
    for task in sharing:
        if task.holds is None:
            continue
        found = [bool(resolve(task.holds)(path, options)) for path in files]
        if all(found):
            return task
        if any(found):
            one, other = files[found.index(True)], files[found.index(False)]
            raise InputError(f"{one} holds {task.inputs}, {other} does not. Give one kind.")
    return next(task for task in sharing if task.holds is None)


def require_files_for(name: str, files: Paths, options: ReadingOptions) -> None:
    """Raise InputError if the files are for another task than the named one."""
    task = task_named(name)
    if task_for(task.train_command, files, options) is not task:
        raise InputError(
            f"{files[0]}: holds no {task.inputs}, but this model classifies {task.inputs}. "
            f"Give {task.inputs} with labels."
        )
