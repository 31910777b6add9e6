"""jumok train classifier, classify, train lm, generate, embed, and evaluate for them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import CLASSIFIER, LM, Jumok, sentences

from jumok.recipes.classifier import ClassifierRecipe
from jumok.training.settings import Settings


@pytest.fixture
def reviews(trained_classifier: Path) -> Path:
    """train.tsv and test.tsv."""
    return trained_classifier


@pytest.fixture
def run(trained_classifier: Path) -> Path:
    """The run of a classifier."""
    return trained_classifier / "run"


def test_a_classifier_is_trained_used_and_measured(jumok: Jumok, reviews: Path, run: Path, tmp_path: Path) -> None:
    printed = (reviews / "train.out").read_text(encoding="utf-8")
    for said in ("classes: negative", "macro-F1", "accuracy", "| jumok classify -m"):
        assert said in printed
    measured = json.loads(jumok("evaluate", "-m", run, reviews / "test.tsv", "--json").out)
    assert measured["texts"] == 200
    assert measured["accuracy"] > 0.7
    assert sum(map(sum, measured["confusion"])) == 200
    shown = jumok("evaluate", "-m", run, reviews / "test.tsv", "--plot", tmp_path / "confusion.png").out
    assert "true \\ predicted" in shown
    assert (tmp_path / "confusion.png").stat().st_size > 1000
    for option in (["--output", tmp_path / "out"], ["--beam", "3"], ["--languages", "en", "ko"]):
        refused = jumok("evaluate", "-m", run, reviews / "test.tsv", *option)
        assert (refused.code, f"{option[0]} has no effect" in refused.err) == (2, True)
    text = "The soup was wonderful."
    label, probability, words = jumok("classify", "-m", run, "--explain=2", stdin=text).out.split("\t")
    assert label == "positive"
    assert 0.5 < float(probability) <= 1
    assert "wonderful." in words
    columns = jumok("classify", "-m", run, "--probabilities", stdin=f"{text}\n\n").out.splitlines()
    assert columns[0] == "class\tnegative\tpositive"
    assert len(columns) == 3
    answer = json.loads(jumok("classify", "-m", run, "--json", stdin=text).out)
    assert answer["label"] == "positive"


def test_a_finished_classifier_is_not_trained_again_and_not_taken_for_another_task(
    jumok: Jumok, reviews: Path, run: Path, tmp_path: Path
) -> None:
    shutil.copytree(run, tmp_path / "run")
    ended = jumok("train", "classifier", reviews / "train.tsv", "-o", tmp_path / "run", "--steps=150", *CLASSIFIER)
    assert "is already finished, at step 150" in ended.out
    other = jumok("train", "lm", reviews / "train.tsv", "-o", tmp_path / "run", "--steps=150", *LM)
    assert other.code == 2
    assert "is a run of another task (classifier, not language_model)" in other.err


@pytest.mark.parametrize("unit", ["word+token", "both"])
def test_words_that_decide_matter_more_than_others(
    jumok: Jumok, reviews: Path, run: Path, tmp_path: Path, unit: str
) -> None:
    from jumok.engines.loading import load

    if unit == "both":
        run = tmp_path / "run"
        options = ["-o", run, "--steps=150", *CLASSIFIER, "--set=model.ngram_unit=both"]
        assert jumok("train", "classifier", reviews / "train.tsv", *options).code == 0
    classifier = load(run, task="classifier")
    assert classifier.engine._config.ngram_unit == unit
    moved_by_top, moved_by_others = [], []
    for line in (reviews / "test.tsv").read_text(encoding="utf-8").splitlines()[:60]:
        text = line.split("\t")[1]
        [found] = classifier.classify([text])
        pieces = classifier.explain(text)
        order = sorted(range(len(pieces)), key=lambda place: -pieces[place][1])
        for places, moved in ((order[:2], moved_by_top), (order[len(order) // 2 :][:2], moved_by_others)):
            rest = "".join(piece for place, (piece, _) in enumerate(pieces) if place not in places)
            [without] = classifier.classify([rest.replace("▁", " ").strip()])
            moved.append(found.probability - without.probabilities[found.label])
    assert np.mean(moved_by_top) > 2 * abs(np.mean(moved_by_others))


def test_a_sorted_file_is_measured_in_all_its_parts(reviews: Path, tmp_path: Path) -> None:
    """Half of the validation file is of one class, then comes the other: both must count."""
    rows = (reviews / "test.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "sorted.tsv").write_text("".join(sorted(rows)), encoding="utf-8")
    recipe = ClassifierRecipe([reviews / "train.tsv"], [tmp_path / "sorted.tsv"])
    recipe.prepare(tmp_path / "store", Settings(), expected=None, encoder=None)
    labels = [example.label for example in recipe.validation_examples(40)]
    assert len(labels) == 40
    assert abs(labels.count("positive") - 40 * sum(row.startswith("positive") for row in rows) / len(rows)) <= 1
    assert len(recipe.validation_examples(10_000)) == len(rows)


def test_other_names_for_the_classes_are_refused(jumok: Jumok, reviews: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.tsv"
    text = (reviews / "train.tsv").read_text(encoding="utf-8")
    data.write_text(text, encoding="utf-8")
    assert jumok("train", "classifier", data, "-o", tmp_path / "run", "--steps=2", *CLASSIFIER).code == 0
    data.write_text(text.replace("negative\t", "worse\t"), encoding="utf-8")
    again = ["train", "classifier", data, "-o", tmp_path / "run", "--steps=3", *CLASSIFIER, "--continue-with-changes"]
    refused = jumok(*again)
    assert refused.code == 2
    assert "worse" in refused.err
    assert "negative" in refused.err


def test_what_decided_is_shown_as_text(jumok: Jumok, run: Path) -> None:
    text = "The soup was 뷁 great, not great."
    stdin = f"{text}\n\n   \nnot\tgreat\n"
    lines = jumok("classify", "-m", run, "--explain=99", stdin=stdin).out.split("\n")
    assert [line.count("\t") for line in lines[:-1]] == [2, 2, 2, 2]
    answer = json.loads(jumok("classify", "-m", run, "--explain=99", "--json", stdin=text).out)
    assert sorted(word for word, _ in answer["words"]) == sorted(text.split())
    assert jumok("classify", "-m", run, "--explain=-2", stdin=text).code == 2


def test_a_picture_of_no_kind_is_refused_before_the_work(
    jumok: Jumok, reviews: Path, run: Path, tmp_path: Path
) -> None:
    refused = jumok("evaluate", "-m", run, reviews / "test.tsv", "--plot", tmp_path / "confusion.xyz")
    assert refused.code == 2
    assert "must end in .png, .svg or .pdf" in refused.err


def test_many_classes_are_drawn_in_bounded_size(tmp_path: Path) -> None:
    from jumok.lens.plots import draw_confusion, save_figure

    figure = draw_confusion(np.eye(100, dtype=np.int64), [f"class {number}" for number in range(100)])
    save_figure(figure, tmp_path / "c.png")
    header = (tmp_path / "c.png").read_bytes()[16:24]
    assert max(int.from_bytes(header[:4]), int.from_bytes(header[4:])) < 6000  # pixels
    figure = draw_confusion(np.eye(2, dtype=np.int64), ["a$_$", "$10-$20"])  # names, not formulas
    save_figure(figure, tmp_path / "money.svg")


BAD_LABELS = {
    "one class": ("good\tx\ngood\ty\ngood\tz\n", 'every text has the label "good"'),
    "no labels": ("x\ny\n", "has one column"),
    "empty": ("", "no text with a label"),
    "only empty texts": ("a\t\nb\t\n", "empty text"),
}


@pytest.mark.parametrize("name", BAD_LABELS)
def test_bad_labels_are_a_clear_error(jumok: Jumok, tmp_path: Path, name: str) -> None:
    content, said = BAD_LABELS[name]
    (tmp_path / "a.tsv").write_text(content, encoding="utf-8")
    ended = jumok("train", "classifier", tmp_path / "a.tsv", "-o", tmp_path / "run", "--steps=2", *CLASSIFIER)
    assert ended.code == 2
    assert said in ended.err


def test_a_label_that_was_never_learned_is_left_out_and_named(jumok: Jumok, reviews: Path, tmp_path: Path) -> None:
    valid = tmp_path / "valid.tsv"
    valid.write_text("positive\tfine\nmixed\tso so\nnegative\tbad\n", encoding="utf-8")
    arguments = [reviews / "train.tsv", "-o", tmp_path / "run", "--steps=3", "--valid", valid, *CLASSIFIER]
    ended = jumok("train", "classifier", *arguments)
    assert ended.code == 0, ended.err
    assert f'label "mixed" is not among those learned: {valid}:2' in ended.out
    measured = json.loads(jumok("evaluate", "-m", tmp_path / "run", valid, "--json").out)
    assert measured["texts"] == 2
    assert measured["rejected"]["total"] == 1


def test_rare_classes_are_learned_too(jumok: Jumok, tmp_path: Path) -> None:
    rows = [f"common\tword {n % 7} here {n}\n" for n in range(380)]
    rows += [f"rare\tbird {n % 5} here {n}\n" for n in range(20)]
    (tmp_path / "a.tsv").write_text("".join(rows), encoding="utf-8")
    ended = jumok("train", "classifier", tmp_path / "a.tsv", "-o", tmp_path / "run", "--steps=60", *CLASSIFIER)
    assert "unbalanced: " in ended.out
    answer = jumok("classify", "-m", tmp_path / "run", stdin="bird 3 here").out
    assert answer.startswith("rare\t")


def test_a_text_of_a_hundred_thousand_words_is_classified_as_a_hundredth_of_it_is(jumok: Jumok, run: Path) -> None:
    rows = (line.split("\t") for line in (run.parent / "test.tsv").read_text(encoding="utf-8").splitlines())
    praise = " ".join([text for label, text in rows if label == "positive"][:10]) + " "
    hundredth = praise * (1_000 // len(praise.split()) + 1)
    ended = jumok("classify", "-m", run, stdin=f"{hundredth}\n{hundredth * 100}\n")
    assert ended.code == 0, ended.err
    short, long = (line.split("\t") for line in ended.out.splitlines())
    assert long[0] == short[0] == "positive"
    assert float(long[1]) == pytest.approx(float(short[1]), abs=0.01)


def test_a_language_model_is_trained_used_and_measured(jumok: Jumok, tmp_path: Path) -> None:
    text = "".join(f"{source}\n\n" for source, _ in sentences())
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    ended = jumok("train", "lm", tmp_path / "a.txt", "-o", tmp_path / "run", "--steps=150", *LM)
    assert ended.code == 0, ended.err
    chosen = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["settings"]["loss"]
    assert chosen["smoothing"] == 0.0  # unlike a translator's
    for said in ("passages to train on", "bits/byte", "perplexity", "Now: jumok generate -m"):
        assert said in ended.out
    measured = json.loads(jumok("evaluate", "-m", tmp_path / "run", tmp_path / "a.txt", "--json").out)
    assert measured["bits_per_byte"] < 1.0
    assert measured["byte_perplexity"] == pytest.approx(2 ** measured["bits_per_byte"])
    written = jumok("generate", "-m", tmp_path / "run", "--prompt=The small", "--temperature=0").out
    assert written.startswith("The small ")
    refused = jumok("generate", "-m", tmp_path / "run", "--prompt=The", "--temperature=1e-45")
    assert (refused.code, refused.out) == (2, "")  # not even the prompt
    (tmp_path / "bad.txt").write_bytes(b"The small dog.\n\xff\n\nThe house.\n")
    measured = jumok("evaluate", "-m", tmp_path / "run", tmp_path / "bad.txt")
    assert "left out:" in measured.out
    assert "bad.txt:2" in measured.out
    assert json.loads(jumok("generate", "-m", tmp_path / "run", "--json", stdin="The").out)["prompt"] == "The"
    refused = jumok("translate", "-m", tmp_path / "run", stdin="x")
    assert refused.code == 2
    assert "Use: jumok generate" in refused.err
    for option in (["--output", tmp_path / "out"], ["--plot", tmp_path / "plot.png"], ["--tokenize=13a"]):
        refused = jumok("evaluate", "-m", tmp_path / "run", tmp_path / "a.txt", *option)
        assert (refused.code, "has no effect on the evaluation of a language model" in refused.err) == (2, True)
    no_vectors = jumok("embed", "-m", tmp_path / "run", stdin="x")
    assert (no_vectors.code, "is a language model. Sentence vectors need" in no_vectors.err) == (2, True)


def test_vectors_of_a_translator(jumok: Jumok, trained: Path, tmp_path: Path) -> None:
    lines = "The cat sees the dog.\n\nThe cat sees the dog.\n"
    rows = [json.loads(line) for line in jumok("embed", "-m", trained / "run", stdin=lines).out.splitlines()]
    assert [row["text"] for row in rows] == lines.split("\n")[:-1]
    assert rows[0]["vector"] == rows[2]["vector"]
    assert jumok("embed", "-m", trained / "run", "-o", tmp_path / "v.npy", stdin=lines).code == 0
    vectors = np.load(tmp_path / "v.npy")
    assert vectors.shape == (3, 32)
    np.testing.assert_allclose(vectors[0], rows[0]["vector"], atol=1e-5)
    assert jumok("embed", "-m", trained / "run", "-o", tmp_path / "v.txt", stdin=lines).code == 2


def test_a_classifier_goes_on_with_a_corpus_that_grew(jumok: Jumok, reviews: Path, tmp_path: Path) -> None:
    lines = (reviews / "train.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "data.tsv").write_text("".join(lines[:100]), encoding="utf-8")
    command = ["train", "classifier", tmp_path / "data.tsv", "-o", tmp_path / "run", *CLASSIFIER]
    assert jumok(*command, "--steps=10").code == 0
    (tmp_path / "data.tsv").write_text("".join(lines), encoding="utf-8")
    for steps in (10, 20):  # other data alone, and other settings too
        ended = jumok(*command, f"--steps={steps}", "--continue-with-changes")
        assert ended.code == 0, ended.err
