from __future__ import annotations

import io
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faulty_files import FaultyFiles, crashes
from jumok.files import (
    MANIFEST,
    REAL_FILES,
    UnreadableError,
    WriteError,
    blocks,
    clean_leftovers,
    format_json,
    is_leftover,
    make_directory_durably,
    open_verified,
    parse_json_object,
    read_bounded,
    read_manifest,
    read_verified,
    remove,
    replace_file_durably,
    replacing_durably,
    set_aside,
    temporary_directory,
    verify_directory,
    write_directory_durably,
)
from jumok.files.blocks import VerifiedBlocks, block_sums
from jumok.files.json_text import shown
from jumok.files.reading import FileRecord
from unsynced_disk import Disk

FILES = {"a.bin": b"first" * 100, "b.bin": b"", "c.json": b"{}"}


def write(path: Path, fs: FaultyFiles | None = None) -> None:
    write_directory_durably(fs or REAL_FILES, path, FILES, bytes_needed=502)


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir() if file.name != MANIFEST}


def test_directory_holds_what_was_given_and_verifies(tmp_path: Path) -> None:
    write(tmp_path / "d")
    assert contents(tmp_path / "d") == FILES
    assert {name: record.size for name, record in verify_directory(tmp_path / "d").items()} == {
        name: len(data) for name, data in FILES.items()
    }
    assert [entry.name for entry in tmp_path.iterdir()] == ["d"]


def test_everything_is_synced_before_the_name_that_makes_it_count(tmp_path: Path) -> None:
    fs = FaultyFiles()
    write(tmp_path / "d", fs)
    order = fs.operations
    temporary = order[0][1]
    assert order[0] == ("make_directory", temporary)
    assert temporary.startswith(".tmp-d-")
    manifest_begun = order.index(("create", MANIFEST))
    for name in FILES:
        assert order.index(("sync", name)) < manifest_begun
    assert order[-4:] == [
        ("sync", MANIFEST),
        ("sync_directory", temporary),
        ("rename", "d"),
        ("sync_directory", tmp_path.name),
    ]


def test_a_crash_anywhere_leaves_all_or_nothing(tmp_path: Path) -> None:
    place = tmp_path / "place"

    def prepare() -> None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()

    for moment in crashes(lambda fs: write(place / "d", fs), root=place, prepare=prepare, outcomes=64):
        if (place / "d").exists():
            assert set(verify_directory(place / "d")) == set(FILES), moment
        clean_leftovers(REAL_FILES, place)
        assert {entry.name for entry in place.iterdir()} <= {"d"}, moment


def test_a_replaced_file_is_old_or_new_after_a_crash_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    prepare = lambda: _write(path, b"old")  # noqa: E731
    replace = lambda fs: replace_file_durably(fs, path, b"new")  # noqa: E731
    for moment in crashes(replace, root=tmp_path, prepare=prepare, outcomes=64):
        assert path.read_bytes() in (b"old", b"new"), moment
        clean_leftovers(REAL_FILES, tmp_path)
        assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def test_what_was_written_is_not_lost_with_the_power_afterwards(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    disk = Disk(tmp_path)
    fs = FaultyFiles(disk=disk)
    write(tmp_path / "d", fs)
    replace_file_durably(fs, tmp_path / "f", b"new")
    make_directory_durably(fs, tmp_path / "deep" / "deeper")
    [state] = disk.states(100, seed=0)  # everything is secured: nothing else is possible
    assert state.lost == []
    disk.become(state)
    assert (tmp_path / "deep" / "deeper").is_dir()
    assert contents(tmp_path / "d") == FILES
    assert (tmp_path / "f").read_bytes() == b"new"


def test_a_disk_that_runs_full_leaves_nothing_and_says_where_and_how_much(tmp_path: Path) -> None:
    counting = FaultyFiles()
    write(tmp_path / "counted", counting)
    assert counting.fallible == 1 + 3 * 4 + 3  # the directory; three files and the manifest; its syncs and its name
    for number in range(1, counting.fallible):
        with pytest.raises(WriteError, match="disk is full") as raised:
            write(tmp_path / "d", FaultyFiles(fails_at=number))
        assert str(tmp_path / "d") in str(raised.value)
        assert f"{502 + (1 << 20):,} bytes are needed" in str(raised.value)
        assert [entry.name for entry in tmp_path.iterdir()] == ["counted"]


def test_too_little_space_is_known_before_anything_is_written(tmp_path: Path) -> None:
    fs = FaultyFiles(free=1000)
    with pytest.raises(WriteError, match="1,000 bytes are free"):
        write(tmp_path / "d", fs)
    with pytest.raises(WriteError, match="1,000 bytes are free"):
        replace_file_durably(fs, tmp_path / "f", b"x")
    assert not [operation for operation in fs.operations if operation[0] in ("make_directory", "create")]


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "d")
    with pytest.raises(WriteError, match="exists already"):
        write(tmp_path / "d")
    assert contents(tmp_path / "d") == FILES


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match=r"missing/d: cannot be written \(No such file or directory\)"):
        write(tmp_path / "missing" / "d")
    (tmp_path / "file").touch()
    with pytest.raises(WriteError, match=r"cannot be created"):
        make_directory_durably(REAL_FILES, tmp_path / "file" / "d")


