"""The bundle: a model as one directory that can be copied, checked and opened anywhere, and that can run no code.

    config.json  weights.safetensors  card.json  MANIFEST.json  and the file of its encoder, such as tokenizer.model

card.json names the encoder, a key of `jumok.tasks.ENCODERS` (default: tokenizer). Other files and folders are not part
of the bundle and are never read here. Needs no torch: weights are float32 NumPy arrays.

A runtime-only copy has a CTranslate2 export, and of the weights only those that are not in it, or none. Its card names
the SHA-256 of all the weights.
"""

import hashlib
import math
import os
import re
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BufferedIOBase, BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from jumok import files
from jumok.errors import BundleError
from jumok.files import FileRecord, FileSystem, UnreadableError
from jumok.system import WINDOWS, read_at_start
from jumok.tasks import ENCODERS, EncoderEntry

CONFIG, WEIGHTS, CARD = "config.json", "weights.safetensors", "card.json"
ALL_WEIGHTS = "all_weights_sha256"  # in the card of a runtime-only copy

_MAX_ENCODER_BYTES = 64 << 20
_MAX_WEIGHTS_BYTES = 16 << 30  # 20 times the paper's big model
_MAX_DIMENSIONS = 8
_ATTEMPTS = 10
_NEXT = ".next-"  # begins the name of a successor

Weights = Mapping[str, npt.NDArray[np.float32]]


class MissingWeightsError(BundleError):
    """A runtime-only copy cannot do what needs all weights."""

    def __init__(self, path: Path, purpose: str) -> None:
        self.path = path
        super().__init__(
            f"{path}: is a runtime-only copy, without the weights that PyTorch needs. {purpose} needs PyTorch: use the "
            "model directory it was made from."
        )


