"""Documented commands run: every console and Python block of README.md and of the pages for one purpose, and every
option that a guide names."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jumok.pictures import png_bytes

ROOT = Path(__file__).parent.parent
SMALL = "--steps 5 --set model.d_model=16 --set model.heads=2 --set model.d_ff=32 --quiet"
ONE_LAYER = {"translator": ("encoder", "decoder"), "classifier": ("encoder",), "lm": ("decoder",)}
ONE_LAYER["painter"] = ONE_LAYER["translator"]
NOT_RUN_HERE = ("make demo", "make test", 'pip install "jumok[train]"')  # this test runs inside of `make test`


def blocks(document: str, language: str) -> list[str]:
    """The fenced blocks of a document that are in this language."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def small(command: str) -> str:
    """Options for a model that this `jumok train` makes in seconds."""
    return " ".join([SMALL, *(f"--set model.{stack}_layers=1" for stack in ONE_LAYER[command.split()[2]])])


def commands(document: str) -> list[str]:
    """What is written after `$`, without the comment behind it; in a line that ends with a backslash, the next too."""
    text = "".join(blocks(document, "console")).replace("\\\n", " ")
    lines = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    return [re.sub(r"\s+#.*", "", line).strip() for line in lines]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files that the documents speak of, and `jumok` on the path."""
    directory = tmp_path_factory.mktemp("readme")
    for name, lines in (
        ("a.en", [f"I have {number} apples." for number in range(60)]),
        ("a.ko", [f"사과가 {number}개 있어요." for number in range(60)]),
    ):
        (directory / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    words = {"+": "good", "-": "bad"}
    reviews = [f"{label}\tIt was {word} {number}." for number in range(30) for label, word in words.items()]
    (directory / "reviews.tsv").write_text("".join(f"{line}\n" for line in reviews), encoding="utf-8")
    (directory / "text.txt").write_text("Once upon a time there was a cat.\n\n" * 20 + "It slept.\n", encoding="utf-8")
    for number, name in enumerate(("cat", "dog")):
        (directory / "pictures" / name).mkdir(parents=True)
        for shade in range(10):
            pixels = np.full((8, 8, 1), 100 * number + shade, np.uint8)
            (directory / "pictures" / name / f"{shade}.png").write_bytes(png_bytes(pixels))
    names = sorted(path.relative_to(directory / "pictures").as_posix() for path in directory.rglob("pictures/*/*.png"))
    captions = "".join(f"{name}\ta grey square, shade {number}\n" for number, name in enumerate(names))
    (directory / "captions.tsv").write_text(captions, encoding="utf-8")
    (directory / "photo.png").write_bytes(png_bytes(np.zeros((20, 30, 3), np.uint8)))
    (directory / "bin").mkdir()
    jumok = directory / "bin" / "jumok"
    jumok.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m jumok "$@"\n', encoding="utf-8")
    jumok.chmod(0o755)
    return directory


def run(workplace: Path, *command: str) -> str:
    """What a command says; it must succeed."""
    path = f"{workplace / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        command, cwd=workplace, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.usefixtures("quick_trainings")
def test_the_readme_works_as_it_stands(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from jumok.cli.app import run as run_here

    def output_of(command: str) -> str:
        """A pipeline is run by the shell, with `jumok` in a process of its own; a single command in this process."""
        if "|" in command:
            return run(workplace, "sh", "-c", command)
        assert run_here(shlex.split(command)[1:]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    monkeypatch.chdir(workplace)
    documented = [command for command in commands("README.md") if command not in NOT_RUN_HERE]
    assert documented[0].startswith("jumok train translator a.en a.ko")
    for command in documented:
        # The same command with a small model and few steps appended, so that it takes seconds.
        output = output_of(f"{command} {small(command)}" if " train " in command else command)
        assert output.strip() or " train " in command
    assert any("|" in command for command in documented)
    for block in blocks("README.md", "python"):
        exec(compile(block, "README.md", "exec"), {})
    checks = re.findall(r"`(jumok check [^`]+)`", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert checks
    for inline in checks:
        assert "Nothing suspicious" in output_of(inline)


def test_what_is_not_run_here_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in NOT_RUN_HERE:
        assert command in commands("README.md")
        if command.startswith("make "):
            assert f"\n{command.removeprefix('make ')}:" in makefile
    assert "train = [" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_every_package_is_named(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    packages = [path.parent.name for path in (ROOT / "src" / "jumok").glob("*/__init__.py")]
    assert len(packages) > 10
    assert not [name for name in packages if f"{name}/" not in text]


PAGES = ["docs/spreadsheet.md", "docs/production.md"]  # in this order: the second uses what the first has trained
NOT_RUN_OF_PAGES = ("pip ", "gunicorn ", "curl ")
GUIDES = ["docs/guide.md", "docs/ko/guide.md"]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]
PAPERS = ["docs/attention.md", "docs/ko/attention.md"]
# As gunicorn does with --preload: the module is loaded first, and requests are answered in a forked process.
REQUESTS = """
import io, sys