def test_a_content_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> bytes:
        raise RuntimeError("no content")

    with pytest.raises(RuntimeError, match="no content"):
        write_directory_durably(REAL_FILES, tmp_path / "d", {"a": b"x", "b": fail}, bytes_needed=1)
    assert list(tmp_path.iterdir()) == []


def test_permissions_are_what_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "d")
        replace_file_durably(REAL_FILES, tmp_path / "f", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o750
    for file in [*(tmp_path / "d").iterdir(), tmp_path / "f"]:
        assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_files_beside_the_listed_ones_do_not_matter(tmp_path: Path) -> None:
    write(tmp_path / "d")
    (tmp_path / "d" / "README").write_text("mine")
    assert "README" not in verify_directory(tmp_path / "d")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: (d / "a.bin").unlink(), r"a\.bin: is missing"),
        (lambda d: (d / MANIFEST).unlink(), r"MANIFEST\.json: is missing"),
        (lambda d: (d / "a.bin").write_bytes(b"first" * 99), r"a\.bin: is damaged: it has 495 bytes"),
        (lambda d: (d / "a.bin").write_bytes(b"worst" * 100), r"a\.bin: is damaged: its SHA-256"),
        (lambda d: ((d / "b.bin").unlink(), (d / "b.bin").symlink_to("/dev/null")), r"b\.bin: is a symbolic link"),
        (lambda d: ((d / "b.bin").unlink(), os.mkfifo(d / "b.bin")), r"b\.bin: is not a regular file"),
        (lambda d: ((d / "b.bin").unlink(), (d / "b.bin").mkdir()), r"b\.bin: is not a regular file"),
    ],
)
def test_damage_is_found_and_named(tmp_path: Path, damage: object, message: str) -> None:
    write(tmp_path / "d")
    assert callable(damage)
    damage(tmp_path / "d")
    with pytest.raises(UnreadableError, match=message):
        verify_directory(tmp_path / "d")


RECORD = {"size": 1, "sha256": "0" * 64}


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"format": 1, "files": {"../x": RECORD}}, "not a plain file name"),
        ({"format": 1, "files": {"/etc/passwd": RECORD}}, "not a plain file name"),
        ({"format": 1, "files": {"a/b": RECORD}}, "not a plain file name"),
        ({"format": 1, "files": {"a\\b": RECORD}}, "not a plain file name"),
        ({"format": 1, "files": {"..": RECORD}}, "not a plain file name"),
        ({"format": 1, "files": {"": RECORD}}, "not a plain file name"),
        ({"format": 1, "files": {MANIFEST: RECORD}}, "not a plain file name"),
        ({"format": 1, "files": {"x" * 10_000 + "/": RECORD}}, "not a plain file name"),
        ({"format": 1, "files": {"a": {"size": 1}}}, 'needs "size" and "sha256"'),
        ({"format": 1, "files": {"a": {**RECORD, "size": -1}}}, "impossible size or sha256"),
        ({"format": 1, "files": {"a": {**RECORD, "size": True}}}, "impossible size or sha256"),
        ({"format": 1, "files": {"a": {**RECORD, "sha256": "0" * 63 + "A"}}}, "impossible size or sha256"),
        ({"format": 1, "files": []}, 'no valid "format" and "files"'),
        ({"format": True, "files": {}}, 'no valid "format" and "files"'),
        ({"files": {}}, 'no valid "format" and "files"'),
        ({"format": 2}, r"has format 2, this Jumok reads up to 1\. Upgrade"),
    ],
)
def test_a_manifest_that_lies_is_refused(tmp_path: Path, manifest: object, message: str) -> None:
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(UnreadableError, match=message) as raised:
        verify_directory(tmp_path)
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1, "a": 1}', "the key 'a' appears twice"),
        (b'{"a": {"b": 1, "b": 2}}', "the key 'b' appears twice"),
        (b'{"a": NaN}', "not a finite number"),
        (b'{"a": -Infinity}', "not a finite number"),
        (b'{"a": 1e999}', "not a finite number"),
        (b'{"a": ' + b"9" * 100_000 + b"}", "not valid JSON"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not valid JSON"),
        (b"\xff{}", "not valid JSON"),
        (b"", "not valid JSON"),
        (b"[1]", "holds a JSON list"),
    ],
)
def test_json_is_read_strictly(data: bytes, message: str) -> None:
    with pytest.raises(UnreadableError, match=f"^f: .*{message}"):
        parse_json_object(data, Path("f"))


