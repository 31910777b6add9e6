"""What a Python programmer sees: types, help, messages."""

import inspect
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, get_overloads, get_type_hints

import pytest

import jumok
from jumok.engines.language_model.text import TextLanguageModel
from jumok.engines.loading import load
from jumok.engines.options import (
    DecodingKeywords,
    DecodingOptions,
    GenerationKeywords,
    GenerationOptions,
)
from jumok.engines.painter.options import PaintingKeywords, PaintingOptions
from jumok.engines.painter.text import TextPainter
from jumok.engines.translator.text import TextTranslator
from jumok.errors import ArgumentError
from jumok.tasks import TASKS, resolve

ROOT = Path(__file__).parents[2]
PROGRAM = """
import jumok
from typing import assert_type
from jumok.engines.classifier.text import Classification, TextClassifier
from jumok.engines.language_model.text import TextLanguageModel
from jumok.engines.translator.text import TextTranslator

translator = jumok.load("run", task="translator", threads=2, fast=True)
assert_type(translator, TextTranslator)
assert_type(translator.translate("a", beam=1, sampling=jumok.Sampling(seed=1)), str)
assert_type(translator.translate(["a"]), list[str])
classifier = jumok.load("run", "torch", task="classifier")
assert_type(classifier, TextClassifier)
assert_type(classifier.classify("a"), Classification)
assert_type(classifier.classify(["a"]), list[Classification])
assert_type(jumok.load("run", task="language_model"), TextLanguageModel)
jumok.load("run").anything()
translator.translate("a", beem=1)  # an error
translator.translate(None)  # an error
jumok.load("run", task="language_model").generate("a", temperature="hot")  # an error
"""


@pytest.mark.slow
def test_a_type_checker_knows_what_load_returns_and_which_options_there_are(tmp_path: Path) -> None:
    from mypy import api

    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    settings = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    out, _, _ = api.run([*settings, "--follow-imports=silent", "--no-error-summary", str(tmp_path / "program.py")])
    wrong = [number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# an error")]
    assert sorted({int(line.split(":")[1]) for line in out.splitlines() if ": error:" in line}) == wrong, out


def test_load_has_a_type_for_every_task() -> None:
    """The options of each are those of the facade's `open`."""
    found = {}
    for overload in get_overloads(load):
        signature = inspect.signature(overload)
        found[str(signature.parameters["task"].annotation)] = signature.return_annotation
        if signature.return_annotation != "Any":
            task = next(task for task in TASKS.values() if task.facade.endswith(f":{signature.return_annotation}"))
            options = signature.parameters.keys() - {"path", "task"}
            assert options == inspect.signature(resolve(task.facade).open).parameters.keys() - {"bundle", "encoder"}
    assert found == {
        "Literal['translator']": "TextTranslator",
        "Literal['classifier']": "TextClassifier",
        "Literal['image_classifier']": "PictureClassifier",
        "Literal['language_model']": "TextLanguageModel",
        "Literal['painter']": "TextPainter",
        "str | None": "Any",
    }


@pytest.mark.parametrize(
    ("keywords", "options", "method"),
    [
        (DecodingKeywords, DecodingOptions, TextTranslator.translate),
        (GenerationKeywords, GenerationOptions, TextLanguageModel.generate),
        (PaintingKeywords, PaintingOptions, TextPainter.paint),
    ],
)
def test_help_and_types_name_every_option(keywords: Any, options: Any, method: Any) -> None:
    known = {field.name: field for field in fields(options)}
    assert get_type_hints(keywords) == {name: get_type_hints(options)[name] for name in known}
    described = inspect.getdoc(method) or ""
    for name, field in known.items():
        if name in ("n_best", "alignment"):
            assert f"`{name}`" in described
        elif field.default_factory is dict:
            assert f" {name}={{}} " in described
        else:
            default = str(field.default) if not isinstance(field.default, str) else f'"{field.default}"'
            assert f" {name}={default} " in described


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "text is None; it must be a text or a list of texts"),
        (3, "text is 3 (int); it must be a text or a list"),
        (b"cat", "text is b'cat' (bytes)"),
        ({"a": "cat"}, "(dict); it must be"),
        (["cat", None], "text[1] is None; it must be a text (str)."),
        (["cat", ["dog"]], "text[1] is ['dog'] (list)"),
    ],
)
def test_what_is_no_text_is_a_type_error_in_our_words(translator: TextTranslator, text: Any, said: str) -> None:
    for error in (TypeError, jumok.JumokError):
        with pytest.raises(error) as raised:
            translator.translate(text)
        assert said in str(raised.value)


