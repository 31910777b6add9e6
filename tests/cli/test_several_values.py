"""--valid, --probe and --columns take as many values as are meant, wherever they stand, and no file of the training."""

import struct
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from commands import Jumok, train_arguments, write_corpus

from jumok.cli.options import PATH, SOURCE, TARGET
from jumok.cli.several_values import (
    Count,
    SeveralValuesCommand,
    any_files,
    columns_of_a_task,
    files_with_pairs,
    labelled_files,
    two_values,
)


@click.command(cls=SeveralValuesCommand, several={"--valid": files_with_pairs})
@SOURCE
@TARGET
@click.option("--valid", type=PATH, multiple=True)
@click.option("-o", "--out")
@click.option("--quiet", is_flag=True)
def show(source: Path, target: Path | None, valid: tuple[Path, ...], out: str | None, quiet: bool) -> None:
    print(*[str(path) for path in (source, target) if path], "|", *map(str, valid))


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("a.en a.ko", "a.en a.ko |"),
        ("a.en a.ko --valid v.en v.ko", "a.en a.ko | v.en v.ko"),
        ("a.en a.ko --valid v.tsv", "a.en a.ko | v.tsv"),
        ("a.en a.ko --valid=v.tsv -o run", "a.en a.ko | v.tsv"),
        ("--valid v.tsv a.en a.ko", "a.en a.ko | v.tsv"),
        ("--valid=v.tsv a.en a.ko", "a.en a.ko | v.tsv"),
        ("--valid v.TMX.gz a.tsv", "a.tsv | v.TMX.gz"),
        ("--valid v.jsonl.zst a.en a.ko -o run", "a.en a.ko | v.jsonl.zst"),
        ("--valid v.en v.ko a.en a.ko", "a.en a.ko | v.en v.ko"),
        ("--valid=v.en v.ko a.en a.ko", "a.en a.ko | v.en v.ko"),
        ("--valid=v.en --valid=v.ko a.en a.ko", "a.en a.ko | v.en v.ko"),
        ("--valid v.en v.ko a.csv", "a.csv | v.en v.ko"),
        ("a.en --valid v.tsv a.ko", "a.en a.ko | v.tsv"),
        ("--valid v.txt -o run a.en a.ko", "a.en a.ko | v.txt"),
        ("--valid v.txt --quiet a.tsv", "a.tsv | v.txt"),
        ("--valid v.txt a.tsv", "a.tsv | v.txt"),
        ("-o run a.tsv --valid - --quiet", "a.tsv | -"),
        ("--valid v.tsv -- a.en --valid", "a.en --valid | v.tsv"),
    ],
)
def test_files_are_told_apart(arguments: str, shown: str) -> None:
    ended = CliRunner().invoke(show, arguments.split())
    assert ended.output.strip() == shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--valid v.txt a.en a.ko", "it is not clear which of these files belong to --valid"),
        ("a.en a.ko --valid", "Option '--valid' requires an argument"),
        ("a.en a.ko --valid -o run", "Option '--valid' requires an argument"),
        ("--valid --quiet a.en a.ko", "Option '--valid' requires an argument"),
        ("--valid v.en v.ko a.en a.ko b.ko", "unexpected extra argument (b.ko)"),
        ("--valid v.en v.ko", "Missing argument 'SRC'"),
    ],
)
def test_what_cannot_be_told_apart_is_an_error(arguments: str, message: str) -> None:
    ended = CliRunner().invoke(show, arguments.split())
    assert ended.exit_code == 2
    assert message in " ".join(ended.output.split())


