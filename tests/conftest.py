"""What holds for every test: one thread, shapes checked at run time, the same examples in every run.

This file imports no torch, so that a test may assert that something runs without it.
"""

import gc
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

from jumok.system import usable_cores

# Tests and modules are not garbage: none is looked for until all are imported. See pytest_collection_finish.
gc.disable()
# What is compiled is kept, whatever the environment says: pytest would otherwise compile all tests anew in every run,
# and each process that a test starts the whole package.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Read by torch when it is first imported, here and in processes that tests start. With one thread sums are always taken
# in the same order, and parallel test workers do not fight over the cores.
os.environ["OMP_NUM_THREADS"] = "1"
# PyTorch's kernels for newer instructions are not used: with them "auto" would choose another number format on some
# machines. What is computed in that format asks for it.
os.environ["ATEN_CPU_CAPABILITY"] = "avx2"
# Where a test asks for two threads, they do not wait for each other by spinning on cores that others need.
os.environ["OMP_WAIT_POLICY"] = "passive"

# `stable` draws the same examples every time: a red build is the change's fault. New examples are looked for by
# `pytest --hypothesis-profile=explore`. Neither may fail because the machine is busy.
settings.register_profile(
    "stable", deadline=None, derandomize=True, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", settings.get_profile("stable"), derandomize=False, max_examples=500)
settings.load_profile("stable")

MEMORY_FOR_FILES = 8 << 30  # bytes that must be free; the files of all tests take 0.6 GB
MODEL = Path(__file__).parent.parent / "src" / "jumok" / "model"

# jaxtyping comes with the extra `train`; without it there is no model to check either.
if find_spec("jaxtyping") is not None:
    import jaxtyping

    # Not config.py: it has no shapes, and what it says about wrong values is for users to read and for tests to check.
    jaxtyping.install_import_hook(
        [f"jumok.model.{file.stem}" for file in MODEL.glob("*.py") if file.stem not in ("__init__", "config")],
        "beartype.beartype",
    )


# The files that take longest, in this order. Begun first, they leave no core idle at the end: `make test` gives a whole
# file to one worker, and the next file to the worker that is ready first.
LONGEST = (
    "cli/test_processes.py",
    "lens/test_browser.py",
    "cli/test_devices.py",
    "recipes/test_translator.py",
    "test_every_system.py",
    "recipes/certifying/test_certificate.py",
    "training/test_checkpoint.py",
    "cli/test_kills.py",
    "cli/test_train_command.py",
    "cli/test_started_processes.py",
    "training/test_run_directory.py",
    "cli/test_other_tasks.py",
    "cli/test_demo_command.py",
    "training/test_trainer.py",
    "data/reading/test_pairs.py",
    "engines/language_model/test_ctranslate2.py",
    "test_readme.py",
    "engines/translator/test_ctranslate2.py",
    "test_toy_task.py",
    "engines/test_forking.py",
    "model/test_task_models.py",
    "training/test_length.py",
    "lens/test_traces.py",
    "test_paper.py",
)


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Keep the files of tests in memory, if there is plenty: they need not outlive the machine. Full and failing disks
    are simulated, or mounted by a test."""
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > MEMORY_FOR_FILES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: tests of the browser and of several processes wait for much of their time."""
    return usable_cores() + 1


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Each parallel worker begins to import the tests at another place: what one has compiled, the others need not."""
    report = yield
    if collector.path == Path(__file__).parent and report.passed:
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        first = len(report.result) * worker // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        report.result = [*report.result[first:], *report.result[:first]]
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of these files first, and the others in an order that is the same for all workers."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (places.get(item.path, len(places)), item.path))


def pytest_collection_finish() -> None:
    """Modules and tests live as long as the process: collections of garbage need not look at them again. Most of what
    tests leave is freed without a collection, so one is made after more new objects than the usual 700."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_disks() -> Iterator[None]:
    """Thousands of small files are synced here, which takes milliseconds each and makes a difference only if the power
    fails. That they are synced is seen by tests that replace this function or trace system calls of other processes."""
    with pytest.MonkeyPatch.context() as patched:
        if not os.environ.get("JUMOK_TEST_SYSTEM"):  # those of Windows are refused for some files
            patched.setattr(os, "fsync", lambda descriptor: os.fstat(descriptor) and None)
        yield


@pytest.fixture
def without_shape_checks() -> Iterator[None]:
    """The model as users run it: without the run-time checks of shapes, which come before its own errors."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(scope="session")
def build_once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[..., Path]:
    """`build_once(name, build)`: a directory filled by `build(directory)` once for all parallel workers.

    Nobody may change it afterwards; a test that must, copies it.
    """
    root = tmp_path_factory.getbasetemp()
    root = root if worker_id == "master" else root.parent  # a worker's directory is in that of the whole run

    def build_directory(name: str, build: Callable[[Path], None]) -> Path:
        directory, done = root / name, root / f"{name}.done"
        with FileLock(root / f"{name}.lock"):
            if not done.exists():
                directory.mkdir()
                build(directory)
                done.touch()
        return directory

    return build_directory


@pytest.fixture
def quick_trainings(monkeypatch: pytest.MonkeyPatch, without_shape_checks: None) -> None:
    """Trainings in this process measure the machine's speed for a tenth of a second instead of three seconds, compare
    their exports on short texts only, and check no shapes (the models that fixtures of a session train do)."""
    monkeypatch.setattr("jumok.training.auto.LEAST_SECONDS", 0.1)
    monkeypatch.setattr("jumok.recipes.certifying.certificate.LONGEST_PROBE", 100)
