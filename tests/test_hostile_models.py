"""A model from a stranger: it is refused with words, nothing in it runs, and it cannot fill the memory."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jumok.bundle import CARD, CONFIG, WEIGHTS
from jumok.files import MANIFEST
from jumok.tasks import ENCODERS

TOKENIZER = ENCODERS["tokenizer"].file
GOOD = Path(__file__).parent / "frozen" / "format-1" / "model"
MOST_GROWTH = 200  # megabytes

# One process for all of them: its peak is the worst of all. What a good model needs is there before.
LOADER = """
import resource, sys
from pathlib import Path
from jumok.engines.loading import load
from jumok.errors import JumokError
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
load(sys.argv[1], "torch").translate("a")
before = peak()
for path in sys.argv[2:]:
    try:
        load(path)
    except JumokError as error:
        print(f"{Path(path).name}: refused: {error}".replace(chr(10), " "))
    else:
        print(f"{Path(path).name}: loaded")
print(peak() - before)
"""


class Exploit:
    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.mkdir, ("executed",)


def seal(model: Path) -> None:
    """What an attacker does: make the manifest true for whatever lies there."""
    for directory in [path for path in model.rglob("*") if path.is_dir()] + [model]:
        files = {
            file.name: {"size": file.stat().st_size, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
            for file in directory.iterdir()
            if file.is_file() and file.name != MANIFEST
        }
        (directory / MANIFEST).write_text(json.dumps({"format": 1, "files": files}))


def replaced(name: str, content: bytes | Callable[[], bytes]) -> Callable[[Path], None]:
    def attack(model: Path) -> None:
        (model / name).write_bytes(content() if callable(content) else content)
        seal(model)

    return attack


def configured(**changes: Any) -> Callable[[Path], None]:
    config = {**json.loads((GOOD / CONFIG).read_bytes()), **changes}
    return replaced(CONFIG, json.dumps(config).encode())


def of_pictures(encoder: bytes, **config: Any) -> Callable[[Path], None]:
    """An image classifier or set of image tokens with this description of its pictures."""

    def attack(model: Path) -> None:
        card = json.loads((model / CARD).read_bytes())
        (model / CARD).write_text(json.dumps({**card, "encoder": "pictures", "classes": {"a": 1, "b": 1}}))
        (model / CONFIG).write_text(json.dumps(config))
        (model / ENCODERS["pictures"].file).write_bytes(encoder)
        seal(model)

    return attack


def listed(name: str) -> Callable[[Path], None]:
    """A manifest that leads elsewhere."""

    def attack(model: Path) -> None:
        manifest = json.loads((model / MANIFEST).read_bytes())
        manifest["files"][name] = manifest["files"][CONFIG]
        (model / MANIFEST).write_text(json.dumps(manifest))

    return attack


def linked(name: str) -> Callable[[Path], None]:
    def attack(model: Path) -> None:
        (model / name).rename(model.parent / f"outside-{name}")
        (model / name).symlink_to(model.parent / f"outside-{name}")

    return attack


def header(length: int, text: bytes) -> bytes:
    return length.to_bytes(8, "little") + text


PICTURES = b'{"shape": {"height": 28, "width": 28, "channels": 1}, "mean": [0.5], "deviation": [0.5]}'

ATTACKS: dict[str, Callable[[Path], None]] = {
    **{f"pickle-{name}": replaced(name, pickle.dumps(Exploit())) for name in (CONFIG, WEIGHTS, TOKENIZER)},
    "up": listed("../config.json"),
    "absolute": listed("/etc/passwd"),
    **{f"link-{name}": linked(name) for name in (CONFIG, WEIGHTS, TOKENIZER, MANIFEST)},
    "header-said": replaced(WEIGHTS, header(1 << 62, b"{}")),
    "header-real": replaced(WEIGHTS, lambda: header(60 << 20, b"{" + b" " * ((60 << 20) - 2) + b"}")),
    "header-nested": replaced(WEIGHTS, header(400_006, b'{"w":' + b"[" * 200_000 + b"]" * 200_000 + b"}")),
    "keys-twice": replaced(CONFIG, b'{"d_model": 16, "d_model": 16}'),
    "huge-width": configured(d_model=1 << 23, heads=1),
    "beyond-width": configured(d_model=1 << 62, heads=1),
    "huge-depth": configured(encoder_layers=256),
    "beyond-depth": configured(decoder_layers=10**12),
    "huge-positions": configured(positions="learned", max_length=1 << 24),
    "huge-feed-forward": configured(d_ff=1 << 24),
    "huge-rotations": configured(encoder_layers=2, d_k=1 << 23, d_v=2, rotary=True),
    "not-a-width": configured(d_model="16"),
    "unknown": configured(run="rm -rf /"),
    "other-task": configured(task="classifier", decoder_layers=0, classes=1 << 24, ngrams=1 << 24),
    "other-architecture": replaced(
        CONFIG, b'{"architecture": "recurrent", "vocabulary": 333, "d_model": 16777216, "encoder_layers": 256}'
    ),
    "unknown-architecture": configured(architecture=["recurrent"]),
    "huge-pictures": configured(task="painter", height=1 << 24, width=1 << 24, codes=1 << 24),
    "deep-codebook": configured(task="painter", code_blocks=1 << 24),
    "tiny-patches": of_pictures(PICTURES, task="image_classifier", height=4096, width=4096, patch=1, d_model=1 << 20),
    "no-pictures": of_pictures(b"[" * 200_000, task="image_classifier"),
    "no-numbers": of_pictures(PICTURES.replace(b"0.5", b"NaN"), task="image_tokens", vocabulary=256),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What was said of each, by name; and the growth of the memory in megabytes as `growth`."""
    directory = tmp_path_factory.mktemp("hostile")
    for name, attack in ATTACKS.items():
        (directory / name).mkdir()
        attack(Path(shutil.copytree(GOOD, directory / name / "model")))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", LOADER, GOOD, *(directory / name for name in ATTACKS)]
    done = subprocess.run(command, env=environment, cwd=directory, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert not any(directory.rglob("executed"))
    *lines, growth = done.stdout.splitlines()
    return {"growth": growth, **dict(line.split(": ", 1) for line in lines)}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_model_is_refused(answers: dict[str, str], name: str) -> None:
    assert answers[name].startswith("refused: ")
    assert name in answers[name]  # where it is


def test_hostile_models_do_not_fill_the_memory(answers: dict[str, str]) -> None:
    assert int(answers["growth"]) < MOST_GROWTH, answers["growth"]
