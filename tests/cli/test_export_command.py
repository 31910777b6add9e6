"""jumok export: for CTranslate2, and as a runtime-only copy that needs no PyTorch."""

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from commands import SOURCE, Jumok

from faulty_files import FaultyFiles, crashes
from jumok.bundle import load_bundle, replace_directory
from jumok.engines.copying import copy_for_runtime, write_note
from jumok.engines.opening import exported_model
from jumok.errors import BundleError, WriteError
from jumok.files import format_json

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import jumok
for path in sys.argv[1:]:
    model = jumok.load(path)
    texts = ["The small cat sees the dog."]
    if hasattr(model, "translate"):
        print(model.translate(texts))
    else:
        print([(each.label, round(each.probability, 4)) for each in model.classify(texts)])
"""


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """The run of a translator, to be changed."""
    return Path(shutil.copytree(trained / "run", tmp_path / "run"))


def names(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_an_export_for_ctranslate2_is_certified_and_used(jumok: Jumok, run: Path) -> None:
    shutil.rmtree(run / "model" / "ctranslate2")
    assert "is not exported" in jumok("translate", "-m", run, "--engine", "ctranslate2", stdin="x\n").err
    ended = jumok("export", "-m", run)
    assert ended.code == 0, ended.err
    assert f"Exported → {run / 'model' / 'ctranslate2'}" in ended.out
    assert "Certified: equal outputs for " in ended.out
    outputs = [
        jumok("translate", "-m", run, "--engine", engine, stdin="The red bird likes the fish.\n")
        for engine in ("ctranslate2", "torch")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].code == 0


def test_int8_is_exported_with_probes_of_the_run_or_given_ones(jumok: Jumok, trained: Path, run: Path) -> None:
    lines = zip(*((trained / name).read_text(encoding="utf-8").splitlines() for name in ("a.en", "a.ko")), strict=True)
    table = run / "probe.csv"
    table.write_text("No,Satz,Antwort\n" + "".join(f"1,{one},{other}\n" for one, other in lines), encoding="utf-8")
    probe = ["--probe", table, "--columns", "Satz", "Antwort"]
    ended = jumok("export", "-m", run, "--to", "ctranslate2", "--quantization", "int8", *probe, "--json")
    assert f'{table}: source = column 2 "Satz", target = column 3 "Antwort"' in ended.err
    facts = json.loads(ended.out)
    assert facts["path"] == str(run / "model" / "ctranslate2")
    info = json.loads(jumok("info", run, "--json").out)["model"]["export"]
    assert info["certificate"]["quantization"] == "int8"
    assert info["certificate"]["sources"] == facts["sources"]
    assert "CTranslate2, int8, " in jumok("info", run).out


def test_a_runtime_only_copy_runs_without_torch_and_says_what_needs_it(
    jumok: Jumok, trained: Path, trained_classifier: Path, tmp_path: Path
) -> None:
    models = {"translator": trained / "run", "classifier": trained_classifier / "run"}
    for name, model in models.items():
        ended = jumok("export", "-m", model, "--to", "bundle", tmp_path / name)
        assert ended.code == 0, ended.err
        assert load_bundle(tmp_path / name).id == load_bundle(model).id
    assert "weights.safetensors" not in names(tmp_path / "translator")
    weights = [path / "weights.safetensors" for path in (trained_classifier / "run" / "model", tmp_path / "classifier")]
    assert weights[1].stat().st_size < weights[0].stat().st_size  # only what is not in the export
    outputs = [
        subprocess.run(
            [sys.executable, "-c", WITHOUT_TORCH, *paths],
            env={"PYTHONPATH": str(SOURCE), "PATH": ""},
            capture_output=True,
            check=True,
            encoding="utf-8",
        ).stdout
        for paths in (list(models.values()), [tmp_path / name for name in models])
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 2
    for name, command in {"translator": "translate", "classifier": "classify"}.items():
        ended = jumok(command, "-m", tmp_path / name, "--engine", "torch", stdin="good\n")
        assert ended.code == 2
        assert f"{tmp_path / name}: is a runtime-only copy, without the weights that PyTorch needs" in ended.err
    sampled = jumok("translate", "-m", tmp_path / "translator", "--temperature", "1", stdin="x\n")
    assert "Sampling (--temperature, --top-k, --top-p) needs PyTorch: use the model directory it was" in sampled.err
    assert "runtime-only copy" in jumok("export", "-m", tmp_path / "translator").err
    info = jumok("info", tmp_path / "translator").out
    assert "a runtime-only copy" in info
    assert f"parameters   {load_bundle(trained / 'run').card['parameters']:,}" in info


def test_a_copy_of_a_copy_is_the_same(trained: Path, tmp_path: Path) -> None:
    copy_for_runtime(trained / "run", tmp_path / "one")
    copy_for_runtime(tmp_path / "one", tmp_path / "two")
    assert {name: (tmp_path / "one" / name).read_bytes() for name in names(tmp_path / "one")} == {
        name: (tmp_path / "two" / name).read_bytes() for name in names(tmp_path / "two")
    }


def test_a_copy_is_refused_where_it_would_replace_something_or_have_no_export(
    jumok: Jumok, trained: Path, run: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    assert jumok("export", "-m", run, "--to", "bundle", tmp_path / "empty").code == 0
    for place in (tmp_path / "empty", trained / "a.en"):  # not empty any more; a file
        before = place.read_bytes() if place.is_file() else names(place)
        ended = jumok("export", "-m", run, "--to", "bundle", place)
        assert (ended.code, "exists and is not an empty directory" in ended.err) == (2, True)
        assert before == (place.read_bytes() if place.is_file() else names(place))
    shutil.rmtree(run / "model" / "ctranslate2")
    ended = jumok("export", "-m", run, "--to", "bundle", tmp_path / "new")
    assert (ended.code, "Make it with `jumok export`" in ended.err) == (2, True)
    assert not (tmp_path / "new").exists()


def test_a_damaged_copy_without_weights_is_not_to_be_exported_again(
    jumok: Jumok, trained: Path, tmp_path: Path
) -> None:
    copy_for_runtime(trained / "run", tmp_path / "copy")
    model = tmp_path / "copy" / "ctranslate2" / "model.bin"
    model.write_bytes(model.read_bytes()[:-1])
    damaged = jumok("translate", "-m", tmp_path / "copy", stdin="x\n")
    shutil.rmtree(model.parent)
    missing = jumok("translate", "-m", tmp_path / "copy", "--engine", "ctranslate2", stdin="x\n")
    for ended in (damaged, missing):
        assert (ended.code, "runtime-only copy: copy it again from where it came from" in ended.err) == (2, True)
        assert "Export" not in ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "bundle"], "takes the name of the new directory"),
        (["--to", "bundle", "out", "--quantization", "int8"], "neither --quantization nor --probe"),
        (["out"], "give neither OUT nor --note"),
        (["--sheet", "1"], "--sheet says how files are read. Give it together with --probe"),
    ],
)
def test_arguments_of_the_other_form_are_refused(jumok: Jumok, trained: Path, arguments: list[str], said: str) -> None:
    ended = jumok("export", "-m", trained / "run", *arguments)
    assert ended.code == 2
    assert said in " ".join(ended.err.split())


def test_a_full_disk_leaves_a_whole_copy_or_none(trained: Path, tmp_path: Path) -> None:
    counting = FaultyFiles()
    copy_for_runtime(trained / "run", tmp_path / "whole", fs=counting)
    for number in range(1, counting.fallible + 1):
        with pytest.raises(WriteError, match="No space left on device"):
            copy_for_runtime(trained / "run", tmp_path / "full", fs=FaultyFiles(fails_at=number))
        if number < counting.fallible:
            assert sorted(path.name for path in tmp_path.iterdir()) == ["whole"]  # nothing is left
    assert names(tmp_path / "full") == names(tmp_path / "whole")  # only securing its name failed
    assert exported_model(load_bundle(tmp_path / "full")) is not None


def test_a_full_disk_leaves_a_model_with_the_old_or_the_new_note(run: Path) -> None:
    counting, notes = FaultyFiles(), set()
    write_note(run / "model", "old", fs=counting)
    for number in range(1, counting.fallible + 1):
        with pytest.raises((WriteError, BundleError), match="No space left on device"):
            write_note(run / "model", "new", fs=FaultyFiles(fails_at=number))
        bundle = load_bundle(run)
        notes.add(bundle.card["note"])
        assert exported_model(bundle) is not None, number
        write_note(run / "model", "old", fs=FaultyFiles())
    assert notes == {"old", "new"}


def test_after_a_crash_anywhere_there_is_a_whole_copy_or_none(trained: Path, tmp_path: Path) -> None:
    place, found = tmp_path / "place", set()

    def prepare() -> None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()

    copy_for_runtime(trained / "run", tmp_path / "whole")
    expected = names(tmp_path / "whole")
    scenario = partial(copy_for_runtime, trained / "run", place / "copy")
    for moment in crashes(lambda fs: scenario(fs=fs), root=place, prepare=prepare, one_in_turn=True):
        found.add((place / "copy").exists())
        if (place / "copy").exists():
            assert names(place / "copy") == expected, moment
            assert exported_model(load_bundle(place / "copy")) is not None, moment  # all sums are right
    assert found == {True, False}


def test_after_a_crash_anywhere_a_model_with_the_old_or_the_new_note_is_found(run: Path) -> None:
    model, notes = run / "model", set()
    kept = shutil.copytree(model, run.parent / "kept")

    def prepare() -> None:
        shutil.rmtree(run)
        shutil.copytree(kept, model)

    for moment in crashes(lambda fs: write_note(model, "new", fs=fs), root=run, prepare=prepare, one_in_turn=True):
        bundle = load_bundle(run)
        notes.add(bundle.card.get("note"))
        assert exported_model(bundle) is not None, moment
    assert notes == {None, "new"}


def test_a_note_is_kept_by_training_changed_by_info_and_carried_into_a_copy(
    jumok: Jumok, run: Path, tmp_path: Path
) -> None:
    before, export = load_bundle(run), names(run / "model" / "ctranslate2")
    assert "note " not in jumok("info", run).out
    ended = jumok("info", run, "--note", "한국어 시험")
    assert ended.code == 0, ended.err
    assert "note         한국어 시험" in ended.out
    assert json.loads((run / "run.json").read_text(encoding="utf-8"))["note"] == "한국어 시험"
    after = load_bundle(run)
    assert (after.id, after.card) == (before.id, {**before.card, "note": "한국어 시험"})
    assert names(run / "model" / "ctranslate2") == export
    copy_for_runtime(run, tmp_path / "copy")
    copy_for_runtime(run, tmp_path / "other", note="for production")
    notes = [json.loads(jumok("info", tmp_path / name, "--json").out)["model"]["note"] for name in ("copy", "other")]
    assert notes == ["한국어 시험", "for production"]
    write_note(tmp_path / "copy", "")
    assert "note" not in load_bundle(tmp_path / "copy").card


def test_info_takes_its_directory_in_either_way_and_wants_one(jumok: Jumok, trained: Path) -> None:
    run = trained / "run"
    assert jumok("info", run) == jumok("info", "-m", run)
    for arguments in ([], [run, "-m", run]):
        ended = jumok("info", *arguments)
        assert (ended.code, "Give one model directory or run directory" in ended.err) == (2, True)


def test_info_says_when_a_model_was_made_and_what_became_of_its_export(jumok: Jumok, run: Path) -> None:
    facts = json.loads(jumok("info", run, "--json").out)["model"]
    assert facts["created"].endswith("+00:00")
    assert facts["id"] == load_bundle(run).id
    assert len(facts["id"]) == 12
    assert facts["export"]["certificate"]["weights"] == load_bundle(run).weights_digest
    readable = jumok("info", run).out
    assert "export       CTranslate2, float32, " in readable
    assert "certified: equal outputs for" in readable
    (run / "model" / "ctranslate2" / "model.bin").write_bytes(b"damaged")
    damaged = jumok("info", run)
    assert damaged.code == 0
    assert "model.bin: is damaged" in damaged.out
    shutil.rmtree(run / "model" / "ctranslate2")
    assert "export       none" in jumok("info", run).out


def test_a_hostile_card_cannot_pretend_to_be_a_runtime_only_copy(trained: Path, tmp_path: Path) -> None:
    copy_for_runtime(trained / "run", tmp_path / "copy")
    card = json.loads((tmp_path / "copy" / "card.json").read_text())
    for digest in ("short", 5, None):
        contents = {name: (tmp_path / "copy" / name).read_bytes() for name in ("config.json", "tokenizer.model")}
        contents["card.json"] = format_json({**card, "all_weights_sha256": digest})
        replace_directory(tmp_path / "bad", contents, bytes_needed=0)
        with pytest.raises(BundleError, match="impossible all_weights_sha256"):
            load_bundle(tmp_path / "bad")