def with_any_arguments(count: Count) -> click.Command:
    """A command that takes any number of files; its --valid takes as many as `count` says."""

    @click.command(cls=SeveralValuesCommand, several={"--valid": count})
    @click.argument("files", nargs=-1, required=True)
    @click.option("--valid", multiple=True)
    @click.option("--pair", nargs=2)
    @click.option("-o", "--out")
    @click.option("--quiet", is_flag=True)
    def show(files: tuple[str, ...], valid: tuple[str, ...], **_others: object) -> None:
        print(*files, "|", *valid)

    return show


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("a.txt --valid v.txt w.txt", "a.txt | v.txt w.txt"),
        ("-o run --quiet a.txt --valid v.txt w.txt x.txt", "a.txt | v.txt w.txt x.txt"),
        ("--valid v.txt w.txt -o run a.txt b.txt", "a.txt b.txt | v.txt w.txt"),
        ("--valid=v.txt w.txt -- a.txt", "a.txt | v.txt w.txt"),
        ("--valid v.txt a.txt", "a.txt | v.txt"),
        ("--valid v.txt a.txt -o run --pair x y", "a.txt | v.txt"),
        ("--valid v.txt --valid w.txt a.txt b.txt", "a.txt b.txt | v.txt w.txt"),
    ],
)
@pytest.mark.parametrize("count", [any_files, labelled_files])
def test_any_number_of_files_belongs_to_the_option_if_there_are_others(
    count: Count, arguments: str, shown: str
) -> None:
    assert CliRunner().invoke(with_any_arguments(count), arguments.split()).output.strip() == shown


def test_of_many_files_none_is_taken_for_validation_by_guess() -> None:
    ended = CliRunner().invoke(with_any_arguments(any_files), ["--valid", "v.txt", "a.txt", "b.txt", "-o", "run"])
    assert ended.exit_code == 2
    assert "it is not clear which of these files belong to --valid" in " ".join(ended.output.split())


def write_idx(directory: Path, name: str, count: int = 8) -> list[str]:
    """Grey pictures, bright or dark, and their labels, as the files of MNIST; returns their names."""
    names = [f"{name}-images-idx3-ubyte", f"{name}-labels-idx1-ubyte"]
    labels = bytes(number % 2 for number in range(count))
    pixels = b"".join(bytes([label * 200, *range(63)]) for label in labels)
    (directory / names[0]).write_bytes(struct.pack(">4I", 0x803, count, 8, 8) + pixels)
    (directory / names[1]).write_bytes(struct.pack(">2I", 0x801, count) + labels)
    return names


def test_idx_files_of_pictures_and_labels_belong_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    train, test = write_idx(tmp_path, "train"), write_idx(tmp_path, "test")
    command = with_any_arguments(labelled_files)
    for arguments in ([*train, "--valid", *test], ["--valid", *test, *train], ["-o", "run", "--valid", *test, *train]):
        assert CliRunner().invoke(command, arguments).output.split() == [*train, "|", *test]


def test_validation_pictures_in_idx_files(jumok: Jumok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    train, test = write_idx(tmp_path, "train", 20), write_idx(tmp_path, "test", 6)
    ended = jumok("train", "classifier", *train, "--valid", *test, "-o", "run", "--steps", "1")
    assert ended.code == 0, ended.err
    assert "corpus: 20 pictures to train on, 6 to validate on\nclasses: 0 10, 1 10\n" in ended.out  # no vocabulary


def test_two_values_are_taken_wherever_the_option_stands() -> None:
    command = with_any_arguments(two_values)
    for arguments in (
        "a b --valid v w",
        "--valid v w a b",
        "a --valid v w b",
        "--valid=v w a b",
        "a b --valid=v --valid=w",
    ):
        assert CliRunner().invoke(command, arguments.split()).output.strip() == "a b | v w"


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["text"], 1),
        (["text", "label"], 2),
        (["text", "t.tsv"], 1),
        (["t.tsv", "label", "t.tsv"], 2),
        (["a", "t.tsv", "t.tsv"], 2),
    ],
)
def test_a_second_column_is_told_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], count: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.tsv").touch()
    assert columns_of_a_task(words, False) == count


@pytest.mark.parametrize("form", [["--valid", "valid.tsv"], ["--valid=valid.tsv"]])
def test_one_validation_file_before_the_training_files(
    jumok: Jumok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: list[str]
) -> None:
    write_corpus(tmp_path)
    (tmp_path / "valid.tsv").write_text("The cat.\t고양이.\nThe dog.\t개.\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    ended = jumok("train", "translator", *form, *train_arguments(tmp_path, steps=1))
    assert ended.code == 0, ended.err
    assert "150 pairs to train on, 2 to validate on" in ended.out
