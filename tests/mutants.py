"""Mutation testing in minutes: mutmut makes the mutants, this file runs them. See MUTANTS.md.

    python tests/mutants.py src/jumok/search tests/search

Every test runs once, to know which functions it calls and how long it takes. Then each mutant gets a process of its
own, forked from this one, so that nothing is imported twice. It runs the tests that call the mutated function, the
quickest first, and ends with the first that fails. What no test notices is printed.
"""

import difflib
import gc
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pytest.reports import TestReport
from _pytest.runner import runtestprotocol
from _pytest.warnings import catch_warnings_for_item
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state

ROOT = Path(__file__).parent.parent
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "dist")
# Not --tb=long: formatting the failure of a mutant would take longer than most tests.
PYTEST = ["-q", "-n", "0", "-p", "no:cacheprovider", "--tb=native", "-m", "not slow"]


def mutate(copy: Path, sources: list[str]) -> dict[str, str]:
    """Write all mutants of the sources into a copy of the project: the name of each, and its difference."""
    mutants = {}
    for source in sources:
        for file in [copy / source] if source.endswith(".py") else sorted((copy / source).rglob("*.py")):
            mutated = mutate_file_contents(str(file), file.read_text())
            file.write_text(mutated.code)
            lines = mutated.code.splitlines()
            spans = mutated.line_span_by_function_name
            module = ".".join(file.relative_to(copy / "src").with_suffix("").parts)
            for name in mutated.mutant_names:
                original = f"{function_of(name)}__mutmut_orig"
                texts = [
                    [line.replace(each, "f") for line in lines[spans[each].start - 1 : spans[each].end]]
                    for each in (original, name)
                ]
                changes = difflib.unified_diff(*texts, lineterm="", n=0)
                mutants[f"{module}.{name}"] = "\n".join(line for line in changes if line[:2] not in ("--", "++", "@@"))
    return mutants


def function_of(mutant: str) -> str:
    return mutant[: mutant.rindex("__mutmut_")]


def run_test(item: pytest.Item, following: pytest.Item | None) -> list[TestReport]:
    """Run one test; warnings are errors. Fixtures that the following test needs, too, stay."""
    with catch_warnings_for_item(item.config, item.ihook, when="runtest", item=item):
        return runtestprotocol(item, log=False, nextitem=following)


class Driver:
    """A plugin that runs the collected tests for every mutant, instead of running them once."""

    def __init__(self, mutants: dict[str, str]) -> None:
        self.mutants = mutants
        self.seconds: dict[pytest.Item, float] = {}
        self.calling: dict[str, list[pytest.Item]] = defaultdict(list)  # the tests that call a function
        self.noticed: dict[str, set[pytest.Item]] = defaultdict(set)  # those that noticed one of its mutants

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.measure(session.items)
        gc.freeze()  # what is shared with the children is not written to
        survivors = [mutant for mutant in self.mutants if not self.is_noticed(mutant)]
        for mutant in survivors:
            print(f"{mutant}\n{self.mutants[mutant]}")
        print(f"{len(self.mutants)} mutants, {len(survivors)} not noticed")
        return True

    def measure(self, items: list[pytest.Item]) -> None:
        """Run every test alone, so that fixtures are built for each, and note the functions that it calls."""
        set_mutant_under_test("stats")
        for item in items:
            state()._stats.clear()
            start = time.process_time()
            reports = run_test(item, None)
            self.seconds[item] = time.process_time() - start
            if all(report.passed for report in reports):
                for function in state()._stats:
                    self.calling[function].append(item)

    def is_noticed(self, mutant: str) -> bool:
        """Whether a test fails, or does not end, with this mutant."""
        function = function_of(mutant)
        tests = sorted(
            self.calling[function], key=lambda item: (item not in self.noticed[function], self.seconds[item])
        )
        limit = 10 + 4 * round(sum(self.seconds[item] for item in tests))
        failed = run_forked(lambda: run_until_one_fails(mutant, tests), limit)
        if failed is not None and failed < len(tests) and self.seconds[tests[failed]] < 0.3:
            self.noticed[function].add(tests[failed])
        return failed is not None


def run_until_one_fails(mutant: str, tests: list[pytest.Item]) -> Iterator[None]:
    """Yields after each test that passes with the mutant."""
    set_mutant_under_test(mutant)
    for item, following in zip(tests, [*tests[1:], None], strict=False):
        if any(report.failed for report in run_test(item, following)):
            os._exit(1)
        yield


def run_forked(run: Callable[[], Iterator[None]], limit: int) -> int | None:
    """How often `run` yielded before its process failed, or None if it ended. It has so many seconds of processor time,
    and ten times as many on the clock."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        for descriptor in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        for _ in run():
            os.write(writer, b".")
        os._exit(0)
    os.close(writer)
    ends = time.monotonic() + 10 * limit
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < ends:
        time.sleep(0.005)
    if ended[0] == 0:
        os.killpg(child, signal.SIGKILL)
        ended = os.waitpid(child, 0)
    with open(reader, "rb") as passed:
        count = len(passed.read())
    return None if ended[1] == 0 else count


def main() -> None:
    sources = [argument for argument in sys.argv[1:] if argument.startswith("src/")]
    tests = [argument for argument in sys.argv[1:] if argument not in sources]
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(shutil.copytree(ROOT, Path(directory) / "jumok", ignore=LEFT_OUT))
        mutants = mutate(copy, sources)
        os.chdir(copy)
        sys.path.insert(0, str(copy / "src"))
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # for processes that tests start
        sys.exit(pytest.main([*PYTEST, *tests], plugins=[Driver(mutants)]))


if __name__ == "__main__":
    main()
