"""docs/attention.md, the paper beside the code: links, Python and pictures are right, and both languages agree."""

import json
import re

import pytest

from paper_links import LINK, PAPERS, ROOT, corrected, line_of

ENGLISH, KOREAN = PAPERS
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SIZES = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 16, "heads": 4, "d_ff": 32}
LARGEST_SCREENSHOT, LARGEST_PLOT = 80_000, 60_000  # bytes


def read(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def sections(document: str) -> dict[str, str]:
    """The text below each heading, by the number of the paper's section; those without a number by their place."""
    parts = re.split(r"^## (.*)$", read(document), flags=re.MULTILINE)[1:]
    headings = [re.match(r"[\d.]+", heading) for heading in parts[::2]]
    keys = [found.group() if found else f"heading {place}" for place, found in enumerate(headings)]
    return dict(zip(keys, parts[1::2], strict=True))


def uncommented(block: str) -> str:
    return re.sub(r"\s*#.*", "", block)


@pytest.mark.parametrize("document", PAPERS)
def test_every_link_leads_to_the_line_that_defines_the_name(document: str) -> None:
    text = read(document)
    assert len(LINK.findall(text)) >= 15
    assert text.count("/src/jumok/") == len(LINK.findall(text)), "a link that is not [`name`](path#Lline)"
    assert text == corrected(text), "code has moved: run `python tests/paper_links.py`, which corrects the lines"


def test_a_link_to_a_name_that_is_gone_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"does not define Attend\.backward"):
        line_of("Attend.backward", ROOT / "src/jumok/model/attention.py")


def test_every_section_has_a_formula_a_function_a_picture_and_something_to_try() -> None:
    for number, text in sections(ENGLISH).items():
        languages = [language for language, _ in BLOCK.findall(text)]
        assert {"math", "python", "text"} <= set(languages), number
        assert LINK.search(text), number
        assert "jumok look" in text or "jumok plot" in text, number
        assert all(f"\n{words}" in text for words in ("In the code:", "See it:", "Try it:", "What you see:")), number


def test_both_languages_have_the_same_sections_formulas_links_commands_and_code() -> None:
    english, korean = sections(ENGLISH), sections(KOREAN)
    assert list(english) == list(korean)
    for number, text in english.items():
        ours, theirs = BLOCK.findall(text), BLOCK.findall(korean[number])
        assert [(kind, uncommented(block)) for kind, block in ours] == [
            (kind, uncommented(block)) for kind, block in theirs
        ], number
        assert [found[0::2] for found in LINK.findall(text)] == [found[0::2] for found in LINK.findall(korean[number])]


@pytest.mark.parametrize("document", [*PAPERS, "README.md", "docs/guide.md", "docs/ko/guide.md"])
def test_pictures_exist_are_small_and_are_described(document: str) -> None:
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", read(document))
    assert pictures
    for description, path in pictures:
        file = (ROOT / document).parent / path
        assert len(description) > 10
        assert file.read_bytes().startswith(b"\x89PNG")
        assert file.stat().st_size <= (LARGEST_SCREENSHOT if file.name.startswith("explorer") else LARGEST_PLOT), path


@pytest.fixture
def demo_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """`jumok.load` returns a small, untrained translator with a vocabulary of its own sentences."""
    import torch

    import jumok
    from jumok.engines.translator.text import TextTranslator
    from jumok.engines.translator.torch import TorchTranslator
    from jumok.model.config.translator import TranslatorConfig
    from jumok.model.translator import Translator
    from jumok.tokenizer import Tokenizer

    sentences = re.findall(r'"([A-Z][^"\n]+\.)"', read(ENGLISH)) * 20
    tokenizer = Tokenizer.train([*sentences, *(f"{number} 동물은 길을 건너요." for number in range(50))], 400)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = Translator(TranslatorConfig(vocabulary=tokenizer.size, **SIZES))
    translator = TextTranslator(TorchTranslator(model.eval()), tokenizer)
    monkeypatch.setattr(jumok, "load", lambda path, engine: translator)


@pytest.mark.usefixtures("demo_model", "without_shape_checks")
def test_the_python_of_the_walk_runs_as_one_program(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for language, block in BLOCK.findall(read(ENGLISH)):
        if language == "python":
            exec(block, names)
            assert capsys.readouterr().out, block


def test_outputs_that_depend_on_no_training_are_those_of_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = BLOCK.findall(sections(ENGLISH)["5.3"])
    [code], [output] = ([block for kind, block in blocks if kind == wanted] for wanted in ("python", "text"))
    exec(code, {})
    assert capsys.readouterr().out == output


@pytest.mark.parametrize(("document", "language"), [(ENGLISH, "en"), (KOREAN, "ko")])
def test_the_views_that_are_named_are_views_of_the_explorer(document: str, language: str) -> None:
    texts = json.loads(read(f"src/jumok/lens/web/{language}.json"))
    views = {name for key, name in texts.items() if key.startswith("view.")}
    named = re.findall(r'`jumok look(?: -m demo/run)?`(?:,| of|의)\s+"([^"]+)"', read(document))
    named += re.findall(r'"([^"]+)"(?= of `jumok look`|에서도 할 수)', read(document))
    assert len(named) >= 8
    assert set(named) <= views
