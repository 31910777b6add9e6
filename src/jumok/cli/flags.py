"""Messages from below the command line name Python arguments; here they become command-line flags."""

import ast
import re
import shlex
from typing import Any

_ARGUMENT = re.compile(r"`([a-z_]+)=([^`]*)`")  # `fresh=True`, `languages=("en", "ko")`, `out=`
_SHORT = {"out": "-o", "model": "-m"}


def with_flags(message: str) -> str:
    """Replace every backticked argument by its flag: `fresh=True` → --fresh, `engine="torch"` → --engine torch."""
    return _ARGUMENT.sub(lambda found: _flag(found[1], found[2]), message)


def _flag(name: str, value: str) -> str:
    try:
        literal: Any = ast.literal_eval(value)
    except (ValueError, SyntaxError):  # a value that is left open, or a placeholder such as N
        literal = None
    if name == "settings":
        return " ".join(f"--set {setting}={each}" for setting, each in dict(literal or {}).items()) or "--set"
    flag = _SHORT.get(name, f"--{name.replace('_', '-')}")
    if literal is None:
        return f"{flag} {value}".rstrip()
    parts = literal if isinstance(literal, tuple) else () if literal is True else (literal,)
    return shlex.join([flag, *map(str, parts)])
