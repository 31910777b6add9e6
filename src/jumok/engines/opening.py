"""Which engine runs a model: its CTranslate2 export if there is one, else PyTorch, imported only then."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from jumok.bundle import Bundle, MissingWeightsError, successor
from jumok.errors import BundleError, ConfigError, MissingExtraError, require_at_least
from jumok.files import MAX_JSON_BYTES, UnreadableError, parse_json_object, read_bounded, verify_directory
from jumok.tasks import resolve, task_of_config

ENGINES = ("torch", "ctranslate2")
CTRANSLATE2_DEVICES = ("auto", "cpu", "cuda")
DIRECTORY, CERTIFICATE = "ctranslate2", "certificate.json"
_NEW_COPY = (  # there are no weights to export again
    "This is a runtime-only copy: copy it again from where it came from, or make a new one from its run with "
    "`jumok export`."
)


class Hardware(TypedDict, total=False):
    """What a model runs on: options of `load`."""

    threads: int | None  # CPU threads; None: as many as the cores that this process may use
    device: str  # "cpu", "cuda", "cuda:1", "mps", "xpu"; "auto": a card that the engine can use, else the CPU


def exported_model(bundle: Bundle) -> Path | None:
    """The verified CTranslate2 export of a bundle; None if there is none, or one of other weights."""
    final = bundle.path / DIRECTORY
    directory = final if final.is_dir() else successor(final)  # the latter while an export is being replaced
    if not directory.is_dir():
        return None
    try:
        verify_directory(directory)
        certificate = read_certificate(directory)
    except UnreadableError as error:
        advice = _NEW_COPY if bundle.runtime_only else "Export the model again with `jumok export`."
        raise BundleError(f"{error.problem} {advice}") from error
    return directory if certificate.get("weights") == bundle.weights_digest else None


def read_certificate(directory: Path) -> dict[str, Any]:
    """The certificate of an export."""
    where = directory / CERTIFICATE
    return parse_json_object(read_bounded(where, MAX_JSON_BYTES), where)


def open_engine(
    bundle: Bundle,
    engine: str,
    in_torch: str,
    in_ctranslate2: str | None,
    *,
    threads: int | None = None,
    device: str = "auto",
    **options: Any,
) -> Any:
    """The engine of a bundle, by references "module:name" to both engines of its task. "auto" is CTranslate2 where
    there is an export, and it knows the device. `options` are those of the CTranslate2 engine, which is also given how
    to make the other; None if CTranslate2 cannot run models of this task."""
    if threads is not None:
        require_at_least(1, threads=threads)
    original = partial(_torch_engine, bundle, in_torch, threads, device)
    if in_ctranslate2 is None:
        if engine == "ctranslate2":
            raise BundleError(f'{bundle.path}: CTranslate2 cannot run this kind of model. Use `engine="torch"`.')
        return original()
    known = device.partition(":")[0] in CTRANSLATE2_DEVICES
    if engine == "ctranslate2" and not known:
        raise ConfigError(f'CTranslate2 does not run on device="{device}", but on {", ".join(CTRANSLATE2_DEVICES)}.')
    directory = exported_model(bundle) if known and engine != "torch" else None
    if directory is not None:
        return resolve(in_ctranslate2)(directory, bundle, original, threads=threads, device=device, **options)
    if engine == "ctranslate2":
        task = task_of_config(bundle.config)
        if task.conversion is None:
            raise ConfigError(f'CTranslate2 cannot run a {task.title}; use `engine="torch"`.')
        advice = _NEW_COPY if bundle.runtime_only else "Export it first with `jumok export`."
        raise BundleError(f"{bundle.path}: is not exported to CTranslate2, or was trained further since. {advice}")
    return original()


@contextmanager
def needed_for(purpose: str) -> Iterator[None]:
    """Context in which the error about a missing package, or about missing weights, names what needs them."""
    try:
        yield
    except MissingExtraError as error:
        raise MissingExtraError(error.package, error.extra, purpose) from error
    except MissingWeightsError as error:
        raise MissingWeightsError(error.path, purpose) from error


def _torch_engine(bundle: Bundle, reference: str, threads: int | None, device: str) -> Any:
    bundle.require_all_weights()
    try:
        engine = resolve(reference)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "jaxtyping"):
            raise
        raise MissingExtraError(error.name, "train", f"Running {bundle.path} with PyTorch") from error
    return engine.from_bundle(bundle, threads, device)
