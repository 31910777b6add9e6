"""What takes minutes: the demos as users run them, and a shorter form of `make soak`."""

import re
import sys
from pathlib import Path

import pytest
import soak
from commands import start

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def demo(what: str, directory: Path) -> str:
    """What the demo prints, in a process of its own."""
    process = start("demo", what, "--directory", directory / "demo", cwd=directory)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out


def test_the_demo_of_a_translator_translates_what_it_has_never_seen(tmp_path: Path) -> None:
    printed = demo("translator", tmp_path)
    [share] = re.findall(r"exactly right: .*?([\d.]+) ?%", printed)
    assert float(share) > 80
    assert (tmp_path / "demo" / "attention.png").is_file()
    translate = start("translate", "-m", tmp_path / "demo" / "run", cwd=tmp_path)
    assert translate.communicate("I am a student.\n")[0].strip() in ("저는 학생이에요.", "나는 학생이에요.")


def test_the_demo_of_a_classifier_is_nearly_always_right(tmp_path: Path) -> None:
    [share] = re.findall(r"correct: ([\d.]+)% of 1,000 reviews", demo("classifier", tmp_path))
    assert float(share) > 90


def test_the_demo_of_a_language_model_writes_korean(tmp_path: Path) -> None:
    _, _, written = demo("lm", tmp_path).partition("3. Generated sentences\n")
    sentences = [line for line in written.partition("\n4. Try it\n")[0].splitlines() if line.strip()]
    assert len(sentences) >= 5
    assert all(re.search("[가-힣]", sentence) for sentence in sentences)


def test_a_hundred_kills_change_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["soak", "--kills", "100"])
    soak.main()
    assert "round 3: 100 kills" in capsys.readouterr().out
