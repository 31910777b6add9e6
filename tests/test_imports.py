"""The rules of the source tree that no type checker knows: who may import whom, file sizes, docstrings, import time."""

import ast
import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "jumok"
SOURCES = {file: file.read_text(encoding="utf-8") for file in sorted(SOURCE.rglob("*.py"))}

# A part imports only parts of lower levels, and `errors`. Parts of one level do not see each other.
LEVELS = {
    "model": 0,
    "tokenizer": 0,
    "errors": 0,
    "files": 0,
    "pictures": 0,
    "seeds": 0,
    "system": 0,
    "tasks": 0,
    "bundle": 1,
    "search": 2,
    "data": 2,
    "demo": 2,
    "metrics": 2,
    "training": 3,
    "display": 3,
    "lens": 3,
    "engines": 3,
    "serving": 4,
    "recipes": 4,
    "cli": 5,
    "__main__": 6,
}
# Parts of one level that may see another of it.
# (The table of tasks holds references as strings; it says which config belongs to a task.)
NEIGHBOURS = {
    "demo": {"data"},
    "metrics": {"data"},
    "model": {"tasks"},
    "files": {"system"},
    "lens": {"engines", "training"},
}
MODEL_MAY_USE = {"torch", "numpy", "jaxtyping"}  # and the standard library


