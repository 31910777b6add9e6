from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.data import store as module
from jumok.data.source_files import SourceFiles, fingerprint_of
from jumok.data.store import INDEX, TokenStore

COLUMNS = ("source", "target")
EXAMPLES = [([5, 6, 7], [8]), ([], [9, 10]), ([11], []), ([12, 70_000], [13, 14, 15])]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    TokenStore.build(tmp_path / "train", iter(EXAMPLES), columns=COLUMNS, fingerprint="a")
    return tmp_path / "train"


def opened(directory: Path) -> TokenStore:
    store = TokenStore.open(directory, "a")
    assert store is not None
    return store


sequences = st.lists(st.integers(0, 2**31 - 1), max_size=6)


@given(st.lists(st.tuples(sequences, sequences), max_size=12), st.integers(1, 13), st.data())
def test_what_was_stored_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    examples: list[tuple[list[int], list[int]]],
    shard_examples: int,
    data: st.DataObject,
) -> None:
    directory = tmp_path_factory.mktemp("store") / "train"
    TokenStore.build(directory, iter(examples), columns=COLUMNS, fingerprint="a", shard_examples=shard_examples)
    assert len(list(directory.glob("source*.ids"))) == max(1, -(-len(examples) // shard_examples))
    store = opened(directory)
    assert len(store) == len(examples)
    some = slice(*sorted(data.draw(st.tuples(st.integers(0, 12), st.integers(0, 12)))))
    assert store.lengths("target", some).tolist() == [len(target) for _, target in examples[some]]
    places = st.lists(st.integers(0, len(examples) - 1), max_size=9) if examples else st.just([])
    indices = data.draw(places)
    for column, name in enumerate(COLUMNS):
        assert [store.example(name, i) for i in range(len(store))] == [example[column] for example in examples]
        assert store.lengths(name).tolist() == [len(example[column]) for example in examples]
        ids, lengths = store.gather(name, np.array(indices, np.int64))
        assert ids.tolist() == [number for i in indices for number in examples[i][column]]
        assert lengths.tolist() == [len(examples[i][column]) for i in indices]
        assert ids.dtype == np.int64


def test_many_examples_are_written_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_EXAMPLES_AT_A_TIME", 3)
    examples = [([i] * (i % 4), [i]) for i in range(20)]
    store = TokenStore.build(tmp_path / "train", iter(examples), columns=COLUMNS, fingerprint="a")
    assert [store.example("source", i) for i in range(20)] == [source for source, _ in examples]


def test_other_data_or_no_store_is_not_opened(directory: Path) -> None:
    assert TokenStore.open(directory, "b") is None
    assert TokenStore.open(directory.with_name("absent"), "a") is None


def test_a_new_store_takes_the_place_of_the_old_and_nothing_is_left_over(directory: Path) -> None:
    TokenStore.build(directory, [([1], [2])], columns=COLUMNS, fingerprint="b")
    assert TokenStore.open(directory, "a") is None
    replaced = TokenStore.open(directory, "b")
    assert replaced is not None
    assert len(replaced) == 1
    assert [path.name for path in directory.parent.iterdir()] == ["train"]


@pytest.mark.parametrize("name", ["source.ids", "source.lengths", "target.ids", "target.lengths", INDEX])
@pytest.mark.parametrize("damage", ["gone", "shorter", "longer"])
def test_damage_is_seen(directory: Path, name: str, damage: str) -> None:
    path = directory / name
    data = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(data[:-4] if damage == "shorter" else data + b"\1\0\0\0")
    assert TokenStore.open(directory, "a") is None


def test_offsets_are_right_far_behind_the_last_one_in_memory(tmp_path: Path) -> None:
    examples = [([number] * (number % 5), [number]) for number in range(300)]
    store = TokenStore.build(tmp_path / "train", examples, columns=COLUMNS, fingerprint="a", shard_examples=170)
    indices = np.array([299, 0, 63, 64, 65, 127, 128, 169, 170, 171, 233, 234, 298, 5, 5])
    ids, lengths = store.gather("source", indices)
    assert ids.tolist() == [number for index in indices for number in examples[index][0]]
    assert lengths.tolist() == [len(examples[index][0]) for index in indices]


def test_damage_in_any_shard_is_seen_and_a_missing_or_exchanged_shard_too(tmp_path: Path) -> None:
    def build() -> list[Path]:
        TokenStore.build(tmp_path / "train", EXAMPLES, columns=COLUMNS, fingerprint="a", shard_examples=1)
        return sorted((tmp_path / "train").glob("*.[il]*s"))

    assert len(build()) == 4 * 4
    for number, path in enumerate(build()):
        if not path.stat().st_size:
            continue
        path = build()[number]
        path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))
        assert TokenStore.open(tmp_path / "train", "a") is None, path
    first, last = (build() and tmp_path / "train" / f"source{part}.ids" for part in ("", ".00003"))
    first.rename(tmp_path / "kept")
    last.rename(first)
    (tmp_path / "kept").rename(last)
    assert TokenStore.open(tmp_path / "train", "a") is None
    build()
    last.unlink()
    assert TokenStore.open(tmp_path / "train", "a") is None


