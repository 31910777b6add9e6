"""What users of other toolkits report again and again, and must not happen here. One test a pain."""

import itertools
from pathlib import Path

import pytest
from commands import Jumok, sentences, train_arguments, write_corpus

import jumok as package

SENTENCE = "The small cat sees the dog."


def translated(jumok: Jumok, trained: Path, text: str, *options: str) -> list[str]:
    """The lines that come out."""
    ended = jumok("translate", "-m", trained / "run", *options, stdin=text)
    assert ended.code == 0, ended.err
    return ended.out.split("\n")[:-1]


def test_pain_1_dependency_rot_a_missing_extra_is_named(
    jumok: Jumok, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jumok.engines.native", None)  # as if torch were not there

    def missing(_bundle: object) -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr("jumok.engines.text._torch_engine", missing)
    ended = jumok("translate", "-m", trained / "run", stdin=SENTENCE)
    assert ended.code == 2
    assert 'pip install "jumok[train]"' in ended.err


def test_pain_2_no_file_of_a_model_is_a_pickle(trained: Path) -> None:
    names = {path.suffix for path in (trained / "run").rglob("*") if path.is_file()}
    assert names <= {".json", ".jsonl", ".safetensors", ".model", ".ids", ".lengths", ""}
    for path in (trained / "run").rglob("*"):
        if path.is_file():
            assert not path.read_bytes().startswith((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"PK"))


def test_pain_5_configuration_none_is_required_and_a_wrong_key_is_understood(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    ended = jumok("train", "translator", *train_arguments(tmp_path), "--set", "optimiser.lr=1")
    assert ended.code == 2
    assert 'Did you mean "optimizer"?' in ended.err


def test_pain_6_long_text_is_not_cut_but_split_and_that_is_said(jumok: Jumok, trained: Path) -> None:
    ended = jumok("translate", "-m", trained / "run", "--beam=1", stdin=" ".join([SENTENCE] * 200) + "\n")
    [once] = translated(jumok, trained, SENTENCE + "\n", "--beam=1")
    assert ended.out == " ".join([once] * 200) + "\n"
    assert "1 of 1 lines: too long for one piece, translated in parts (line 1)" in ended.err


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


def test_pain_14_a_loop_is_resolved_and_that_is_said(jumok: Jumok, trained: Path) -> None:
    ended = jumok("translate", "-m", trained / "run", "--beam=1", stdin="cat\n" * 3)
    longest = max(len(line.split()) for line in ended.out.splitlines())
    assert longest < 40
    told = "repeated itself or did not end at first" in ended.err
    retried = (
        '"loop_resolved": true' in jumok("translate", "-m", trained / "run", "--beam=1", "--json", stdin="cat").out
    )
    assert told == retried


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
