from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import resource
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faulty_files import FaultyFiles, crashes
from jumok.bundle import CARD, CONFIG, WEIGHTS, Bundle, load_bundle, save_bundle
from jumok.errors import BundleError
from jumok.files import MANIFEST, REAL_FILES, FileSystem, WriteError, clean_leftovers
from jumok.tasks import ENCODERS, EncoderEntry

TOKENIZER = ENCODERS["tokenizer"].file


def contents(seed: int = 0) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    weights = {
        "embedding": generator.standard_normal((5, 3), dtype=np.float32),
        "encoder.0.norm": generator.standard_normal(3, dtype=np.float32),
    }
    return {
        "config": {"d_model": 3, "name": "주목", "seed": seed},
        "weights": weights,
        "encoder": ("tokenizer", bytes([seed]) * 50),
        "card": {"task": "translator", "metrics": {"bleu": 0.1 + seed}},
    }


def save(path: Path, seed: int = 0, fs: FileSystem | None = None) -> None:
    """Without a file system given: on one that is quick because it only notes what is synced."""
    save_bundle(path, **contents(seed), fs=fs or FaultyFiles())


def seed_of(bundle: Bundle) -> int:
    """Which of the bundles this is; every byte is compared with what was saved."""
    seed = bundle.config["seed"]
    expected = contents(seed)
    assert (bundle.config, bundle.card) == (expected["config"], expected["card"] | {"encoder": "tokenizer"})
    assert (bundle.encoder_name, bundle.encoder_bytes) == expected["encoder"]
    weights = bundle.weights()
    assert weights.keys() == expected["weights"].keys()
    for name, array in weights.items():
        assert array.dtype == np.float32
        assert array.flags.writeable  # torch.from_numpy warns of what is not
        np.testing.assert_array_equal(array, expected["weights"][name])
    assert isinstance(seed, int)
    return seed


def seal(path: Path) -> None:
    """What an attacker does: make the manifest true for whatever lies there."""
    files = {
        file.name: {"size": file.stat().st_size, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        for file in path.iterdir()
        if file.is_file() and file.name != MANIFEST
    }
    (path / MANIFEST).write_text(json.dumps({"format": 1, "files": files}))


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    save(tmp_path / "model", 4, REAL_FILES)
    assert seed_of(load_bundle(tmp_path / "model")) == 4


def test_a_run_directory_stands_for_its_model(tmp_path: Path) -> None:
    save(tmp_path / "model", 3)
    bundle = load_bundle(tmp_path)
    assert seed_of(bundle) == 3
    assert bundle.path == tmp_path / "model"


def test_the_current_directory_can_be_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "model", 2)
    monkeypatch.chdir(tmp_path / "model")
    assert seed_of(load_bundle(Path())) == 2
    assert seed_of(load_bundle(Path(".."))) == 2


def test_arrays_keep_their_values_whatever_their_layout(tmp_path: Path) -> None:
    square = np.arange(16, dtype=np.float32).reshape(4, 4)
    odd = {
        "transposed": square.T,
        "strided": square[::2, 1::2],
        "scalar": np.array(7.0, np.float32),
        "nan": square * np.nan,
    }
    save_bundle(tmp_path / "m", config={}, weights=odd, encoder=("tokenizer", b""), card={})
    for name, array in load_bundle(tmp_path / "m").weights().items():
        assert array.shape == odd[name].shape
        np.testing.assert_array_equal(array, odd[name])


def test_a_copy_is_a_model_too(tmp_path: Path) -> None:
    save(tmp_path / "run" / "model", 1)
    save(tmp_path / "run" / "model", 2)
    subprocess.run(["cp", "-r", tmp_path / "run" / "model", tmp_path / "copy"], check=True)
    shutil.rmtree(tmp_path / "run")
    assert seed_of(load_bundle(tmp_path / "copy")) == 2


