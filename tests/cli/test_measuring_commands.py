"""jumok score, evaluate, check and info: what they say is what is."""

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Jumok, sentences, write_corpus

import jumok as package
from jumok.data.reading.lines import MAX_LINE_BYTES


def test_score_has_a_line_for_each_pair_and_the_whole(jumok: Jumok, trained: Path) -> None:
    ended = jumok("score", "-m", trained / "run", trained / "a.en", trained / "a.ko")
    rows = [line.split("\t") for line in ended.out.splitlines()]
    assert len(rows) == len(sentences())
    total, tokens = sum(float(row[0]) for row in rows), sum(int(row[1]) for row in rows)
    said, _, perplexity_of_all = ended.err.rstrip().rpartition(" ")
    assert said == f"{len(rows)} pairs, {tokens:,} tokens, perplexity"
    assert float(perplexity_of_all) == pytest.approx(math.exp(-total / tokens), rel=1e-3)
    for log_prob, count, perplexity in rows:
        assert float(perplexity) == pytest.approx(math.exp(-float(log_prob) / int(count)), rel=1e-3)


def test_score_as_json_has_every_token(jumok: Jumok, trained: Path) -> None:
    ended = jumok("score", "-m", trained / "run", "--json", trained / "a.en", trained / "a.ko")
    for entry in map(json.loads, ended.out.splitlines()):
        assert entry["log_prob"] == pytest.approx(sum(entry["token_log_probs"]))
        assert entry["tokens"] == len(entry["token_log_probs"])


def test_one_file_with_both_sides_is_scored_alike(jumok: Jumok, trained: Path, tmp_path: Path) -> None:
    rows = [f"{source}\t{target}\n" for source, target in sentences()]
    (tmp_path / "a.tsv").write_text("".join(rows), encoding="utf-8")
    one = jumok("score", "-m", trained / "run", tmp_path / "a.tsv")
    two = jumok("score", "-m", trained / "run", trained / "a.en", trained / "a.ko")
    assert one.out == two.out


