"""The tables of docs/guarantees.md name tests that exist, in both languages the same ones."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "docs" / "guarantees.md", ROOT / "docs" / "ko" / "guarantees.md"]
ROW = re.compile(r"^\| (?!---|promise|약속)", re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def named_tests(page: Path) -> list[tuple[str, str]]:
    return NAMED.findall(page.read_text(encoding="utf-8"))


@cache
def decorators_of(path: str) -> dict[str, list[str]]:
    """The tests of a file and their decorators."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: [ast.unparse(decorator) for decorator in node.decorator_list] for node in functions}


@cache
def marks_of(path: str) -> str:
    """What a file says of all its tests: `pytestmark`."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return " ".join(line for line in map(ast.unparse, tree.body) if line.startswith("pytestmark"))


@pytest.mark.parametrize("page", PAGES, ids=["en", "ko"])
def test_every_promise_names_tests_that_exist(page: Path) -> None:
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if ROW.match(line)]
    assert len(rows) > 20
    assert all(NAMED.search(row) for row in rows)
    for path, name in named_tests(page):
        assert name in decorators_of(path), f"{path}::{name}"
        assert "pytest.mark.slow" not in decorators_of(path)[name], f"{path}::{name} is not part of the ordinary run"
        assert not re.search("slow|skip", marks_of(path)), f"{path} is not part of the ordinary run"
        assert not re.search("skip|xfail", " ".join(decorators_of(path)[name])), f"{path}::{name} is not always run"


def test_both_languages_promise_the_same() -> None:
    assert named_tests(PAGES[0]) == named_tests(PAGES[1])
