"""Exported models where PyTorch is not installed: what needs it is named, all else works."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jumok.cli.app import run
from jumok.engines import opening
from jumok.engines.loading import load
from jumok.engines.options import DecodingOptions, Sampling
from jumok.errors import MissingExtraError

TEXT = "The small cat sees the dog."
INSTALL = r'needs torch, which is not installed\. Install it with: pip install "jumok\[train\]"'


@pytest.fixture(autouse=True)
def _no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    really: Callable[[str], Any] = opening.resolve

    def resolve(reference: str) -> Any:
        if ".torch:" in reference:
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        return really(reference)

    monkeypatch.setattr(opening, "resolve", resolve)


@pytest.mark.parametrize(
    ("task", "call", "named"),
    [
        ("translator", lambda model: model.translate(TEXT, sampling=Sampling()), r"Sampling \(`temperature=`"),
        ("translator", lambda model: model.translate(TEXT, bias={"cat": 1.0}), "`bias=`"),
        ("translator", lambda model: model.vectors([TEXT]), "Computing vectors with a translator"),
        ("translator", lambda model: model.score(["a " * 3000], ["a"]), "A text of more than 2,047 tokens"),
        ("classifier", lambda model: model.explain(TEXT), "Explaining a classification"),
        ("language_model", lambda model: model.generate("a " * 3000), "A text of more than 2,047 tokens"),
    ],
)
def test_what_needs_pytorch_is_named(models: Path, task: str, call: Callable[[Any], Any], named: str) -> None:
    with pytest.raises(MissingExtraError, match=f"^{named}.* {INSTALL}"):
        call(load(models / task / "model"))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["translate", "-m", "translator", "--top-k", "3"], "Sampling (--temperature, --top-k, --top-p) needs torch"),
        (["classify", "-m", "classifier", "--explain", "2"], "--explain needs torch"),
        (["embed", "-m", "translator"], "Computing vectors with a translator needs torch"),
        (["translate", "-m", "translator", "--engine", "torch"], "with PyTorch needs torch"),
    ],
)
def test_commands_name_the_option(
    models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], named: str
) -> None:
    monkeypatch.chdir(models)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert run([*arguments[:2], f"{arguments[2]}/model", *arguments[3:]]) == 2
    assert named in capsys.readouterr().err


def test_an_alignment_needs_no_pytorch(models: Path) -> None:
    [result] = load(models / "translator" / "model").translate_batch([TEXT], DecodingOptions(alignment=True))
    assert result.alignment is not None
    assert result.alignment.target == result.tokens


def test_a_skipped_line_is_not_classified(
    models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for option, skipped in (([], ""), (["--json"], '{"text": null, "label": null, "probabilities": null}')):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"cat\n\xff\ncat\n")))
        assert run(["classify", "-m", str(models / "classifier" / "model"), "--on-error", "skip", *option]) == 0
        said = capsys.readouterr()
        first, second, third = said.out.splitlines()
        assert (first, second) == (third, skipped)
        assert "standard input:2: not valid UTF-8; skipped" in said.err