TEXT = st.text(max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8
)


@settings(max_examples=50)
@given(st.dictionaries(TEXT, VALUES, max_size=3))
def test_json_reads_back_equal(value: dict[str, object]) -> None:
    for indent in (None, 1):
        assert parse_json_object(format_json(value, indent=indent), Path("f")) == value


@pytest.mark.parametrize(
    "value", [{"a": (1, 2)}, {1: 2}, {"a": {True: 1}}, {"a": float("nan")}, {"a": float("inf")}, {"a": {1, 2}}]
)
def test_what_json_would_change_is_not_written(value: dict[str, object]) -> None:
    with pytest.raises(
        (TypeError, ValueError), match=r"JSON would change this value .*: \{|not JSON (compliant|serializable)"
    ):
        format_json(value)


def test_json_too_long_to_be_read_again_is_not_written() -> None:
    with pytest.raises(ValueError, match="at most 100 can be read"):
        format_json({"a": "x" * 100}, limit=100)


def test_a_file_larger_than_expected_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        file.truncate(1 << 40)  # sparse: takes no space on the disk, would take a terabyte of memory
    with pytest.raises(UnreadableError, match=r"f: has 1,099,511,627,776 bytes, at most 1,000"):
        read_bounded(tmp_path / "f", 1000)


def test_only_leftovers_are_cleaned(tmp_path: Path) -> None:
    (tmp_path / ".tmp-a-1").mkdir()
    (tmp_path / ".tmp-a-1" / "x").touch()
    (tmp_path / ".trash-b-2").mkdir()
    (tmp_path / ".tmp-run.json-3").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    (tmp_path / ".trash-link-4").symlink_to(tmp_path / "elsewhere")
    clean_leftovers(REAL_FILES, tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["elsewhere"]
    assert (tmp_path / "elsewhere" / "kept").exists()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"../x": {"size": 1, "sha256": "0" * 64}}, "lists '../x', which is not a plain file name"),
        ({"MANIFEST.json": {"size": 1, "sha256": "0" * 64}}, "lists 'MANIFEST.json', which is not"),
        ({"x": {"size": 1}}, 'needs "size" and "sha256" for \'x\''),
        ({"x": {"size": -1, "sha256": "0" * 64}}, "has an impossible size or sha256 for 'x'"),
        ({"x": {"size": True, "sha256": "0" * 64}}, "has an impossible size or sha256 for 'x'"),
        ({"x": {"size": 1, "sha256": "0" * 63}}, "has an impossible size or sha256 for 'x'"),
    ],
)
def test_an_impossible_record_is_named_with_its_manifest(
    entry: dict[str, object], message: str, tmp_path: Path
) -> None:
    (tmp_path / "MANIFEST.json").write_text(json.dumps({"format": 1, "files": entry}), encoding="utf-8")
    with pytest.raises(UnreadableError) as raised:
        read_manifest(tmp_path)
    assert str(raised.value).startswith(f"{tmp_path / 'MANIFEST.json'}: ")
    assert message in str(raised.value)


def test_a_verified_file_is_read_from_its_beginning(tmp_path: Path) -> None:
    write_directory_durably(REAL_FILES, tmp_path / "d", {"x": b"content"}, bytes_needed=7)
    record = read_manifest(tmp_path / "d")["x"]
    with open_verified(tmp_path / "d" / "x", record) as file:
        assert file.read() == b"content"
    assert read_verified(tmp_path / "d" / "x", record, 7) == b"content"
    with pytest.raises(UnreadableError, match="7 bytes, at most 6"):
        read_verified(tmp_path / "d" / "x", record, 6)
    for changed in (b"Content", b"more content"):
        (tmp_path / "d" / "x").write_bytes(changed)
        for read in (
            lambda: open_verified(tmp_path / "d" / "x", record),
            lambda: read_verified(tmp_path / "d" / "x", record, 99),
        ):
            with pytest.raises(UnreadableError, match="x: is damaged: "):
                read()