def test_replacing_leaves_the_new_one_alone(tmp_path: Path) -> None:
    save(tmp_path / "model", 1)
    save(tmp_path / "model", 2)
    assert seed_of(load_bundle(tmp_path)) == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_after_a_crash_anywhere_a_whole_model_is_found_and_the_next_save_works(tmp_path: Path) -> None:
    run = tmp_path / "run"

    def prepare() -> None:
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir()
        save(run / "model", 1)

    found = []
    for moment in crashes(lambda fs: save(run / "model", 2, fs), root=run, prepare=prepare):
        found.append(seed_of(load_bundle(run)))
        assert seed_of(load_bundle(run / "model")) == found[-1], moment
        save(run / "model", 3)
        assert seed_of(load_bundle(run)) == 3, moment
        clean_leftovers(REAL_FILES, run)
        assert [entry.name for entry in run.iterdir()] == ["model"], moment
    assert set(found) == {1, 2}


def test_a_full_disk_leaves_the_old_model(tmp_path: Path) -> None:
    save(tmp_path / "model", 1)
    counting = FaultyFiles()
    save(tmp_path / "model", 1, counting)
    until_complete = counting.operations.index(("rename", ".next-model"))
    for number in range(1, counting.fallible + 1):
        fs = FaultyFiles(fails_at=number)
        with pytest.raises((WriteError, BundleError), match="No space left on device") as raised:
            save(tmp_path / "model", 2, fs)
        assert str(tmp_path) in str(raised.value)
        if len(fs.operations) <= until_complete:
            assert "bytes are needed" in str(raised.value)
            assert seed_of(load_bundle(tmp_path)) == 1
        else:
            assert seed_of(load_bundle(tmp_path)) in (1, 2)
        save(tmp_path / "model", 1)
        assert seed_of(load_bundle(tmp_path)) == 1
        clean_leftovers(REAL_FILES, tmp_path)
        assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_a_bundle_stays_readable_while_it_is_replaced(tmp_path: Path) -> None:
    save(tmp_path / "model", 1)
    opened = load_bundle(tmp_path)
    save(tmp_path / "model", 2)
    assert seed_of(opened) == 1


def test_readers_never_fail_while_a_training_replaces_the_model(tmp_path: Path) -> None:
    save(tmp_path / "model", 0)
    code = "import sys, test_bundle, pathlib\nfor n in range(1, 101): test_bundle.save(pathlib.Path(sys.argv[1]), n)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    with subprocess.Popen([sys.executable, "-c", code, tmp_path / "model"], env=environment) as writer:
        seen = []
        while writer.poll() is None:
            seen.append(seed_of(load_bundle(tmp_path)))
    assert writer.returncode == 0
    assert seen == sorted(seen)
    assert len(set(seen)) > 3
    assert seed_of(load_bundle(tmp_path)) == 100


def test_a_model_changed_in_place_after_it_was_opened_is_noticed(tmp_path: Path) -> None:
    save(tmp_path / "model")
    bundle = load_bundle(tmp_path)
    data = bytearray((tmp_path / "model" / WEIGHTS).read_bytes())
    data[-1] ^= 1
    (tmp_path / "model" / WEIGHTS).write_bytes(data)
    with pytest.raises(BundleError, match="was changed since it was opened"):
        bundle.weights()


def test_a_foreign_directory_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "thesis").write_text("years")
    with pytest.raises(BundleError, match="not a model directory"):
        save(tmp_path / "documents")
    assert (tmp_path / "documents" / "thesis").read_text() == "years"


@pytest.mark.parametrize(("array", "error"), [(np.zeros(2), TypeError), (np.zeros((0, 2), np.float32), ValueError)])
def test_weights_that_could_not_be_loaded_are_not_saved(tmp_path: Path, array: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="weight w"):
        save_bundle(tmp_path / "m", config={}, weights={"w": array}, encoder=("tokenizer", b""), card={})
    assert list(tmp_path.iterdir()) == []


