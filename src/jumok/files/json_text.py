"""JSON that is read strictly and written so that it reads back equal."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jumok.errors import UnreadableError

MAX_JSON_BYTES = 1 << 20
"""Small enough that even the worst JSON of this size, millions of empty lists, needs well under 100 MB once parsed."""


def parse_json_object(data: bytes, where: Path) -> dict[str, Any]:
    """Parse strictly: UTF-8, one object, no key twice, no NaN or infinity, no endless nesting."""
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_unique_keys, parse_constant=_finite, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise UnreadableError(where, f"is not valid JSON ({str(error) or 'nested too deeply'})") from error
    if not isinstance(value, dict):
        raise UnreadableError(where, f"holds a JSON {type(value).__name__}, an object is expected")
    return value


def format_json(value: Mapping[str, Any], *, limit: int = MAX_JSON_BYTES, indent: int | None = 1) -> bytes:
    """The JSON of a mapping, one that reads back equal: tuples, number keys, NaN and what is too long are refused."""
    data = (json.dumps(dict(value), indent=indent, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")
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
    """A value in an error message, not longer than a line."""
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"
