"""What users of other toolkits report again and again, and must not happen here. One test a pain.

Number 4, documented commands that fail, is test_readme.py; number 11, resuming, is most of test_train_command.py.
"""

import itertools
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from commands import SOURCE, Jumok, sentences, train_arguments, write_corpus

import jumok as package
from engines.echo_engine import EchoEngine
from jumok.engines.options import DecodingOptions
from jumok.engines.translator.text import TextTranslator
from jumok.model.translator import Translator
from jumok.search.hypothesis import Hypothesis

SENTENCE = "The small cat sees the dog."


def translated(jumok: Jumok, trained: Path, text: str, *options: str) -> list[str]:
    """The lines that come out."""
    ended = jumok("translate", "-m", trained / "run", *options, stdin=text)
    assert ended.code == 0, ended.err
    return ended.out.split("\n")[:-1]


def test_pain_1_dependency_rot_a_missing_extra_is_named(
    jumok: Jumok, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_reference: str) -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr("jumok.engines.opening.resolve", missing)
    ended = jumok("translate", "-m", trained / "run", "--engine=torch", stdin=SENTENCE)
    assert ended.code == 2
    assert 'pip install "jumok[train]"' in ended.err


def test_pain_2_no_file_of_a_model_is_a_pickle(trained: Path) -> None:
    names = {path.suffix for path in (trained / "run").rglob("*") if path.is_file()}
    assert names <= {".json", ".jsonl", ".tsv", ".safetensors", ".model", ".bin", ".txt", ".ids", ".lengths", ""}
    for path in (trained / "run").rglob("*"):
        if path.is_file():
            assert not path.read_bytes().startswith((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"PK"))


def test_pain_2_the_first_model_ever_written_loads_forever() -> None:
    frozen = Path(__file__).parent.parent / "frozen" / "format-1"
    expected = (frozen / "translations.txt").read_text(encoding="utf-8").splitlines()
    sources = (frozen / "sources.txt").read_text(encoding="utf-8").splitlines()
    assert package.load(frozen / "model").translate(sources) == expected


def test_pain_3_the_core_needs_no_gigabytes(trained: Path) -> None:
    project = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    heavy = ("torch", "sacrebleu", "matplotlib", "jaxtyping")
    assert not [name for name in project["dependencies"] if name.startswith(heavy)]
    program = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({heavy!r}))\n"  # importing them fails from now on
        "from jumok.cli.app import run\n"
        "sys.exit(run(sys.argv[1:]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    for command in (["info", "-m", "run"], ["info", "-m", "run/model"], ["check", "a.en", "a.ko"], ["--help"]):
        ended = subprocess.run(
            [sys.executable, "-c", program, *command], cwd=trained, env=environment, capture_output=True, text=True
        )
        assert ended.returncode in (0, 3), ended.stderr


