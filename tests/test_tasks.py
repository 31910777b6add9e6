"""The table of tasks: every reference leads somewhere, and looking at the table imports nothing heavy."""

import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

import jumok
from jumok.errors import ConfigError
from jumok.tasks import DEMOS, ENCODERS, TASKS, EncoderEntry, Task, register, register_encoder, resolve, task_named

REFERENCES = [
    (f"{task.name}.{field.name}", value)
    for task in TASKS.values()
    for field in fields(Task)
    if isinstance(value := getattr(task, field.name), str) and value.startswith("jumok.")
] + [(f"demo.{demo.name}", demo.run) for demo in DEMOS.values()]

# Files of other tasks, or of all, that name a task's parts. CONTRIBUTING tells why each is needed.
SOURCE = Path(jumok.__file__).parent
PAINTER = "painter|Painter|image_tokens|ImageTokens"
PICTURES = "image_classifier|ImageClassifier|PictureClassifier|holds_pictures|picture_size"
MENTIONS = {
    PAINTER: {"__init__.py", "engines/loading.py", "tasks.py"},
    PICTURES: {
        "cli/train_classifier.py",
        "engines/loading.py",
        "recipes/labelled.py",
        "tasks.py",
    },
}
OWN = re.compile(
    "image_classifier|image_tokens|paint|pictur|patches|captio|vision|data/reading/labelled|codebook|mirroring|scene|demo/"
)


@pytest.mark.parametrize("reference", [value for _, value in REFERENCES], ids=[name for name, _ in REFERENCES])
def test_every_reference_of_a_task_leads_somewhere(reference: str) -> None:
    assert callable(resolve(reference))


def test_every_encoder_can_be_read() -> None:
    for entry in ENCODERS.values():
        assert callable(resolve(entry.reference).from_bytes)
    assert {task.encoder for task in TASKS.values()} <= set(ENCODERS)


def test_an_unknown_task_is_named_with_the_nearest_known() -> None:
    with pytest.raises(ConfigError, match='Did you mean "classifier"'):
        task_named("clasifier")
    with pytest.raises(ConfigError, match=f"Known: {', '.join(sorted(TASKS))}"):
        task_named(7)


def test_a_task_can_be_added_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.tasks.TASKS", dict(TASKS))
    monkeypatch.setattr("jumok.tasks.ENCODERS", dict(ENCODERS))
    register(replace(TASKS["classifier"], name="sorter", title="sorter", encoder="digits"))
    register_encoder(EncoderEntry("digits", "digits.json", "somewhere:Digits"))
    assert task_named("sorter").encoder == "digits"


def test_the_table_imports_nothing_heavy() -> None:
    program = "import sys; import jumok.tasks; print([name for name in sys.modules if name in ('torch', 'numpy')])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("words", MENTIONS, ids=["painter", "pictures"])
def test_a_task_is_known_to_few_files_beside_its_own(words: str) -> None:
    files = {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    found = {name for name, text in files.items() if re.search(words, text) and not OWN.search(name)}
    assert found == MENTIONS[words]
