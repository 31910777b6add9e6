"""Tables through the real commands: what was taken is said, what is not certain is asked, and a run remembers it."""

import json
from pathlib import Path
from typing import Any

from commands import SMALL, Jumok, sentences

import jumok as package
from jumok.recipes.classifier import ClassifierRecipe
from jumok.recipes.language_model import LanguageModelRecipe
from jumok.recipes.recipe import Recipe
from jumok.training.settings import Settings


def table(directory: Path, header: str = "ID;English;Korean;Comment") -> Path:
    """In the dialect and the encoding of a Korean spreadsheet program with European settings."""
    rows = [f'{number};{source};"{target}";x' for number, (source, target) in enumerate(sentences())]
    path = directory / "a.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="cp949")
    return path


def test_check_score_and_evaluate_say_what_they_took(jumok: Jumok, tmp_path: Path, trained: Path) -> None:
    path = table(tmp_path)
    said = f'{path}: source = column 2 "English", target = column 3 "Korean"; not used: column 1 "ID", column 4 '
    said += '"Comment"; separator ";"; encoding CP949 (EUC-KR)'
    checked = jumok("check", path)
    assert (checked.code, checked.out.splitlines()[0]) == (0, said)
    scored = jumok("score", "-m", trained / "run", path, "--columns", 2, 3)
    assert said in scored.err
    assert scored.out == jumok("score", "-m", trained / "run", trained / "a.en", trained / "a.ko").out
    evaluated = jumok("evaluate", "-m", trained / "run", "--columns", "English", "Korean", path, "--beam=1", "--json")
    assert [file["what"] for file in json.loads(evaluated.out)["files"]] == [said]


def test_columns_that_are_not_certain_are_asked_for(jumok: Jumok, tmp_path: Path) -> None:
    path = table(tmp_path, header="Nummer;Satz;Antwort;Notiz")
    for command in (["check"], ["train", "translator", "-o", tmp_path / "run", "--steps=1"]):
        ended = jumok(*command, path)
        assert ended.code == 2
        assert '\n  2  "Satz", then for example: The ' in ended.err
        assert "for example: --columns Satz Antwort" in ended.err
    assert not (tmp_path / "run").exists()


def test_two_text_files_have_no_columns(jumok: Jumok, tmp_path: Path, trained: Path) -> None:
    files = [trained / "a.en", trained / "a.ko", "--columns", "en", "ko"]
    for command in (["check"], ["score", "-m", trained / "run"], ["train", "translator", "-o", tmp_path / "run"]):
        ended = jumok(*command, *files)
        assert ended.code == 2
        assert "columns" in ended.err
    assert not (tmp_path / "run").exists()


def test_a_run_remembers_its_columns_and_another_choice_is_other_data(jumok: Jumok, tmp_path: Path) -> None:
    path, run, events = table(tmp_path), tmp_path / "run", []
    arguments = ["train", "translator", path, "-o", run, "--steps=1", *SMALL]
    ended = jumok(*arguments, "--columns", "English", "Korean")
    assert ended.code == 0, ended.err
    assert ended.out.count('source = column 2 "English", target = column 3 "Korean"') == 1
    card = json.loads((run / "model" / "card.json").read_text(encoding="utf-8"))
    assert card["languages"] == ["en", "ko"]
    recorded = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert recorded["data"]["reading"] == {"columns": ["English", "Korean"]}
    other = jumok(*arguments, "--columns", "Korean", "English")
    assert other.code == 2
    assert "read with --columns English Korean" in other.err
    assert "read in another way" in other.err
    settings = Settings.from_dict(recorded["asked"])
    package.train_translator(path, out=run, columns=("English", "Korean"), settings=settings, on_event=events.append)
    [told] = [event for event in events if event["event"] == "file"]
    assert told["columns"]["source"] == {"number": 2, "name": "English", "language": "en"}
    assert (told["separator"], told["encoding"]) == (";", "CP949 (EUC-KR)")


def prepared(recipe: Recipe, directory: Path) -> dict[str, Any]:
    """The facts about the corpus of a recipe."""
    return recipe.prepare(directory, Settings.from_dict({}), expected=None, encoder=None)


def test_a_language_model_learns_from_one_column(jumok: Jumok, tmp_path: Path) -> None:
    texts = [f"{number}\t{source} And more words.\t5" for number, (source, _) in enumerate(sentences())]
    path = tmp_path / "a.tsv"
    path.write_text("\n".join(["id\tBeitrag\tSterne", *texts]) + "\n", encoding="utf-8")
    refused = jumok("train", "lm", path, "-o", tmp_path / "run", "--steps=1")
    assert "for example: --columns Beitrag" in refused.err
    wrong = jumok("train", "lm", path, "-o", tmp_path / "run", "--steps=1", "--columns", "Text")
    assert 'no column is named "Text"' in wrong.err
    facts = prepared(LanguageModelRecipe([path], columns="Beitrag"), tmp_path / "store")
    assert facts["examples"] + facts["valid_examples"] == len(texts)
    assert 'text = column 2 "Beitrag"; not used: column 1 "id", column 3 "Sterne"' in facts["layouts"][0]["what"]


def test_a_classifier_learns_from_a_sheet(jumok: Jumok, tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    for title in ("Meinungen", "Anderes"):
        sheet = book.create_sheet(title)
        sheet.append(("Urteil", "Wortlaut", "Ort"))
        for number in range(40):
            sheet.append((("gut", "schlecht")[number % 2], f"Text {number} {number % 2}", "A"))
    path = tmp_path / "a.xlsx"
    book.save(path)
    refused = jumok("train", "classifier", path, "-o", tmp_path / "run", "--steps=1")
    assert "has 2 sheets with content" in refused.err
    assert "--sheet Meinungen" in refused.err
    facts = prepared(ClassifierRecipe([path], sheet=2, columns=("Wortlaut", "Urteil")), tmp_path / "store")
    assert set(facts["classes"]) == {"gut", "schlecht"}
    said = 'text = column 2 "Wortlaut", label = column 1 "Urteil"; not used: column 3 "Ort"; sheet "Meinungen"'
    assert facts["layouts"][0]["what"] == f"{path}: {said}"


def test_every_command_refuses_an_option_that_has_no_effect_on_its_files(
    jumok: Jumok, tmp_path: Path, trained: Path, trained_classifier: Path
) -> None:
    path, out = table(tmp_path), ["-o", tmp_path / "run"]
    for command in (
        ["check", path],
        ["score", "-m", trained / "run", path],
        ["evaluate", "-m", trained / "run", path],
        ["evaluate", "-m", trained_classifier / "run", trained_classifier / "test.tsv"],
        ["train", "translator", path, *out],
        ["train", "classifier", path, *out],
        ["train", "lm", path, *out],
    ):
        ended = jumok(*command, "--sheet", "Texts")
        assert (ended.code, "--sheet has no effect: " in ended.err) == (2, True), command
    assert not (tmp_path / "run").exists()