def test_texts_may_come_in_any_collection(translator: TextTranslator) -> None:
    expected = translator.translate(["cat .", "dog ."])
    texts: Any = (text for text in ("cat .", "dog ."))
    assert translator.translate(("cat .", "dog .")) == translator.translate(texts) == expected
    with pytest.raises(ArgumentError, match="texts is 'cat'"):
        translator.vectors("cat")  # not a vector for each letter
    with pytest.raises(ArgumentError, match="targets is 'cat'"):
        translator.score(["cat"], "cat")


@pytest.mark.parametrize("option", [{"alignment": True}, {"n_best": 3}])
def test_what_translate_cannot_return_is_not_ignored(translator: TextTranslator, option: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="translate_batch"):
        translator.translate("cat .", **option)
    [result] = translator.translate_batch(["cat ."], **option)
    assert result.alignment or result.alternatives
    assert [result] == translator.translate_batch(["cat ."], DecodingOptions.of(**option))


def test_options_by_name_change_those_given_together(translator: TextTranslator) -> None:
    [result] = translator.translate_batch(["cat ."], DecodingOptions(beam=7), n_best=6)
    assert len(result.alternatives) == 5
    with pytest.raises(ArgumentError, match=r'Unknown option "nbest"\. Did you mean "n_best"\?'):
        translator.translate_batch(["cat ."], nbest=6)  # type: ignore[call-arg]


def test_an_option_of_sampling_is_told_where_it_belongs(translator: TextTranslator) -> None:
    with pytest.raises(ArgumentError, match=r"`sampling=jumok\.Sampling\(temperature=0\.5\)`"):
        translator.translate("cat .", temperature=0.5)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("beem", 'load has no option "beem". Did you mean "beam" of translate?'),
        ("thread", 'Did you mean "threads"?'),
        ("enigne", 'Did you mean "engine"?'),
        ("xyzzy", "Known: device, engine, fast, task, threads."),
    ],
)
def test_an_unknown_option_of_load_is_a_type_error_that_knows_better(option: str, said: str) -> None:
    with pytest.raises(TypeError) as raised:
        jumok.load(ROOT / "tests" / "frozen" / "format-1" / "model", **{option: 3})
    assert said in str(raised.value)


def test_what_is_no_path_is_a_type_error_in_our_words() -> None:
    with pytest.raises(ArgumentError, match="path is None; it must be a directory"):
        load(None)  # type: ignore[call-overload]


def test_unknown_options_of_a_language_model_are_named() -> None:
    with pytest.raises(TypeError, match=r'Unknown option "temprature"\. Did you mean "temperature"\?'):
        GenerationOptions.of(temprature=1)


def test_the_package_shows_what_is_its_own() -> None:
    program = "import jumok; print(*dir(jumok)); jumok.load; print(*dir(jumok))"
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT / "src", capture_output=True, text=True, check=True)
    before, after = ran.stdout.splitlines()
    assert before == after
    assert set(before.split()) == set(jumok.__all__)
    assert {"DecodingOptions", "JumokError", "load", "train_translator"} <= set(jumok.__all__)
    assert all(hasattr(jumok, name) for name in jumok.__all__)
