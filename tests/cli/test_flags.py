"""Messages from below the command line: Python arguments become flags."""

import ast
import re
from pathlib import Path

import pytest
from commands import SOURCE, Jumok

from jumok.cli.flags import with_flags
from jumok.errors import ConfigError


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Give `fresh=True` to start again.", "Give --fresh to start again."),
        ("or `continue_with_changes=True`.", "or --continue-with-changes."),
        ("Choose another directory with `out=`.", "Choose another directory with -o."),
        ('`out="my run"`', "-o 'my run'"),
        ("Give `model=` or `probe=`.", "Give -m or --probe."),
        ('say which: `languages=("en", "ko")`', "say which: --languages en ko"),
        ('Leave out `engine="torch"` or `fast=True`.', "Leave out --engine torch or --fast."),
        ("Add `processes=N`.", "Add --processes N."),
        ("Give `steps=`, `epochs=` or `minutes=20`.", "Give --steps, --epochs or --minutes 20."),
        ('for example `settings={"batch.tokens": 2048}`', "for example --set batch.tokens=2048"),
        # Not arguments: settings, commands and plain text stay as they are.
        ("optimizer.lr=0.1 cannot be used", "optimizer.lr=0.1 cannot be used"),
        ("`jumok check` shows more, beam=0", "`jumok check` shows more, beam=0"),
    ],
)
def test_arguments_become_flags(message: str, shown: str) -> None:
    assert with_flags(message) == shown


def test_an_error_of_a_command_names_flags(jumok: Jumok, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConfigError('Leave out `engine="torch"`.')

    monkeypatch.setattr("jumok.data.checking.check.check_pairs", refuse)
    ended = jumok("check", "a", "b")
    assert (ended.code, ended.err) == (2, "jumok: Leave out --engine torch.\n")
    with pytest.raises(ConfigError, match="`engine="):
        refuse(Path())


def literals(source: str) -> list[str]:
    """The strings of a module that are not docstrings."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and has_doc(node)}
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings]
    return [node.value for node in constants if isinstance(node.value, str)]


def has_doc(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(node) is not None


def test_no_message_below_the_command_line_names_a_flag() -> None:
    files = [file for file in (SOURCE / "jumok").rglob("*.py") if "cli" not in file.parts]
    assert len(files) > 100
    commands = re.compile(r"(jumok|pip) [a-z]+ .*")  # a whole command may be named
    found = [
        f"{file.relative_to(SOURCE)}: {text}"
        for file in files
        for text in literals(file.read_text(encoding="utf-8"))
        if re.search(r"(^|[\s(])(--[a-z]{2,}|-[mo]\b)", commands.sub("", text))
    ]
    assert not found