@pytest.mark.parametrize("name", ["source.ids", "source.lengths", "target.ids", "target.lengths"])
def test_damage_that_keeps_every_size_is_seen(directory: Path, name: str) -> None:
    numbers = np.fromfile(directory / name, np.int32)
    (numbers ^ 1 if name.endswith("ids") else numbers[::-1]).tofile(directory / name)  # the sum of lengths is the same
    assert TokenStore.open(directory, "a") is None


def test_a_build_that_fails_leaves_the_old_store_and_nothing_else(directory: Path) -> None:
    def failing() -> object:
        yield EXAMPLES[0]
        raise RuntimeError("the corpus ended badly")

    with pytest.raises(RuntimeError, match="ended badly"):
        TokenStore.build(directory, failing(), columns=COLUMNS, fingerprint="b")  # type: ignore[arg-type]
    assert len(opened(directory)) == len(EXAMPLES)
    assert [path.name for path in directory.parent.iterdir()] == ["train"]


def test_the_fingerprint_follows_contents_and_settings_not_names(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("a\n")
    second.write_text("a\n")

    def fingerprint(paths: list[Path], *settings: object) -> str:
        return fingerprint_of(SourceFiles(tmp_path).read(paths, "input"), *settings)

    known = fingerprint([first], 8000, "x")
    assert fingerprint([second], 8000, "x") == known
    second.write_text("b\n")
    others = [fingerprint([second], 8000, "x"), fingerprint([first], 8001, "x"), fingerprint([first], 8000)]
    others += [fingerprint([first, second], 8000, "x"), fingerprint([second, first], 8000, "x")]
    assert len({known, *others}) == 6


def test_the_index_says_what_is_inside(directory: Path) -> None:
    index = json.loads((directory / INDEX).read_text())
    assert index["columns"] == list(COLUMNS)
    assert index["examples"] == len(EXAMPLES)
    assert index["files"]["source.ids"]["size"] == 4 * sum(len(source) for source, _ in EXAMPLES)


def test_pictures_are_kept_as_bytes_and_gathered_as_rows(tmp_path: Path) -> None:
    examples = [[bytes([n, 255 - n, 7]), [n]] for n in range(5)]
    made = TokenStore.build(
        tmp_path / "train", examples, columns=("picture", "label"), fingerprint="f", pictures=("picture",)
    )
    assert (tmp_path / "train" / "picture.ids").stat().st_size == 15
    opened = TokenStore.open(tmp_path / "train", "f")
    assert opened is not None
    for store in (made, opened):
        rows = store.gather_rows("picture", np.array([4, 0]))
        assert rows.dtype == np.uint8
        assert rows.tolist() == [[4, 251, 7], [0, 255, 7]]
        assert store.example("label", 3) == [3]