def test_pain_5_configuration_none_is_required_and_a_wrong_key_is_understood(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    ended = jumok("train", "translator", *train_arguments(tmp_path), "--set", "optimiser.lr=1")
    assert ended.code == 2
    assert 'Did you mean "optimizer"?' in ended.err


def test_pain_6_long_text_is_not_cut_but_split_and_that_is_said(jumok: Jumok, trained: Path) -> None:
    ended = jumok("translate", "-m", trained / "run", "--beam=1", stdin=" ".join([SENTENCE] * 200) + "\n")
    [once] = translated(jumok, trained, SENTENCE + "\n", "--beam=1")
    assert ended.out == " ".join([once] * 200) + "\n"
    assert ended.err == ""  # sentence by sentence, as usual
    ended = jumok("translate", "-m", trained / "run", "--beam=1", stdin="the cat, " * 200 + "\n")
    assert "1 of 1 line: too long for the model, translated in parts (line 1)" in ended.err


def test_pain_7_long_input_does_not_crash(jumok: Jumok, trained: Path) -> None:
    one_word = "x" * 3000
    assert len(translated(jumok, trained, f"{one_word}\n{SENTENCE}\n", "--beam=1")) == 2


def test_pain_8_empty_lines_neither_crash_nor_shift(jumok: Jumok, trained: Path) -> None:
    sources = [source for source, _ in sentences()[:4]]
    dense = translated(jumok, trained, "".join(f"{source}\n" for source in sources))
    sparse = translated(jumok, trained, "".join(f"\n{source}\n\n" for source in sources))
    assert sparse == list(itertools.chain.from_iterable(("", line, "") for line in dense))


def test_pain_9_raw_text_in_raw_text_out(jumok: Jumok, trained: Path) -> None:
    decomposed = "The small cat sees the do\u0302g."
    composed = "The small cat sees the d\u00f4g."
    one, other = translated(jumok, trained, f"{decomposed}\n{composed}\n")
    assert one == other
    assert "▁" not in one


def test_pain_10_output_does_not_depend_on_the_neighbours(jumok: Jumok, trained: Path) -> None:
    sources = [source for source, _ in sentences()[:5]] + ["cat", "The big big big big big dog sees the fish. " * 3]
    together = translated(jumok, trained, "".join(f"{source}\n" for source in sources))
    alone = [translated(jumok, trained, f"{source}\n")[0] for source in sources]
    assert together == alone


def test_pain_12_what_does_not_fit_into_memory_is_found_at_once_and_cut(
    jumok: Jumok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limited(model: Translator, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if model.training and len(source) > 20:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return whole(model, source, target)

    whole = Translator.states
    monkeypatch.setattr(Translator, "states", limited)
    write_corpus(tmp_path)
    ended = jumok("train", "translator", *train_arguments(tmp_path, steps=4))
    assert ended.code == 0, ended.err
    assert "not enough memory: from step 1 on, every batch is computed in" in ended.err


def test_pain_13_memory_does_not_grow(trained: Path) -> None:
    translator = package.load(trained / "run")
    texts = [source for source, _ in sentences()]

    def resident() -> float:
        """Megabytes of this process."""
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    for _ in range(5):
        translator.translate(texts, beam=2)
    before = resident()
    for _ in range(15):
        translator.translate(texts, beam=2)
    assert resident() - before < 30


def test_pain_14_a_loop_is_resolved_and_that_is_said(
    jumok: Jumok, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = package.load(trained / "run").tokenizer
    source, looping = tokenizer.encode([SENTENCE, "고양이 " * 20])
    echo = EchoEngine()  # it loops, unless it may not repeat itself
    echo.answers[tuple(source)] = {False: Hypothesis(looping, -0.1, [-0.1] * (len(looping) + 1), True)}
    translator = TextTranslator(echo, tokenizer)
    [left_alone] = translator.translate_batch([SENTENCE], DecodingOptions(resolve_loops=False))
    assert not left_alone.loop_resolved
    assert left_alone.text.count("고양이") == 20
    [resolved] = translator.translate_batch([SENTENCE])
    assert resolved.loop_resolved
    assert resolved.text == SENTENCE
    assert len(resolved.tokens) < len(left_alone.tokens)

    monkeypatch.setattr("jumok.engines.loading.load", lambda *_, **__: translator)
    lines = f"The dog.\n{SENTENCE}\n"
    ended = jumok("translate", "-m", trained / "run", stdin=lines)
    assert ended.out == lines
    assert "1 of 2 lines: repeated itself or did not end at first; a second attempt was better (line 2)" in ended.err
    as_json = jumok("translate", "-m", trained / "run", "--json", stdin=lines)
    assert [json.loads(line)["loop_resolved"] for line in as_json.out.splitlines()] == [False, True]


def test_pain_15_translate_a_string_from_python(jumok: Jumok, trained: Path) -> None:
    translator = package.load(trained / "run")
    [line] = translated(jumok, trained, SENTENCE + "\n")
    assert translator.translate(SENTENCE) == line
    assert translator.translate([SENTENCE, ""]) == [line, ""]


def test_also_reproducibility_seed_versions_and_data_stand_in_the_model(trained: Path) -> None:
    card = package.load(trained / "run").card
    assert card["seed"] == 1
    assert len(card["fingerprint"]) >= 32
    assert {"jumok", "torch", "sentencepiece"} <= card["versions"].keys()
