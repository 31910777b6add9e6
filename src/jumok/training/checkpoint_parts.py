"""A process that holds a part of every weight reads only that part of a checkpoint, and verifies what it reads."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from jumok import files
from jumok.errors import UnreadableError
from jumok.files import FileRecord, blocks

BLOCKS = "blocks.json"
MAX_BLOCKS_BYTES = 16 << 20
_HEADER_SIZE = 8  # bytes of the number with which a safetensors file begins

Rows = Callable[[str, str, Sequence[int]], slice | None]
"""Of a group, the name of a tensor and its shape: which rows of it to read; None for the full tensor."""


class BlockSums:
    """The sums of all blocks of all files of a checkpoint that is being written."""

    def __init__(self) -> None:
        self._sums: dict[str, list[str]] = {}

    def add(self, name: str, data: bytes) -> bytes:
        """Note the sums of a file; returns its content."""
        self._sums[name] = blocks.block_sums(data)
        return data

    def to_bytes(self) -> bytes:
        """The content of blocks.json."""
        return files.format_json({"size": blocks.BLOCK_BYTES, "files": self._sums}, limit=MAX_BLOCKS_BYTES, indent=None)


def read_rows(path: Path, group: str, records: Mapping[str, FileRecord], rows: Rows) -> dict[str, Tensor]:
    """The parts of the tensors of a group that `rows` names, of a checkpoint with a blocks.json."""
    where = path / f"{group}.safetensors"
    known = files.parse_json_object(
        files.read_verified(path / BLOCKS, records[BLOCKS], MAX_BLOCKS_BYTES), path / BLOCKS
    )
    try:
        file = blocks.VerifiedBlocks(where, records[where.name], known["files"][where.name], known["size"])
        begin = _HEADER_SIZE + int.from_bytes(file.read(0, _HEADER_SIZE), "little")
        header = files.parse_json_object(file.read(_HEADER_SIZE, begin), where)
        header.pop("__metadata__", None)
        parts: dict[str, Any] = {}
        content: list[bytes] = []
        size = 0
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            shape, (start, stop) = entry["shape"], entry["data_offsets"]
            if (wanted := rows(group, name, shape)) is not None:
                row = (stop - start) // shape[0]
                start, stop = start + wanted.start * row, start + wanted.stop * row
                shape = [wanted.stop - wanted.start, *shape[1:]]
            content.append(file.read(begin + start, begin + stop))
            parts[name] = {"dtype": entry["dtype"], "shape": shape, "data_offsets": [size, size + stop - start]}
            size += stop - start
        text = json.dumps(parts).encode()
        return safetensors.torch.load(b"".join([len(text).to_bytes(_HEADER_SIZE, "little"), text, *content]))
    except (KeyError, TypeError, ValueError, ZeroDivisionError, safetensors.SafetensorError) as error:
        raise UnreadableError(where, f"is not a safetensors file with {BLOCKS} beside it ({error})") from error
