"""Strict JSON: invalid input is refused, and what is written reads back equal."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jumok.errors import UnreadableError

MAX_JSON_BYTES = 1 << 20
"""Even the worst JSON of this size, hundreds of thousands of empty lists, takes well under 100 MB once parsed."""


def parse_json_object(data: bytes, where: Path) -> dict[str, Any]:
    """Parse one UTF-8 object. Raise UnreadableError for duplicate keys, NaN, infinity and excessive nesting."""
    try:
        value = json.loads(data.decode(), object_pairs_hook=_unique_keys, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(where, f"is not valid JSON ({str(error) or 'nested too deeply'})") from error
    if not isinstance(value, dict):
        raise UnreadableError(where, f"holds a JSON {type(value).__name__}, an object is expected")
    return value


def format_json(value: Mapping[str, Any], *, limit: int = MAX_JSON_BYTES, indent: int | None = 1) -> bytes:
    """Return a mapping as JSON that reads back equal. Raise for tuples, keys that are no strings, NaN and > `limit`."""
    data = (json.dumps(dict(value), indent=indent, ensure_ascii=False, allow_nan=False) + "\n").encode(
        "utf-8",
        "backslashreplace",  # a file's name need not be Unicode: its lone surrogates are escaped
    )
    if json.loads(data) != dict(value):
        raise TypeError(f"JSON would change this value (a tuple, or a key that is no string?): {shown(value)}")
    if len(data) > limit:
        raise ValueError(f"{len(data):,} bytes of JSON, at most {limit:,} can be read again")
    return data


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {shown(key)} appears twice")
        result[key] = value
    return result


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{shown(text)} is not a finite number")
    return number


def shown(value: object) -> str:
    """Return the `repr` of a value, cut to one line for an error message."""
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"