def request(body):
    environ = {"CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}
    status = []
    answer = b"".join(application(environ, lambda line, headers: status.append(line)))
    return status[0], json.loads(answer)

child = os.fork()
if child == 0:
    bodies = [b'["I have 7 apples.", ""]', b'"text"', b"{", b" " * 100_001]
    print(json.dumps([request(body) for body in bodies]))
    sys.stdout.flush()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert "torch" not in sys.modules
"""


@pytest.fixture(scope="module")
def page_workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files that the pages speak of."""
    from openpyxl import Workbook

    directory = tmp_path_factory.mktemp("pages")
    rows = [["ID", "English", "German", "Comment"]]
    rows += [
        [f"P-{number}", f"I have {number} apples.", f"Für später möchte ich {number} Äpfel.", "ok"]
        for number in range(60)
    ]
    table = "".join(";".join(row) + "\r\n" for row in rows)
    (directory / "catalogue.csv").write_bytes(table.encode("cp1252"))
    book = Workbook()
    book.active.title = "Texts"
    book.create_sheet("Contacts").append(["Ms Kim", "02-123"])
    for row in rows:
        book["Texts"].append(row)
    book.save(directory / "catalogue.xlsx")
    unit = '<tu><tuv xml:lang="{}"><seg>{}</seg></tuv><tuv xml:lang="{}"><seg>{}</seg></tuv></tu>'
    units = "".join(unit.format("en", f"You have {n} pears.", "de", f"Du hast {n} Birnen.") for n in range(40))
    memory = f'<tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>'
    (directory / "memory.tmx").write_text(memory, encoding="utf-8")
    for name in ("letter.txt", "requests.txt"):
        (directory / name).write_text("I have 3 apples. You have\n4 pears.\n", encoding="utf-8")
    return directory


@pytest.mark.usefixtures("quick_trainings")
def test_the_pages_work_as_they_stand(
    page_workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from jumok.cli.app import run as run_here

    monkeypatch.chdir(page_workplace)
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for language, block in re.findall(r"^```(console|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            if language == "python" and page == "docs/production.md":
                name = "service.py" if "translator" in block else "pictures.py"  # tried in tests/cli/test_pictures.py
                (page_workplace / name).write_text(block + REQUESTS, encoding="utf-8")
            elif language == "python":
                exec(compile(block, page, "exec"), {})
            for line in block.splitlines() if language == "console" else ():
                command = line.removeprefix("$ ")
                if " --minutes " in command:
                    command = re.sub(r" --minutes \d+", f" {small(command)}", command)
                if not command.startswith(NOT_RUN_OF_PAGES):
                    assert run_here(shlex.split(command)[1:]) == 0, command + capsys.readouterr().err
    assert len((page_workplace / "all.tsv").read_text(encoding="utf-8").splitlines()) == 100
    assert 'target = column 3 "German"; not used: column 1 "ID"' in capsys.readouterr().out
    answers = json.loads(run(page_workplace, sys.executable, "service.py"))
    assert [status[:3] for status, _ in answers] == ["200", "400", "400", "413"]
    assert [type(found["text"]) for found in answers[0][1]] == [str, str]


@pytest.mark.parametrize("page", [*PAGES, "docs/before_attention.md"])
def test_pages_have_the_same_commands_and_code_in_both_languages(page: str) -> None:
    korean = page.replace("docs/", "docs/ko/")
    assert commands(page) == commands(korean)
    codes = ([re.sub(r'""".*?"""', "", block) for block in blocks(each, "python")] for each in (page, korean))
    assert next(codes) == next(codes)


@pytest.mark.parametrize("document", sorted(str(path.relative_to(ROOT)) for path in DOCUMENTS))
def test_links_lead_to_files_that_are_there(document: str) -> None:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / document).read_text(encoding="utf-8")):
        assert (ROOT / document).parent.joinpath(link).exists(), link


@pytest.mark.parametrize("guide", [*GUIDES, *PAPERS])
def test_commands_and_options_of_a_guide_exist(guide: str, capsys: pytest.CaptureFixture[str]) -> None:
    from jumok.cli.app import run as run_here

    found = re.findall(r"\bjumok ((?:(?:train|plot) )?[a-z]+)([^|\n]*)", "\n".join(commands(guide)))
    assert len(found) >= 8
    for command, rest in found:
        assert run_here([*command.split(), "--help"]) == 0
        known = capsys.readouterr().out
        for option in re.findall(r"(?<=\s)--?[a-z][a-z-]*", rest):
            assert re.search(rf"(^|\s|, ){re.escape(option)}\b", known), f"{command} has no {option}"


@pytest.mark.usefixtures("quick_trainings")
def test_the_python_for_pictures_in_the_guides_works_as_it_stands(
    workplace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [block], [korean] = ([each for each in blocks(guide, "python") if "train_painter" in each] for guide in GUIDES)
    assert re.sub(r"  # .*", "", block) == re.sub(r"  # .*", "", korean)
    shutil.copytree(workplace / "pictures", tmp_path / "pictures")
    for name in ("captions.tsv", "photo.png"):
        shutil.copy(workplace / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    on_pictures = "\n".join(part for part in block.split("\n\n") if '"pictures"' in part)
    sizes = {"model.d_model": 16, "model.heads": 2, "model.d_ff": 32, "model.encoder_layers": 1}
    code, count = re.subn(r"minutes=\d+", f"steps=2, progress=False, settings={sizes}", on_pictures)
    assert count == 2
    exec(compile(f"import jumok\n{code}", GUIDES[0], "exec"), {})
    assert (tmp_path / "square.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("guide", GUIDES)
def test_the_settings_of_a_guide_are_the_settings(guide: str) -> None:
    from jumok.training.settings import Settings

    def dotted(values: dict[str, object], prefix: str = "") -> dict[str, object]:
        flat: dict[str, object] = {}
        for name, value in values.items():
            nested = isinstance(value, dict) and name != "model"
            flat |= dotted(value, f"{prefix}{name}.") if nested else {prefix + name: value}  # type: ignore[arg-type]
        return flat

    rows = re.findall(r"^\| `([a-z_.*0-9]+)` \| ([^|]*) \|", (ROOT / guide).read_text(encoding="utf-8"), re.MULTILINE)
    values = dotted(Settings().to_dict())
    assert values.pop("model") == {}
    defaults = {
        name: f"{value}".replace("False", "false") if value is not None else "–" if name.startswith("stop.") else "auto"
        for name, value in values.items()
    } | {"model.*": "–"}
    assert {name: default.strip() for name, default in rows} == defaults


@pytest.mark.parametrize("guide", GUIDES)
def test_the_presets_of_a_guide_are_the_presets(guide: str) -> None:
    import torch

    from jumok.model.config import preset, preset_table
    from jumok.model.summary import count_parameters
    from jumok.tasks import resolve, task_of_config

    text = (ROOT / guide).read_text(encoding="utf-8")
    heading, *rows = preset_table()
    assert f" | {' | '.join(heading[2:])} | " in text
    for name, *cells in rows:
        [found] = re.findall(rf"^\| {name} \| (.*) \| ([^|]+) \|$", text, re.MULTILINE)
        assert found[0] == " | ".join(cells)
        if name != "imdb-notebook":
            with torch.device("meta"):
                config = preset(name, vocabulary=8000)
                count = count_parameters(resolve(task_of_config(config.to_dict()).model)(config))
            assert found[1] == f"{count / 1e6:.1f} M"
