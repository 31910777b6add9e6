"""Links of docs/attention.md to lines of the code: [`name`](../src/jumok/…/file.py#L1).

python tests/paper_links.py     corrects the line numbers in both languages, after code has moved
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAPERS = ("docs/attention.md", "docs/ko/attention.md")
LINK = re.compile(r"\[`([\w.]+)`\]\(((?:\.\./)+)(src/jumok/[\w/]+\.py)#L(\d+)\)")


def line_of(name: str, path: Path) -> int:
    """The line of a file on which a function, a class or a method ("Class.method") is defined."""
    node: ast.AST = ast.parse(path.read_text(encoding="utf-8"))
    for part in name.split("."):
        inside = {child.name: child for child in ast.iter_child_nodes(node) if isinstance(child, _DEFINITIONS)}
        if part not in inside:
            raise LookupError(f"{path.relative_to(ROOT)} does not define {name}. Link to where it is now.")
        node = inside[part]
    return int(node.lineno)  # type: ignore[attr-defined]


def corrected(text: str) -> str:
    """A document with the lines of its links as they are in the code now."""

    def correct(link: re.Match[str]) -> str:
        name, up, path = link.group(1, 2, 3)
        return f"[`{name}`]({up}{path}#L{line_of(name, ROOT / path)})"

    return LINK.sub(correct, text)


_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)

if __name__ == "__main__":
    for document in PAPERS:
        file = ROOT / document
        file.write_text(corrected(file.read_text(encoding="utf-8")), encoding="utf-8")