def module_name(file: Path) -> str:
    """jumok.model.masks for src/jumok/model/masks.py, jumok.model for its __init__.py."""
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: str, module: str, is_package: bool) -> Iterator[tuple[str, int]]:
    """Every module that is imported, with its line: at the top, inside functions, for types only, or by name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            if base == "jumok":  # `from jumok import model` imports a part, `from jumok import __version__` does not
                yield from (
                    (f"jumok.{alias.name}" if alias.name in LEVELS else base, node.lineno) for alias in node.names
                )
            else:
                yield base, node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from ((str(name.value), node.lineno) for name in node.args[:1] if isinstance(name, ast.Constant))


def part_of(module: str) -> str:
    """The part of Jumok a module belongs to: `data` for jumok.data.reading.lines; nothing for jumok itself."""
    return module.split(".")[1] if "." in module else ""


def breaches(source: str, module: str, is_package: bool = False) -> list[str]:
    """Every import of `source` that goes up or sideways, and every foreign package the model should not know."""
    importer, found = part_of(module), []
    if importer and importer not in LEVELS:
        return [f"{module}: has no level. Give it one in the table."]
    for imported, line in imports(source, module, is_package):
        package, part = imported.split(".")[0], part_of(imported)
        if package != "jumok":
            if importer == "model" and package not in MODEL_MAY_USE | sys.stdlib_module_names:
                found.append(f"{module}:{line} imports {package}, which the model must not know")
        elif part in ("", importer, "errors") or not importer:
            continue  # the package itself, a file of the same part, the errors; and jumok/__init__.py sees everything
        elif part in NEIGHBOURS.get(importer, ()):
            continue
        elif LEVELS.get(part, 99) >= LEVELS[importer]:
            found.append(f"{module}:{line} imports {imported}, which is not below it")
    return found


def test_imports_go_downwards() -> None:
    found = [breaches(text, module_name(file), file.name == "__init__.py") for file, text in SOURCES.items()]
    assert list(itertools.chain.from_iterable(found)) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("jumok.data.reading.lines", "import jumok.training.trainer"),  # upwards
        ("jumok.data.reading.lines", "from jumok.search.beam import beam"),  # sideways
        ("jumok.data.reading.lines", "from jumok import cli"),  # through the package
        ("jumok.data.reading.lines", "def late():\n    from jumok.recipes import train"),  # inside a function
        ("jumok.data.reading.lines", "if TYPE_CHECKING:\n    from jumok.engines import engine"),  # for types only
        ("jumok.data.reading.lines", "from ...training import trainer"),  # relative
        ("jumok.data.reading.lines", "from ... import cli"),
        ("jumok.data.reading.lines", "importlib.import_module('jumok.cli')"),  # by name
        ("jumok.bundle", "import jumok.data"),
        ("jumok.tokenizer", "from jumok.model.masks import PAD"),  # level 0 sees errors only
        ("jumok.model.masks", "from jumok.seeds import derive_seed"),
        ("jumok.model.masks", "import safetensors"),
        ("jumok.model.masks", "def late():\n    import sacrebleu.metrics"),
        ("jumok.lens.trace", "from jumok.unheard_of import x"),
        ("jumok.unheard_of", "import json"),
    ],
)
def test_the_checker_sees_a_breach(module: str, source: str) -> None:
    assert len(breaches(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("jumok.cli.train", "from jumok.recipes import train\nfrom jumok.data.reading import lines\nimport click"),
        (
            "jumok.model.masks",
            "import torch\nfrom numpy import array\nimport math\nfrom jumok.errors import ShapeError",
        ),
        ("jumok.model.masks", "from jumok.model.attention import Attend\nfrom .cache import KeyValues"),
        ("jumok.data.reading.lines", "import numpy\nfrom jumok import __version__\nfrom jumok.tokenizer import PAD"),
        ("jumok", "def __getattr__(name):\n    from jumok.recipes import train"),
    ],
)
def test_the_checker_allows_what_is_allowed(module: str, source: str) -> None:
    assert not breaches(source, module)


def test_relative_imports_are_resolved() -> None:
    assert [name for name, _ in imports("from . import cache", "jumok.model", is_package=True)] == ["jumok.model"]
    assert [name for name, _ in imports("from .cache import x", "jumok.model.masks", False)] == ["jumok.model.cache"]


def test_importing_jumok_is_quick_and_brings_no_torch() -> None:
    """In a few times the processor time that Python itself takes to start, however busy the machine is."""
    program = (
        "import sys, time; start = time.process_time(); import jumok; seconds = time.process_time() - start; "
        "print(seconds / start, *(name for name in ('torch', 'jaxtyping', 'numpy') if name in sys.modules))"
    )
    ratios = []
    for _ in range(3):
        run = subprocess.run(
            [sys.executable, "-c", program], cwd=SOURCE.parent, capture_output=True, text=True, check=True
        )
        first, *heavy = run.stdout.split()
        assert not heavy
        ratios.append(float(first))
    assert min(ratios) < 5


def test_model_config_needs_no_torch() -> None:
    program = "import sys; import jumok.model.config; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], cwd=SOURCE.parent, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_a_model_file_has_at_most_250_lines() -> None:
    lines = {module_name(file): len(text.splitlines()) for file, text in SOURCES.items()}
    models = {name: count for name, count in lines.items() if part_of(name) == "model"}
    assert "jumok.model.attention" in models
    assert {name: count for name, count in models.items() if count > 250} == {}


def undocumented(source: str) -> list[str]:
    """Public classes and functions without a docstring, and "the file". Methods may speak through their class, and the
    signatures of an overloaded function through its implementation."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse(source)
    public = [node for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]
    implemented = [node for node in public if "overload" not in map(ast.unparse, node.decorator_list)]
    missing = [node.name for node in implemented if not ast.get_docstring(node)]
    return missing if ast.get_docstring(tree) or not tree.body else ["the file", *missing]


def test_files_and_public_names_have_docstrings() -> None:
    missing = {module_name(file): undocumented(text) for file, text in SOURCES.items()}
    assert {name: names for name, names in missing.items() if names} == {}


def test_a_missing_docstring_is_seen() -> None:
    source = "class A:\n    def b(self): ...\nclass C:\n    '''Yes.'''\ndef _d(): ...\ndef e(): ...\nasync def f(): ..."
    source += "\n@overload\ndef g(): ...\ndef g(): '''Yes.'''"
    assert undocumented(source) == ["the file", "A", "e", "f"]
    assert undocumented("") == undocumented("'''Yes.'''\nx = 1") == []