@pytest.mark.parametrize(("length", "expected"), [(78, 80), (79, 81)])
def test_a_long_value_is_cut_in_a_message(length: int, expected: int) -> None:
    text = shown("x" * length)  # and two quotation marks
    assert len(text) == expected
    assert text.endswith("…") == (length > 78)
    assert text[:79] == "'" + "x" * 78


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize("error", [PermissionError, OSError])
@pytest.mark.parametrize("name", [".trash-a-1", "a"])
def test_only_a_leftover_in_use_on_windows_may_stay(
    windows: bool, error: type[OSError], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(type(REAL_FILES)):  # type: ignore[misc]
        def remove(self, path: Path) -> None:
            raise error(5, "in use")

    monkeypatch.setattr("jumok.system.WINDOWS", windows)
    if windows and error is PermissionError and name == ".trash-a-1":
        remove(Refusing(), tmp_path / name)
        return
    with pytest.raises(WriteError, match=rf"{name}: a leftover cannot be removed \(in use\)"):
        remove(Refusing(), tmp_path / name)


def test_what_is_set_aside_has_another_name_that_counts_as_a_leftover(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    trash = set_aside(REAL_FILES, tmp_path / "a")
    assert [entry.name for entry in tmp_path.iterdir()] == [trash.name]
    assert trash.read_bytes() == b"x"
    assert is_leftover(trash.name)
    with pytest.raises(WriteError, match=r"a: cannot be moved away \(No such file or directory\)"):
        set_aside(REAL_FILES, tmp_path / "a")


@pytest.mark.parametrize(
    ("content", "message", "damaged"),
    [
        ({"format": 2, "files": {}}, "has format 2, this Jumok reads up to 1. Upgrade: pip install --upgrade", False),
        ({"format": 1}, 'has no valid "format" and "files"', True),
        ({"format": True, "files": {}}, 'has no valid "format" and "files"', True),
        ({"format": 0, "files": {}}, 'has no valid "format" and "files"', True),
        ({"files": {}}, 'has no valid "format" and "files"', True),
        ([], "holds a JSON list", True),
    ],
)
def test_a_manifest_that_cannot_be_used_is_named(content: object, message: str, damaged: bool, tmp_path: Path) -> None:
    (tmp_path / "MANIFEST.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UnreadableError) as raised:
        read_manifest(tmp_path)
    assert str(raised.value).startswith(f"{tmp_path / 'MANIFEST.json'}: {message}")
    assert raised.value.damaged is damaged


def test_the_operations_do_what_they_are_called(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with REAL_FILES.create(path) as file:
        REAL_FILES.write(file, memoryview(b"one"))
    with pytest.raises(FileExistsError):
        REAL_FILES.create(path)
    with REAL_FILES.open_to_append(path) as file:
        REAL_FILES.write(file, memoryview(b" two"))
        assert path.read_bytes() == b"one two"  # nothing waits in a buffer
    REAL_FILES.truncate(path, 5)
    assert path.read_bytes() == b"one t"
    with REAL_FILES.create_unnamed(tmp_path) as file:
        assert isinstance(file, io.FileIO)  # without a buffer
        link = Path(f"/proc/self/fd/{file.fileno()}")
        assert not link.is_symlink() or os.readlink(link).startswith(str(tmp_path))
        REAL_FILES.write(file, memoryview(b"x" * 10))
        file.seek(0)
        assert file.read() == b"x" * 10
        assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_file_that_takes_less_than_it_is_given_gets_the_rest() -> None:
    class Slow:
        taken = b""

        def write(self, data: memoryview) -> int:
            self.taken += bytes(data[:2])
            return len(data[:2])

    slow = Slow()
    REAL_FILES.write(slow, memoryview(b"abcde"))  # type: ignore[arg-type]
    assert slow.taken == b"abcde"


def test_a_large_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with replacing_durably(REAL_FILES, tmp_path / "a") as file:
        assert file.write(b"new " * 50_000) == 200_000
        assert (tmp_path / "a").read_bytes() == b"old"
    assert (tmp_path / "a").read_bytes() == b"new " * 50_000
    with pytest.raises(RuntimeError), replacing_durably(REAL_FILES, tmp_path / "a") as file:  # noqa: PT012
        file.write(b"newer")
        raise RuntimeError
    assert (tmp_path / "a").read_bytes() == b"new " * 50_000
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_temporary_directory_is_a_leftover_while_it_is_there(tmp_path: Path) -> None:
    with temporary_directory(REAL_FILES, tmp_path) as directory:
        assert directory.is_dir()
        assert directory.parent == tmp_path
        assert is_leftover(directory.name)
        (directory / "x").touch()
    assert not list(tmp_path.iterdir())


def test_directories_inside_of_a_durable_directory_have_manifests_of_their_own(tmp_path: Path) -> None:
    inside = {"one": {"x": b"1"}, "two": {"y": lambda: b"22"}}
    write_directory_durably(REAL_FILES, tmp_path / "d", {"z": b"333"}, bytes_needed=6, directories=inside)
    assert verify_directory(tmp_path / "d").keys() == {"z"}
    assert {name: verify_directory(tmp_path / "d" / name).keys() for name in inside} == {"one": {"x"}, "two": {"y"}}
    assert (tmp_path / "d" / "two" / "y").read_bytes() == b"22"


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_directory_durably(REAL_FILES, tmp_path / "d", {"x": b"content"}, bytes_needed=7)
    path, record = tmp_path / "d" / "x", read_manifest(tmp_path / "d")["x"]

    def refuse(*_arguments: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    for read in (lambda: open_verified(path, record), lambda: read_bounded(path, 7)):
        with pytest.raises(UnreadableError) as raised:
            read()
        assert str(raised.value).startswith(f"{path}: cannot be read (Permission denied). Ask its owner")
        assert raised.value.damaged is False


def test_json_is_written_to_be_read_by_people_too() -> None:
    assert format_json({"a": {"b": "한"}}) == '{\n "a": {\n  "b": "한"\n }\n}\n'.encode()
    assert format_json({"a": 1}, indent=None) == b'{"a": 1}\n'
    assert format_json({"a": "x"}, limit=11, indent=None) == b'{"a": "x"}\n'


def test_json_that_is_no_json_says_what_it_is() -> None:
    with pytest.raises(UnreadableError, match=r"f: is not valid JSON \((nested too deeply|maximum recursion depth)"):
        parse_json_object(b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", Path("f"))
    with pytest.raises(UnreadableError, match="'1e999' is not a finite number"):
        parse_json_object(b'{"a": 1e999}', Path("f"))


def test_a_directory_that_exists_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(WriteError, match=r"d: cannot be written \(it exists already\)"):
        write_directory_durably(REAL_FILES, tmp_path / "d", {"x": b""}, bytes_needed=0)
    assert [entry.name for entry in tmp_path.iterdir()] == ["d"]


def blocks_of(path: Path, size: int) -> VerifiedBlocks:
    """A file of that size, and the sums of its blocks."""
    data = bytes(number % 251 for number in range(size))
    path.write_bytes(data)
    return VerifiedBlocks(path, FileRecord(size, ""), block_sums(data), blocks.BLOCK_BYTES)


def test_any_part_of_a_file_is_read_by_its_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 10)
    for size in (0, 9, 10, 25):
        for start in range(size + 1):
            for stop in range(start, size + 1):
                found = blocks_of(tmp_path / "a", size).read(start, stop)
                assert found == bytes(range(start, stop))


def test_the_block_that_was_read_last_is_not_read_again(tmp_path: Path) -> None:
    file = blocks_of(tmp_path / "a", 30)
    assert file.read(0, 3) == b"\0\1\2"
    (tmp_path / "a").unlink()
    assert file.read(2, 5) == b"\2\3\4"


def test_what_is_wrong_with_blocks_is_said_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a"

    def said(read: Callable[[], object]) -> str:
        with pytest.raises(UnreadableError) as error:
            read()
        return str(error.value)

    file = blocks_of(path, 3000)
    assert said(lambda: file.read(-1, 3)) == f"{path}: has no bytes -1 to 3."
    assert said(lambda: file.read(5, 4)) == f"{path}: has no bytes 5 to 4."
    assert said(lambda: file.read(0, 3001)) == f"{path}: has no bytes 0 to 3,001."
    fewer = said(lambda: VerifiedBlocks(path, FileRecord(3000, ""), [], blocks.BLOCK_BYTES))
    assert fewer == f"{path}: does not have as many blocks as there are sums of them."
    path.write_bytes(bytes(3000))
    assert said(lambda: file.read(0, 1)) == (
        f"{path}: is damaged: a block does not have the SHA-256 that was recorded."
    )
    path.unlink()
    assert said(lambda: file.read(0, 1)) == f"{path}: is missing."
