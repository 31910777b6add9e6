"""jumok train translator."""

import errno
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from commands import SMALL, SOURCE, Jumok, sentences, start, train_arguments, write_corpus

from jumok.cli.train_options import TrainOptions
from jumok.cli.training import train_with_display
from jumok.display.lines import Display
from jumok.training.records import read_log


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Path:
    """The trained run, to be changed."""
    return Path(shutil.copytree(trained, tmp_path / "copy"))


def contents(directory: Path) -> dict[str, bytes]:
    """Every file of a run but the lock."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_what_is_decided_and_why_is_said_and_then_what_to_do_next(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path, [("", "비어 있어요"), *sentences()])
    ended = jumok("train", "translator", *train_arguments(tmp_path, steps=15))
    assert ended.code == 0, ended.err
    for said in ("preset = tiny  (", "time left", "BLEU", "1 × empty side: "):
        assert said in ended.out
    assert ended.out.rstrip().endswith(f"| jumok translate -m {tmp_path / 'run'}")


def test_the_same_command_again_changes_nothing(jumok: Jumok, copy: Path) -> None:
    before = contents(copy / "run")
    ended = jumok("train", "translator", *train_arguments(copy))
    assert ended.code == 0
    assert "is already finished, at step 30" in ended.out
    assert contents(copy / "run") == before


def renamed_corpus(directory: Path) -> list[Path]:
    """The corpus of a directory under names that say nothing."""
    return [(directory / old).rename(directory / new) for old, new in (("a.en", "one.txt"), ("a.ko", "two.txt"))]


def test_the_same_files_under_other_names_change_nothing_either(jumok: Jumok, copy: Path) -> None:
    before = contents(copy / "run")
    ended = jumok("train", "translator", *renamed_corpus(copy), *train_arguments(copy)[2:])
    assert ended.code == 0
    assert contents(copy / "run") == before
    assert "from a.en, a.ko)" in jumok("info", copy / "run").out


def test_a_model_that_learns_on_from_files_under_other_names_keeps_its_languages(jumok: Jumok, copy: Path) -> None:
    arguments = [*renamed_corpus(copy), *train_arguments(copy, steps=40)[2:], "--continue-with-changes"]
    assert jumok("train", "translator", *arguments).code == 0
    card = json.loads((copy / "run" / "model" / "card.json").read_text(encoding="utf-8"))
    assert card["step"] > 30
    assert (card["inputs"], card["languages"]) == (["a.en", "a.ko"], ["en", "ko"])


def test_changed_settings_are_shown_as_a_diff_and_change_nothing(jumok: Jumok, copy: Path) -> None:
    before = contents(copy / "run")
    ended = jumok("train", "translator", *train_arguments(copy, steps=40), "--set", "loss.smoothing=0.2")
    assert ended.code == 2
    assert "loss.smoothing: 0.1 → 0.2" in ended.err
    assert "stop.steps: 30 → 40" in ended.err
    assert "--fresh" in ended.err
    assert contents(copy / "run") == before


def test_continue_with_changes_goes_on_from_where_it_stood(jumok: Jumok, copy: Path) -> None:
    ended = jumok("train", "translator", *train_arguments(copy, steps=40), "--continue-with-changes")
    assert ended.code == 0, ended.err
    assert "continuing from step 30 of 40" in ended.out


@pytest.mark.parametrize("after", [["--quiet"], []])
def test_validation_pairs_may_stand_in_one_file(jumok: Jumok, tmp_path: Path, after: list[str]) -> None:
    write_corpus(tmp_path)
    (tmp_path / "valid.tsv").write_text("The cat.\t고양이.\nThe dog.\t개.\n", encoding="utf-8")
    valid = ["--valid", str(tmp_path / "valid.tsv")]
    ended = jumok("train", "translator", *train_arguments(tmp_path, steps=2), *valid, *after)
    assert ended.code == 0, ended.err
    facts = json.loads((tmp_path / "run" / "store" / "prepared.json").read_text(encoding="utf-8"))
    assert facts["valid_examples"] == 2
    checked = jumok("check", tmp_path / "a.en", tmp_path / "a.ko", *valid)
    assert checked.code in (0, 3), checked.err


def test_fresh_starts_again(jumok: Jumok, copy: Path) -> None:
    ended = jumok("train", "translator", *train_arguments(copy, steps=10), "--fresh")
    assert ended.code == 0, ended.err
    assert max(entry["step"] for entry in read_log(copy / "run")) == 10


def test_an_interrupted_training_goes_on_and_ends_with_the_same_bits(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    rarely = ["--set=validate.every=30"]
    process = start("train", "translator", *train_arguments(tmp_path, "stopped", 60), *rarely, "--json", cwd=tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] == "train":
            process.send_signal(signal.SIGINT)
            break
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert "Continue with the same command:\n  jumok train translator" in err
    stopped_at = read_log(tmp_path / "stopped")[-1]["step"]
    assert stopped_at < 60
    ended = jumok("train", "translator", *train_arguments(tmp_path, "stopped", 60), *rarely)
    assert f"continuing from step {stopped_at} of 60" in ended.out
    assert jumok("train", "translator", *train_arguments(tmp_path, "whole", 60), *rarely, "--quiet").code == 0
    for weights in ("checkpoints/step-00000060/model.safetensors", "model/weights.safetensors"):
        assert (tmp_path / "stopped" / weights).read_bytes() == (tmp_path / "whole" / weights).read_bytes()


def test_a_signal_before_the_first_step_leaves_without_training(tmp_path: Path) -> None:
    write_corpus(tmp_path)

    class Impatient(Display):
        def __call__(self, event: Any) -> None:
            super().__call__(event)
            if event["event"] == "corpus":
                signal.raise_signal(signal.SIGTERM)

    files = tmp_path / "a.en", tmp_path / "a.ko"
    code, result = train_with_display(Impatient(), "translator", *files, out=tmp_path / "run")
    assert (code, result) == (143, None)
    assert not read_log(tmp_path / "run")


def test_a_second_signal_leaves_at_once() -> None:
    program = (
        "import os, signal\n"
        "from jumok.training.interrupts import Interrupts\n"
        "with Interrupts() as interrupts:\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    assert interrupts.requested()\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    raise SystemExit(0)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == 130


def test_print_config_is_a_file_for_config_and_trains_nothing(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    arguments = [tmp_path / "a.en", tmp_path / "a.ko", "-o", tmp_path / "run", *SMALL]
    ended = jumok("train", "translator", *arguments, "--minutes=0.01", "--print-config")
    assert ended.code == 0, ended.err
    assert not (tmp_path / "run").exists()
    values = tomllib.loads(ended.out)
    assert values["stop"] == {"minutes": 0.01}
    assert values["model"]["d_model"] == 32
    assert "# tokenizer.size is left to the corpus" in ended.out
    assert re.search(r"^# base +6 \+ 6 +512 +8 +2048 +0\.1 +post$", ended.out, re.MULTILINE)
    assert re.search(r"^schedule\.warmup = \d+  # suits", ended.out, re.MULTILINE)
    (tmp_path / "all.toml").write_text(ended.out, encoding="utf-8")
    again = jumok("train", "translator", *arguments, "--config", tmp_path / "all.toml", "--print-config")
    assert tomllib.loads(again.out) == values


def test_the_file_comes_first_then_options_then_set(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("seed = 5\npreset = 'base'\nstop.minutes = 3\nloss.smoothing = 0.3\n", encoding="utf-8")
    options = TrainOptions(
        tmp_path / "run", config=file, preset="tiny", seed=6, steps=7, assignments=("seed=8", "model.norm=pre")
    )
    settings = options.settings()
    assert (settings.seed, settings.preset, settings.loss.smoothing) == (8, "tiny", 0.3)
    assert (settings.stop.steps, settings.stop.minutes) == (7, None)
    assert settings.model == {"norm": "pre"}


def test_two_lengths_are_refused(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    ended = jumok("train", "translator", *train_arguments(tmp_path), "--minutes=1")
    assert ended.code == 2
    assert "stop.steps and stop.minutes are both given" in ended.err
    assert not (tmp_path / "run").exists()


LABELS = [(f"{source} {number}", ("good", "bad")[number % 2]) for number, (source, _) in enumerate(sentences())]

BAD_CORPORA = {
    "unequal files": (
        ["one", "two", "three"],
        ["하나", "둘"],
        "a.en:3: it seems to be the first line without a partner",
    ),
    "empty corpus": ([], [], "there are no lines"),
    "one line": (["one"], ["하나"], "at least two different texts"),
    "all duplicates": (["one"] * 50, ["하나"] * 50, "at least two different texts"),
    "labels": ([pair[0] for pair in LABELS], [pair[1] for pair in LABELS], "looks like labels"),
    "only empty lines": ([""] * 30, [""] * 30, "empty side"),
    "a 1 MB line alone": (["a" * 1_000_001], ["b" * 1_000_001], "longer than 1,000,000 bytes"),
}


@pytest.mark.parametrize("name", BAD_CORPORA)
def test_a_bad_corpus_is_a_clear_error_and_leaves_no_run(jumok: Jumok, tmp_path: Path, name: str) -> None:
    source, target, message = BAD_CORPORA[name]
    for file, lines in (("a.en", source), ("a.ko", target)):
        (tmp_path / file).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    ended = jumok("train", "translator", *train_arguments(tmp_path))
    assert ended.code == 2
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert not (tmp_path / "run").exists()


def test_binary_garbage_is_a_clear_error(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "a.ko").write_bytes(bytes(range(256)) * 40)
    ended = jumok("train", "translator", *train_arguments(tmp_path))
    assert (ended.code, ended.out) == (2, "Reading and checking the corpus …\n")
    assert f"{tmp_path / 'a.ko'} is not UTF-8 text" in ended.err
    assert not (tmp_path / "run").exists()


def test_a_1_mb_line_among_others_is_left_out_and_named(jumok: Jumok, tmp_path: Path) -> None:
    pairs = sentences()
    write_corpus(tmp_path, [*pairs[:5], ("x" * 1_000_001, "y"), *pairs[5:]])
    ended = jumok("train", "translator", *train_arguments(tmp_path, steps=1))
    assert ended.code == 0, ended.err
    assert f"1 × line longer than 1,000,000 bytes: {tmp_path / 'a.en'}:6" in ended.out


def test_doubtful_corpora_are_trained_on_with_a_warning(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path, [*sentences(), *sentences()[:3]])
    ended = jumok("train", "translator", *train_arguments(tmp_path, steps=1))
    assert ended.code == 0
    assert "warning: pairs that repeat an earlier pair exactly: 3" in ended.err


def test_a_new_start_checks_the_corpus_too(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    assert jumok("train", "translator", *train_arguments(tmp_path, steps=1)).code == 0
    write_corpus(tmp_path, LABELS)
    ended = jumok("train", "translator", *train_arguments(tmp_path, steps=1), "--fresh")
    assert ended.code == 2
    assert "looks like labels" in ended.err


def test_standard_input_is_learned_from(jumok: Jumok, tmp_path: Path) -> None:
    lines = "".join(f"{source}\t{target}\n" for source, target in sentences())
    ended = jumok("train", "translator", "-", "-o", tmp_path / "run", "--steps=1", *SMALL, stdin=lines)
    assert ended.code == 0, ended.err
    assert "143 pairs to train on, 7 to validate on" in ended.out


def test_a_missing_file_is_named(jumok: Jumok, tmp_path: Path) -> None:
    ended = jumok("train", "translator", *train_arguments(tmp_path))
    assert ended.code == 2
    assert f"{tmp_path / 'a.en'}: no such file" in ended.err
    assert not (tmp_path / "run").exists()


def test_an_out_directory_below_a_file_is_a_clear_error(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    ended = jumok("train", "translator", *train_arguments(tmp_path, "a.en/run"))
    assert ended.code == 2
    assert "the directory cannot be created" in ended.err


def test_a_read_only_out_directory_is_a_clear_error(
    jumok: Jumok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_corpus(tmp_path)

    def refuse(_self: object, _path: Path) -> None:  # permissions do not stop root, who may run this test
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("jumok.files.FileSystem.make_directory", refuse)
    ended = jumok("train", "translator", *train_arguments(tmp_path))
    assert ended.code == 2
    assert "Read-only file system" in ended.err


def test_somebody_elses_directory_is_left_alone(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("mine", encoding="utf-8")
    ended = jumok("train", "translator", *train_arguments(tmp_path))
    assert ended.code == 2
    assert "thesis.txt" in ended.err
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.txt"]


def test_a_run_of_another_task_is_refused(jumok: Jumok, copy: Path) -> None:
    description = json.loads((copy / "run" / "run.json").read_bytes())
    (copy / "run" / "run.json").write_text(json.dumps({**description, "task": "classifier"}), encoding="utf-8")
    before = contents(copy / "run")
    ended = jumok("train", "translator", *train_arguments(copy))
    assert ended.code == 2
    assert "is a run of another task (classifier, not translator)" in ended.err
    assert contents(copy / "run") == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "batch.token=5"], 'Unknown setting "batch.token". Did you mean "batch.tokens"?'),
        (["--set", "seed"], '"seed" is not a setting'),
        (["--set", "seed=-1"], "seed=-1 cannot be used"),
        (["--seed", "-1"], "seed=-1 cannot be used"),
        (["--seed", "18446744073709551616"], "seed=18446744073709551616 cannot be used"),
        (["--set", "stop.minutes=NaN"], "stop.minutes=nan cannot be used"),
        (["--config", "missing.toml"], "missing.toml: cannot be read"),
    ],
)
def test_wrong_settings_are_found_before_anything_is_done(
    jumok: Jumok, tmp_path: Path, arguments: list[str], message: str
) -> None:
    write_corpus(tmp_path)
    ended = jumok("train", "translator", *train_arguments(tmp_path), *arguments)
    assert ended.code == 2
    assert message in ended.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("length", ["minutes", "epochs"])
@pytest.mark.parametrize("value", ["inf", "nan", "-inf", "-1", "0", "1e300"])
def test_lengths_that_cannot_be_are_refused(jumok: Jumok, tmp_path: Path, length: str, value: str) -> None:
    write_corpus(tmp_path)
    files = [tmp_path / "a.en", tmp_path / "a.ko"]
    ended = jumok("train", "translator", *files, "-o", tmp_path / "run", f"--{length}={value}")
    assert ended.code == 2
    assert f"stop.{length}={float(value)} cannot be used" in ended.err
    assert not (tmp_path / "run").exists()


def test_every_part_of_the_work_is_announced(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    ended = jumok("train", "translator", *train_arguments(tmp_path, steps=30), "--json")
    assert ended.code == 0, ended.err
    kinds = list(dict.fromkeys(json.loads(line)["event"] for line in ended.out.splitlines()))
    expected = ["reading", "vocabulary", "encoding", "corpus", "plan", "settings", "training", "train", "validating"]
    expected += ["valid", "averaging", "done", "exporting", "certifying", "finished"]
    assert [kind for kind in kinds if kind in expected] == expected


def test_a_name_that_is_too_long_is_named_without_a_traceback(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    long, source, target = tmp_path / ("x" * 300), tmp_path / "a.en", tmp_path / "a.ko"
    for command in (
        ["train", "translator", long, target, "-o", tmp_path / "run"],
        ["train", "translator", source, target, "-o", long],
        ["translate", "-m", long, source],
        ["info", "-m", long],
    ):
        ended = jumok(*command)
        assert (ended.code, ended.err.count("\n")) == (2, 1)
        assert str(long) in ended.err


def test_a_machine_too_slow_for_a_preset_gets_a_smaller_one_and_the_reason(
    jumok: Jumok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The corpus would suit `base`; an update of `base` and `small` is said to take a minute."""
    write_corpus(tmp_path)
    limits = (("tiny", 100.0), ("small", 1000.0), ("base", math.inf))
    monkeypatch.setattr("jumok.training.auto.PRESET_TOKENS", limits)
    seconds = iter([60.0, 60.0, 0.01])
    monkeypatch.setattr("jumok.recipes.planning._measure", lambda *_: next(seconds))
    arguments = [tmp_path / "a.en", tmp_path / "a.ko", "-o", tmp_path / "run", "--minutes=0.02", *SMALL]
    ended = jumok("train", "translator", *arguments)
    assert ended.code == 0, ended.err
    assert ended.out.count("Measuring the speed of this machine …") == 3
    assert re.search(r"^preset = tiny  \(small would see the corpus 0\.\d+ times in 0\.02 minutes\)$", ended.out, re.M)
    assert json.loads((tmp_path / "run" / "run.json").read_bytes())["settings"]["preset"] == "tiny"
