"""The wheel and the sdist: built here, installed into an empty environment without torch, and used from there."""

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email import message_from_string
from email.message import Message
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import jumok

ROOT = Path(__file__).parent.parent
NAME = f"jumok-{jumok.__version__}"


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints, without this environment's packages in sight."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist, what is in it, and a wheel made from that: what is missing in it would show."""
    directory = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", directory, cwd=ROOT)
    with tarfile.open(directory / f"{NAME}.tar.gz") as archive:
        archive.extractall(directory, filter="data")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", directory, cwd=directory / NAME)
    return directory


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """The wheel."""
    return built / f"{NAME}-py3-none-any.whl"


def files_of(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = {name for name in files_of(wheel) if not name.startswith(f"{NAME}.dist-info/")}
    source = ROOT / "src"
    expected = {str(file.relative_to(source)) for file in source.rglob("*") if file.is_file()}
    assert names == {name for name in expected if "__pycache__" not in name and ".egg-info" not in name}
    assert "jumok/py.typed" in names


def test_the_sdist_holds_what_is_needed_to_go_on(built: Path) -> None:
    names = {entry.name for entry in (built / NAME).iterdir()}
    assert names >= {"src", "tests", "docs", "benchmarks", "Makefile", "constraints.txt", "pyproject.toml"}
    assert names >= {"README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE"}
    assert (built / NAME / "tests" / "frozen").is_dir()
    assert not [name for name in names if name.startswith(".") and name != ".gitignore"]


def metadata(wheel: Path) -> Message:
    """What the wheel says of itself."""
    return message_from_string(files_of(wheel)[f"{NAME}.dist-info/METADATA"].decode())


def test_the_metadata_is_complete(wheel: Path) -> None:
    said = metadata(wheel)
    assert (said["Name"], said["Version"], said["Requires-Python"]) == ("jumok", jumok.__version__, ">=3.11")
    assert (said["License-Expression"], said["Description-Content-Type"]) == ("MIT", "text/markdown")
    for name in ("Summary", "Author", "Keywords", "License-File", "Classifier"):
        assert said[name], name
    assert said.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{NAME}.dist-info/licenses/LICENSE" in files_of(wheel)
    assert f"version: {jumok.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_no_dependency_is_held_back(wheel: Path) -> None:
    requirements = [Requirement(text) for text in metadata(wheel).get_all("Requires-Dist", [])]
    assert {"numpy", "torch"} <= {requirement.name for requirement in requirements}
    assert not [str(each) for each in requirements if any(part.operator != ">=" for part in each.specifier)]


def needed(requirements: list[str]) -> Iterator[Distribution]:
    """The installed packages that are required, without extras, and those they require."""
    waiting, seen = list(requirements), set()
    while waiting:
        requirement = Requirement(waiting.pop())
        if requirement.name in seen or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        seen.add(requirement.name)
        found = distribution(requirement.name)
        yield found
        waiting += found.requires or []


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel and what it requires, and nothing else."""
    directory = tmp_path_factory.mktemp("empty")
    run(sys.executable, "-m", "venv", "--without-pip", directory, cwd=directory)
    python = directory / "bin" / "python"
    [packages] = (directory / "lib").glob("python*/site-packages")
    # Links instead of downloads: the tests need no network.
    for package in needed(metadata(wheel).get_all("Requires-Dist", [])):
        for top in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(package.locate_file(top))
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=directory)
    assert "No broken requirements" in run(*pip, "check", cwd=directory)
    return python


def test_it_runs_in_an_empty_environment_without_torch(installed: Path, tmp_path: Path) -> None:
    program = "import importlib.util as u, jumok; print(jumok.__file__, u.find_spec('torch'), jumok.load.__name__)"
    home, torch, load = run(installed, "-c", program, cwd=tmp_path).split()
    assert Path(home).is_relative_to(installed.parent.parent)
    assert (torch, load) == ("None", "load")
    for command in ([installed, "-m", "jumok"], [installed.parent / "jumok"]):
        assert run(*command, "--version", cwd=tmp_path) == f"jumok {jumok.__version__}\n"
    model = ROOT / "tests" / "frozen" / "format-1" / "model"
    assert "translator" in run(installed, "-m", "jumok", "info", "-m", model, cwd=tmp_path)