@dataclass(frozen=True)
class Bundle:
    """A verified model directory. It stays readable when a training replaces the directory."""

    path: Path
    config: dict[str, Any]
    card: dict[str, Any]
    encoder_name: str  # key of ENCODERS
    encoder_bytes: bytes
    records: Mapping[str, FileRecord]  # the manifest
    _weights_file: BufferedIOBase | None = field(repr=False)

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits, the same for all copies of a model: a hash of config, encoder and weights."""
        digests = [self.records[name].sha256 for name in (CONFIG, ENCODERS[self.encoder_name].file)]
        return hashlib.sha256("\n".join([*digests, self.weights_digest]).encode()).hexdigest()[:12]

    @property
    def runtime_only(self) -> bool:
        """Whether this is a copy without the weights that only PyTorch needs."""
        return ALL_WEIGHTS in self.card

    @property
    def weights_digest(self) -> str:
        """The SHA-256 of the weights, which a certificate names; in a runtime-only copy, of those it was made from."""
        return str(self.card[ALL_WEIGHTS]) if self.runtime_only else self.records[WEIGHTS].sha256

    def require_all_weights(self) -> None:
        """Raise if this is a runtime-only copy."""
        if self.runtime_only:
            raise MissingWeightsError(self.path, "This")

    def weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """The tensors by name, read and checked against the manifest at each call."""
        if self._weights_file is None:
            return {}
        where, record, file = self.path / WEIGHTS, self.records[WEIGHTS], self._weights_file
        data = file.getvalue() if isinstance(file, BytesIO) else read_at_start(file.fileno(), record.size)
        if hashlib.sha256(data).hexdigest() != record.sha256:
            raise BundleError(f"{where}: was changed since it was opened. Load the model again.")
        return {current_weight_name(name): array for name, array in _parse_weights(data, where).items()}


def save_bundle(
    path: Path,
    *,
    config: Mapping[str, Any],
    weights: Weights,
    encoder: tuple[str, bytes],
    card: Mapping[str, Any],
    fs: FileSystem = files.REAL_FILES,
) -> None:
    """Write or replace the bundle at `path`, loadable at every instant. `encoder`: its key in ENCODERS, its content."""
    if path.exists() and not (path / files.MANIFEST).is_file():
        raise BundleError(f"{path}: exists and is not a model directory. Choose another directory or move it away.")
    files.make_directory_durably(fs, path.parent)
    contents = bundle_contents(config=config, weights=weights, encoder=encoder, card=card)
    size = sum(array.nbytes for array in weights.values()) + len(encoder[1])
    replace_directory(path, contents, bytes_needed=size, fs=fs)


def bundle_contents(
    *, config: Mapping[str, Any], weights: Weights, encoder: tuple[str, bytes], card: Mapping[str, Any]
) -> dict[str, bytes | Callable[[], bytes]]:
    """The files of a bundle but for the manifest. Without any weights, there is no file of them."""
    name, content = encoder
    return {
        CONFIG: files.format_json(config),
        **({WEIGHTS: lambda: _format_weights(weights)} if weights else {}),
        ENCODERS[name].file: content,
        CARD: files.format_json({**card, "encoder": name}),
    }


def replace_directory(
    path: Path,
    contents: files.Contents,
    *,
    bytes_needed: int,
    directories: Mapping[str, files.Contents] | None = None,
    fs: FileSystem = files.REAL_FILES,
) -> None:
    """Write a directory with a manifest, or replace it: the old one stays until the new one is complete.
    `directories` are written inside of it, each with a manifest of its own."""
    finish_replacement(path, fs=fs)
    new = successor(path)
    files.write_directory_durably(fs, new, contents, bytes_needed=bytes_needed, directories=directories or {})
    finish_replacement(path, fs=fs)


def finish_replacement(path: Path, *, fs: FileSystem = files.REAL_FILES) -> None:
    """Rename the successor of `path` to `path` if there is one, as after a crash; only the writing process may do so.

    No system call replaces a directory atomically everywhere, and `cp -r` would copy a symbolic link instead of the
    model. So the new directory is first written beside the old one. Between the two renames that follow nothing is
    called `path`, and readers take the successor; a crash there is repaired by calling this again.
    """
    new = successor(path)
    if not new.exists():
        return
    try:
        files.verify_directory(new)
    except UnreadableError:  # the disk lost what it had promised to keep: the old one stays
        files.remove(fs, files.set_aside(fs, new))
        return
    old = files.set_aside(fs, path) if path.exists() else None
    try:
        fs.rename(new, path)
        fs.sync_directory(path.parent)
    except OSError as error:
        raise BundleError(f"{path}: the model cannot be renamed from {new} ({error.strerror}).") from error
    if old is not None:
        files.remove(fs, old)


def load_bundle(path: Path) -> Bundle:
    """Open and verify a bundle, or the bundle `model` of a run directory."""
    for _ in range(_ATTEMPTS):
        directory = _find_bundle(path)
        before = _identity(directory)
        try:
            return _read_bundle(directory)
        except UnreadableError as error:
            # A training may have replaced the bundle while it was read, so that parts of two were read: try again.
            if before and _identity(directory) == before:
                advice = error.advice or "Copy the whole model directory again, or train it again."
                raise BundleError(f"{error.problem} {advice}") from error
    raise BundleError(f"{path}: is being replaced again and again. Copy the model and load the copy.")


def successor(path: Path) -> Path:
    """The name under which the next version of the directory `path` is written."""
    return path.parent / f"{_NEXT}{path.name}"


def settled_path(path: Path) -> Path:
    """The path that a directory has when its replacement is complete: without the prefix of a successor."""
    return path.with_name(path.name.removeprefix(_NEXT))


def _find_bundle(path: Path) -> Path:
    path = Path(os.path.abspath(path))  # gives "." and "run/.." a name, which the successor needs
    for directory in (path, path / "model"):
        # Between two checks the successor may be renamed, and the one after it may already be there: then it is not yet
        # its turn, and the directory itself exists again.
        for candidate in (directory, successor(directory), directory):
            is_next = candidate != directory and os.path.lexists(directory / files.MANIFEST)
            if os.path.lexists(candidate / files.MANIFEST) and not is_next:
                return candidate
    if not os.path.exists(path):
        raise BundleError(f"{path}: no such model directory. Check the path.")
    if not path.is_dir():
        raise BundleError(f"{path}: is a file; a model is a directory. Give the directory that holds {WEIGHTS}.")
    if (path / "run.json").exists():
        raise BundleError(f"{path}: this run has no model yet; it gets one at its first validation. Try again later.")
    raise BundleError(
        f"{path}: is not a model directory, {files.MANIFEST} is missing. Give a directory written by jumok train."
    )


def _identity(directory: Path) -> tuple[int, ...]:
    """Changes when another directory gets the name; empty if there is none."""
    try:
        status = directory.stat()
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_ctime_ns


def _read_bundle(directory: Path) -> Bundle:
    records = files.read_manifest(directory)

    def read(name: str, most: int) -> bytes:
        return files.read_verified(directory / name, _record(directory, records, name), most)

    config, card = (
        files.parse_json_object(read(name, files.MAX_JSON_BYTES), directory / name) for name in (CONFIG, CARD)
    )
    encoder = _encoder_entry(card, directory)
    content = read(encoder.file, _MAX_ENCODER_BYTES)
    if ALL_WEIGHTS in card and not re.fullmatch(r"[0-9a-f]{64}", str(card[ALL_WEIGHTS])):
        raise UnreadableError(directory / CARD, f"has an impossible {ALL_WEIGHTS}")
    if WEIGHTS not in records and ALL_WEIGHTS in card:
        return Bundle(directory, config, card, encoder.name, content, records, None)
    file = _open_weights(directory / WEIGHTS, _record(directory, records, WEIGHTS))
    bundle = Bundle(directory, config, card, encoder.name, content, records, file)
    weakref.finalize(bundle, file.close)
    return bundle


def _open_weights(where: Path, record: FileRecord) -> BufferedIOBase:
    if record.size > _MAX_WEIGHTS_BYTES:
        raise UnreadableError(
            where, f"is said to have {record.size:,} bytes; at most {_MAX_WEIGHTS_BYTES:,} are allowed"
        )
    # On Windows a training could not replace the directory while a file in it is open.
    return BytesIO(files.read_verified(where, record, record.size)) if WINDOWS else files.open_verified(where, record)


def _record(directory: Path, records: Mapping[str, FileRecord], name: str) -> FileRecord:
    if name not in records:
        raise UnreadableError(directory / files.MANIFEST, f"does not list {name}")
    return records[name]


def _encoder_entry(card: Mapping[str, Any], directory: Path) -> EncoderEntry:
    name = card.get("encoder", "tokenizer")
    if not isinstance(name, str) or name not in ENCODERS:
        raise UnreadableError(
            directory / CARD,
            f"names the encoder {name!r}, which is unknown here",
            "Use the version of Jumok, or the plug-in, that it was trained with.",
        )
    return ENCODERS[name]


def current_weight_name(weight: str) -> str:
    """The name of a weight today: the scales of n-grams were called loudness once."""
    return re.sub(r"^(ngrams\.\d+)\.loudness$", r"\1.scale", weight)


def _format_weights(weights: Weights) -> bytes:
    for name, array in weights.items():
        if array.dtype != np.float32:
            raise TypeError(f"weight {name} is {array.dtype}, a bundle holds float32")
        if array.size == 0:
            raise ValueError(f"weight {name} is empty (shape {array.shape})")
    # safetensors writes the memory from the first element on and ignores strides: arrays must be contiguous.
    return safetensors.numpy.save({name: np.asarray(array, order="C") for name, array in weights.items()})


def _parse_weights(data: bytes, where: Path) -> dict[str, npt.NDArray[np.float32]]:
    try:
        _check_header(data, where)
        return safetensors.numpy.load(data)
    except (UnreadableError, safetensors.SafetensorError, ValueError, KeyError) as error:
        advice = "Copy the whole model directory again; do not use it if you do not know where it is from."
        raise BundleError(f"{where}: is not a valid safetensors file of float32 tensors ({error}). {advice}") from error


def _check_header(data: bytes, where: Path) -> None:
    """Refuse what the library accepts: a huge header, a tensor named twice, absurd shapes, other types than float32."""
    length = int.from_bytes(data[:8], "little")
    if length > min(files.MAX_JSON_BYTES, len(data) - 8):
        raise UnreadableError(where, f"its header is said to have {length:,} bytes")
    header = files.parse_json_object(data[8 : 8 + length], where)
    header.pop("__metadata__", None)
    for name, entry in header.items():
        if not isinstance(entry, dict) or entry.get("dtype") != "F32":
            raise UnreadableError(where, f"tensor {name[:80]!r} is not float32")
        shape: Any = entry.get("shape")
        possible = isinstance(shape, list) and all(type(n) is int and n > 0 for n in shape)
        if not possible or len(shape) > _MAX_DIMENSIONS:
            raise UnreadableError(where, f"tensor {name[:80]!r} has an impossible shape")
        if 4 * math.prod(shape) > len(data):
            raise UnreadableError(where, f"tensor {name[:80]!r} is larger than the file")