def test_no_model_is_explained(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no such model directory"):
        load_bundle(tmp_path / "nowhere")
    with pytest.raises(BundleError, match="not a model directory"):
        load_bundle(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(BundleError, match="is a file; a model is a directory"):
        load_bundle(tmp_path / "file")
    (tmp_path / "run.json").touch()
    with pytest.raises(BundleError, match="no model yet"):
        load_bundle(tmp_path)


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, TOKENIZER, CARD])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    save(tmp_path / "model")
    (tmp_path / "model" / name).unlink()
    with pytest.raises(BundleError, match=f"{name}: is missing. Copy the whole model directory again"):
        load_bundle(tmp_path)
    seal(tmp_path / "model")
    with pytest.raises(BundleError, match=f"does not list {name}"):
        load_bundle(tmp_path)


def test_a_newer_format_asks_for_an_upgrade(tmp_path: Path) -> None:
    save(tmp_path / "model")
    (tmp_path / "model" / MANIFEST).write_text('{"format": 2, "files": "somewhere else"}')
    with pytest.raises(BundleError, match=r"has format 2.*Upgrade") as raised:
        load_bundle(tmp_path)
    assert "Copy" not in str(raised.value)


def test_random_damage_never_gives_a_wrong_number(tmp_path: Path) -> None:
    save(tmp_path / "whole", 1)
    names = [CONFIG, WEIGHTS, TOKENIZER, CARD, MANIFEST]
    randomness = random.Random(0)
    refused = 0
    for _ in range(400):
        victim = tmp_path / "victim"
        shutil.rmtree(victim, ignore_errors=True)
        shutil.copytree(tmp_path / "whole", victim)
        damage(victim, names, randomness)
        try:
            assert seed_of(load_bundle(victim)) == 1
        except BundleError:
            refused += 1
    assert refused >= 392  # two files swapped with themselves and the like do no harm


def damage(directory: Path, names: list[str], randomness: random.Random) -> None:
    path = directory / randomness.choice(names)
    data = bytearray(path.read_bytes())
    kind = randomness.choice(["flip", "flip", "truncate", "swap"])
    if kind == "flip":
        data[randomness.randrange(len(data))] ^= 1 << randomness.randrange(8)
    elif kind == "truncate":
        del data[randomness.randrange(len(data)) :]
    else:
        other = directory / randomness.choice([name for name in names if name != path.name])
        data = bytearray(other.read_bytes())
        other.write_bytes(path.read_bytes())
    path.write_bytes(data)


class Exploit:
    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.mkdir, ("executed",)


def header(text: str, data: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(text) if length is None else length) + text.encode() + data


def tensor(shape: str, *, dtype: str = "F32", size: int = 4, name: str = "w") -> str:
    return f'"{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{size}]}}'


MALICIOUS_WEIGHTS: dict[str, bytes | Callable[[], bytes]] = {
    "pickle": pickle.dumps(Exploit()),
    "empty": b"",
    "huge header, said": header("{}", length=1 << 62),
    "huge header, real": lambda: header("{" + " " * (50 << 20) + "}"),  # not made before it is needed
    "header longer than the file": header("{}", length=1000),
    "tensor named twice": header("{" + tensor("[1]") + "," + tensor("[1]") + "}", bytes(4)),
    "tensors that overlap": header("{" + tensor("[1]") + "," + tensor("[1]", name="v") + "}", bytes(4)),
    "shape larger than the file": header("{" + tensor("[1000000, 1000000]") + "}", bytes(4)),
    "shape that overflows": header("{" + tensor("[4611686018427387904, 4]") + "}", bytes(4)),
    "negative shape": header("{" + tensor("[-1]") + "}", bytes(4)),
    "empty but endless": header("{" + tensor("[0, 4611686018427387904]", size=0) + "}"),
    "a hundred dimensions": header("{" + tensor("[" + "1," * 99 + "1]") + "}", bytes(4)),
    "another type": header("{" + tensor("[2]", dtype="BF16") + "}", bytes(4)),
    "unknown type": header("{" + tensor("[1]", dtype="OBJECT") + "}", bytes(4)),
    "bytes that belong to no tensor": header("{" + tensor("[1]") + "}", bytes(8)),
    "not an object": header("[1, 2]"),
    "entry that is no object": header('{"w": 1}'),
    "nested without end": header('{"w":' + "[" * 200_000 + "]" * 200_000 + "}"),
}


