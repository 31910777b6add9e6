"""--valid and --probe: one file or two, wherever they stand, and never those of the training."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from commands import Jumok, train_arguments, write_corpus

from jumok.cli.options import PATH, SOURCE, TARGET
from jumok.cli.pair_files import PairFilesCommand


@click.command(cls=PairFilesCommand)
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
