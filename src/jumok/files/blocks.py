"""SHA-256 sums of the blocks of a file: a part of it can be verified without reading all of it."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from jumok.errors import UnreadableError
from jumok.files.reading import FileRecord, reading_explained, require_size

BLOCK_BYTES = 1 << 17


def block_sums(data: bytes) -> list[str]:
    """Return the SHA-256 of each block; the last one may be shorter."""
    view = memoryview(data)
    return [sha256(view[start : start + BLOCK_BYTES]).hexdigest() for start in range(0, len(data), BLOCK_BYTES)]


class VerifiedBlocks:
    """A file of which only the blocks are read that are asked for, each compared with its sum."""

    def __init__(self, path: Path, record: FileRecord, sums: Sequence[str], block_bytes: int) -> None:
        require_size(path, record)
        if len(sums) != -(-record.size // block_bytes):
            raise UnreadableError(path, "does not have as many blocks as there are sums of them")
        self.path, self.size, self._sums, self._block_bytes = path, record.size, sums, block_bytes
        self._last: tuple[int, bytes] = (-1, b"")  # the block that was read last: the next part may begin in it

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes from `start` to `stop`."""
        if not 0 <= start <= stop <= self.size:
            raise UnreadableError(self.path, f"has no bytes {start:,} to {stop:,}")
        first, parts = start // self._block_bytes, []
        for number in range(first, -(-stop // self._block_bytes)):
            parts.append(self._block(number))
        begin = first * self._block_bytes
        return b"".join(parts)[start - begin : stop - begin]

    def _block(self, number: int) -> bytes:
        if number != self._last[0]:
            with reading_explained(self.path), open(self.path, "rb", buffering=0) as file:
                file.seek(number * self._block_bytes)
                block = file.read(self._block_bytes)
            if sha256(block).hexdigest() != self._sums[number]:
                raise UnreadableError(self.path, "is damaged: a block does not have the SHA-256 that was recorded")
            self._last = (number, block)
        return self._last[1]