@pytest.mark.parametrize("data", MALICIOUS_WEIGHTS.values(), ids=MALICIOUS_WEIGHTS.keys())
def test_malicious_weights_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes | Callable[[], bytes]
) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "model")
    (tmp_path / "model" / WEIGHTS).write_bytes(data() if callable(data) else data)
    seal(tmp_path / "model")
    bundle = load_bundle(tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BundleError, match="is not a valid safetensors file"):
        bundle.weights()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"d_model": 1, "d_model": 2}', "appears twice"),
        (b"[" * 200_000, "not valid JSON"),
        (b'{"a": 1e400}', "not a finite number"),
        (b"[]", "an object is expected"),
        (b'{"a": "' + b"x" * (2 << 20) + b'"}', "at most 1,048,576"),
        (pickle.dumps(Exploit()), "not valid JSON"),
    ],
)
@pytest.mark.parametrize("name", [CONFIG, CARD])
def test_malicious_json_is_refused(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    save(tmp_path / "model")
    (tmp_path / "model" / name).write_bytes(data)
    seal(tmp_path / "model")
    with pytest.raises(BundleError, match=f"{name}: .*{message}"):
        load_bundle(tmp_path)


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, TOKENIZER, CARD, MANIFEST])
def test_links_that_leave_the_bundle_are_refused(tmp_path: Path, name: str) -> None:
    save(tmp_path / "model")
    (tmp_path / "model" / name).rename(tmp_path / "outside")
    (tmp_path / "model" / name).symlink_to(tmp_path / "outside")
    with pytest.raises(BundleError, match=f"{name}: is a symbolic link"):
        load_bundle(tmp_path)


def test_an_absurdly_large_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    save(tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / MANIFEST).read_text())
    for name, message in [(WEIGHTS, "are allowed"), (TOKENIZER, "are expected")]:
        with (tmp_path / "model" / name).open("wb") as file:
            file.truncate(1 << 40)
        manifest["files"][name]["size"] = 1 << 40
        (tmp_path / "model" / MANIFEST).write_text(json.dumps(manifest))
        with pytest.raises(BundleError, match=f"{name}: .*{message}"):
            load_bundle(tmp_path)


def test_torch_is_not_needed(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, jumok.bundle\n"
        "jumok.bundle.load_bundle(pathlib.Path(sys.argv[1])).weights()\n"
        "assert 'torch' not in sys.modules"
    )
    save(tmp_path / "model")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code, tmp_path], env=environment, check=True)


def test_a_bundle_names_its_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENCODERS, "digits", EncoderEntry("digits", "digits.json", "somewhere:Digits"))
    save_bundle(tmp_path / "m", **contents() | {"encoder": ("digits", b"{}")})
    assert (tmp_path / "m" / "digits.json").read_bytes() == b"{}"
    assert not (tmp_path / "m" / TOKENIZER).exists()
    bundle = load_bundle(tmp_path / "m")
    assert (bundle.encoder_name, bundle.encoder_bytes) == ("digits", b"{}")
    monkeypatch.delitem(ENCODERS, "digits")
    with pytest.raises(BundleError, match=r"card.json: names the encoder 'digits', which is unknown here\. Use the"):
        load_bundle(tmp_path / "m")


def test_weights_have_their_present_names(tmp_path: Path) -> None:
    weights = {name: np.ones(2, np.float32) for name in ("ngrams.0.loudness", "ngrams.1.loudness", "loudness")}
    save_bundle(tmp_path / "m", **contents() | {"weights": weights})
    assert load_bundle(tmp_path / "m").weights().keys() == {"ngrams.0.scale", "ngrams.1.scale", "loudness"}