def test_evaluate_measures_what_translate_says(jumok: Jumok, trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = jumok("evaluate", "-m", trained / "run", trained / "a.en", trained / "a.ko", "--json", "--output", out)
    found = json.loads(ended.out)
    assert found["sentences"] == len(sentences())
    assert found["bleu_signature"].startswith("nrefs:1")
    translated = jumok("translate", "-m", trained / "run", trained / "a.en").out
    assert out.read_text(encoding="utf-8") == translated
    # The translations as their own reference are perfect.
    perfect = jumok("evaluate", "-m", trained / "run", trained / "a.en", out, "--json")
    assert json.loads(perfect.out)["exact_match"] == 1
    assert json.loads(perfect.out)["chrf"] == pytest.approx(100)


def assert_close(one: Any, other: Any) -> None:
    """Assert that JSON values are equal, numbers nearly so."""
    if isinstance(one, dict | list):
        assert len(one) == len(other)
        for key in one if isinstance(one, dict) else range(len(one)):
            assert_close(one[key], other[key])
    else:
        assert one == (pytest.approx(other, abs=1e-5) if isinstance(one, float) else other)


def test_progress_in_a_terminal_changes_nothing_that_is_measured(
    jumok: Jumok, trained: Path, trained_classifier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, texts = [trained / "a.en", trained / "a.ko"], trained_classifier / "test.tsv"
    for command in (
        ["evaluate", "-m", trained / "run", *pairs, "--beam=1", "--json"],
        ["evaluate", "-m", trained_classifier / "run", texts, "--json"],
        ["score", "-m", trained / "run", *pairs, "--json"],
    ):
        plain = jumok(*command)
        with monkeypatch.context() as patch:
            patch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
            shown = jumok(*command)
        measured = [json.loads(ended.out.splitlines()[0]) for ended in (plain, shown)]
        for speed in ("sentences_per_second", "texts_per_second"):
            assert measured[0].pop(speed, 1) > 0 < measured[1].pop(speed, 1)
        assert_close(*measured)  # the order of sums differs between chunks
        assert "\r" not in plain.err
        assert re.search(r"\r64( of \d+)? (texts|lines)  [\d,]+ (texts|sentences)/s", shown.err), shown.err


def test_an_interrupted_evaluation_ends_without_a_traceback(
    jumok: Jumok, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jumok.engines.translator.text.TextTranslator.translate_batch", interrupted)
    monkeypatch.setattr("jumok.engines.translator.text.TextTranslator.score", interrupted)
    monkeypatch.setattr("jumok.cli.app._interrupts", [])  # they keep files open
    for name in ("evaluate", "score"):
        ended = jumok(name, "-m", trained / "run", trained / "a.en", trained / "a.ko")
        assert (ended.code, ended.out, "Traceback" in ended.err) == (130, "", False)


def test_the_model_of_a_run_finds_what_it_is_compared_on(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jumok.recipes.export import probe_of_run, store_of_run

    probe = probe_of_run(trained / "run" / "model")
    assert probe
    assert probe == probe_of_run(trained / "run")
    assert store_of_run(trained / "run" / "model") is not None
    monkeypatch.chdir(trained / "run" / "model")
    assert probe_of_run(Path()) == probe
    assert probe_of_run(trained / "run" / "store") == []  # what else lies in a run is not its model


def test_evaluate_writes_a_line_for_each_pair(jumok: Jumok, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('en,ko\n"A cat.\nA dog.","고양이.\n개."\nA bird.,새.\n', encoding="utf-8")
    out = tmp_path / "out"
    assert jumok("evaluate", "-m", trained / "run", tmp_path / "a.csv", "--output", out).code == 0
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2


def test_evaluate_is_readable_and_uses_the_tokenisation_asked_for(jumok: Jumok, trained: Path) -> None:
    ended = jumok("evaluate", "-m", trained / "run", trained / "a.en", trained / "a.ko", "--tokenize=none")
    assert [line.split()[0] for line in ended.out.splitlines()[:4]] == ["BLEU", "chrF", "exact", "speed"]
    assert "tok:none" in ended.out


def test_evaluate_refuses_an_unknown_tokenisation_before_it_works(jumok: Jumok, trained: Path) -> None:
    ended = jumok("evaluate", "-m", trained / "nowhere", trained / "a.en", trained / "a.ko", "--tokenize=13b")
    assert ended.code == 2
    assert 'Did you mean "13a"?' in ended.err


def test_evaluate_refuses_what_it_would_not_use_or_could_not_write(jumok: Jumok, trained: Path, tmp_path: Path) -> None:
    arguments = ["evaluate", "-m", trained / "run", trained / "a.en", trained / "a.ko"]
    plotted = jumok(*arguments, "--plot", tmp_path / "confusion.png")
    assert (plotted.code, plotted.out) == (2, "")
    assert "--plot has no effect on the evaluation of a translator" in plotted.err
    unwritable = jumok(*arguments, "--output", tmp_path)
    assert (unwritable.code, unwritable.out) == (2, "")
    assert "it is a directory" in unwritable.err


@pytest.mark.parametrize("command", ["score", "evaluate"])
def test_unequal_files_are_refused(jumok: Jumok, trained: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "short").write_text("하나\n", encoding="utf-8")
    ended = jumok(command, "-m", trained / "run", trained / "a.en", tmp_path / "short")
    assert ended.code == 2
    assert "has 1" in ended.err


@pytest.mark.parametrize("command", ["score", "evaluate"])
def test_empty_files_are_refused(jumok: Jumok, trained: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "empty").touch()
    ended = jumok(command, "-m", trained / "run", tmp_path / "empty", tmp_path / "empty")
    assert ended.code == 2
    assert "empty" in ended.err


def test_check_says_0_for_a_clean_corpus_and_3_for_findings(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    clean = jumok("check", tmp_path / "a.en", tmp_path / "a.ko")
    assert clean.code == 0
    assert "Nothing suspicious." in clean.out
    write_corpus(tmp_path, [*sentences(), ("", "비어 있어요")])
    found = jumok("check", tmp_path / "a.en", tmp_path / "a.ko", "--json")
    assert found.code == 3
    assert [finding["kind"] for finding in json.loads(found.out)["findings"]] == ["empty-side"]


def test_check_compares_with_the_validation_files(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    ended = jumok("check", tmp_path / "a.en", tmp_path / "a.ko", "--valid", tmp_path / "a.en", tmp_path / "a.ko")
    assert ended.code == 3
    assert "validation-in-training" in ended.out


def test_check_of_what_cannot_be_read_is_an_error(jumok: Jumok, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x89PNG" + bytes(MAX_LINE_BYTES))
    ended = jumok("check", tmp_path / "a", tmp_path / "a")
    assert ended.code == 2
    assert "PNG image" in ended.err


def test_info_of_a_run_says_how_far_it_is_and_of_its_model_what_it_is(jumok: Jumok, trained: Path) -> None:
    facts = json.loads(jumok("info", "-m", trained / "run", "--json").out)
    assert (facts["run"]["step"], facts["run"]["steps"], facts["run"]["finished"]) == (30, 30, True)
    assert facts["model"]["parameters"] == facts["model"]["card"]["parameters"]
    assert facts["model"]["config"]["d_model"] == 32
    model = trained / "run" / "model"
    assert facts["model"]["files"] == {path.name: path.stat().st_size for path in model.iterdir() if path.is_file()}
    readable = jumok("info", "-m", trained / "run").out
    for said in ("step 30 of 30", "finished", "BLEU", "d_model 32", "torch", "weights.safetensors"):
        assert said in readable


def test_info_shows_no_quotes_and_brackets_of_python(jumok: Jumok, trained: Path) -> None:
    card = next(line for line in jumok("info", trained / "run").out.splitlines() if line.startswith("card "))
    assert "inputs a.en a.ko," in card
    assert not set("'[]{}") & set(card)


def test_info_of_a_model_alone(jumok: Jumok, trained: Path) -> None:
    assert json.loads(jumok("info", "-m", trained / "run" / "model", "--json").out).keys() == {"model"}


def test_info_of_a_run_that_has_no_model_yet(jumok: Jumok, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes((trained / "run" / "run.json").read_bytes())
    ended = jumok("info", "-m", tmp_path)
    assert ended.code == 0
    assert "none yet" in ended.out


def test_python_names_are_there_and_others_are_not() -> None:
    assert {"load", "train_translator", "JumokError", "__version__"} <= set(dir(package))
    assert callable(package.train_translator)
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        package.lod  # noqa: B018


def test_info_of_a_run_whose_length_is_given_in_minutes(jumok: Jumok, trained: Path, tmp_path: Path) -> None:
    run = json.loads((trained / "run" / "run.json").read_bytes())
    run["settings"]["stop"] |= {"steps": None, "minutes": 5.0}
    (tmp_path / "run.json").write_text(json.dumps(run), encoding="utf-8")
    ended = jumok("info", "-m", tmp_path)
    assert ended.code == 0, ended.err
    assert "step 0, epoch 1: 5:00 of training left" in ended.out


def test_info_of_a_training_in_two_stages_is_of_the_first_until_the_second_begins_and_counts_the_time_of_both(
    jumok: Jumok, trained: Path, tmp_path: Path
) -> None:
    record, first = json.loads((trained / "run" / "run.json").read_bytes()), tmp_path / "first_stage"
    first.mkdir()
    entry = {"event": "train", "step": 9, "epoch": 1, "seconds": 100.0, "tokens": 90, "loss": 1.0}
    for directory, minutes in ((first, 2.0), (tmp_path, 6.0)):
        record["settings"]["stop"] |= {"steps": None, "minutes": minutes}
        (directory / "run.json").write_text(json.dumps(record), encoding="utf-8")
        (directory / "log.jsonl").write_text(json.dumps(entry) + "\n", encoding="utf-8")
        if directory == first:
            assert f"run          {first}  (" in jumok("info", tmp_path).out
            assert "0:20 of training left" in jumok("info", tmp_path).out
    assert json.loads(jumok("info", tmp_path, "--json").out)["run"]["seconds_left"] == 360 - 100 - 100


def test_info_of_a_finished_run_says_that_no_time_is_left(jumok: Jumok, tmp_path: Path) -> None:
    settings = {"stop": {"steps": None, "minutes": 5.0}}
    run = {"format": 1, "asked": settings, "settings": settings, "fingerprint": "", "keeps_vocabulary": True}
    (tmp_path / "run.json").write_text(json.dumps(run), encoding="utf-8")
    trained = {"event": "train", "step": 9, "epoch": 1, "seconds": 250.0, "tokens": 90, "loss": 1.0}
    done = {"event": "done", "step": 9}
    for number, left in ((1, 50.0), (2, 0.0)):
        entries = [json.dumps(trained), json.dumps(done)][:number]
        (tmp_path / "log.jsonl").write_text("\n".join(entries) + "\n", encoding="utf-8")
        assert json.loads(jumok("info", tmp_path, "--json").out)["run"]["seconds_left"] == left
