"""What a classifier of texts is trained with, unless something else is asked for."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from jumok.model.config import preset as preset_config
from jumok.recipes.classifier import WINDOW, ClassifierRecipe
from jumok.recipes.labelled import train_classifier
from jumok.recipes.training import plan

TOPICS = ("abcdefgh", "stuvwxyz")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Texts of letters; a text has letters of one topic, its label is the number of the topic."""
    draws = random.Random(0)
    lines = [
        f"{number % 2}\t{' '.join(draws.choices(TOPICS[number % 2], k=draws.randint(3, 12)))}\n"
        for number in range(200)
    ]
    path = tmp_path / "texts.tsv"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_a_tiny_classifier_has_few_layers_a_short_window_and_fitted_vectors_unless_something_else_is_asked_for(
    texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(preset: str, **settings: Any) -> tuple[object, ...]:
        chosen = plan("classifier", texts, steps=3, preset=preset, settings=settings).settings
        own = {"window": WINDOW, **chosen.model}
        config = preset_config(preset, task="classifier", vocabulary=300, **own).to_dict()
        return config["encoder_layers"], config["window"], chosen.init.embeddings

    assert found("tiny") == (2, 64, "cooccurrence")
    asked = {"model.encoder_layers": 3, "model.window": 0, "init.embeddings": "random"}
    assert found("tiny", **asked) == (3, 0, "random")
    assert found("small") == (4, WINDOW, "random")
    monkeypatch.setattr("jumok.recipes.recipe.MOST_FITTED", 10)
    assert found("tiny") == (2, 64, "random")


def test_a_run_of_an_earlier_version_keeps_its_layers_its_window_and_its_ngrams_when_settings_change(
    texts: Path, tmp_path: Path
) -> None:
    """It recorded none of them: `tiny` had the four layers of the table, every classifier the same window, and n-grams
    that met in a row of their table shared it."""
    run, asked = tmp_path / "run", {"batch.tokens": 200}
    before = {**asked, "model.encoder_layers": 4, "model.window": WINDOW, "init.embeddings": "random"}
    before["model.ngram_fingerprints"] = False
    train_classifier(texts, out=run, steps=2, preset="tiny", settings=before, progress=False)
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    for settings in (record["asked"], record["settings"]):
        for name in ("encoder_layers", "window", "ngram_fingerprints"):
            del settings["model"][name]
        del settings["init"]
    (run / "run.json").write_text(json.dumps(record), encoding="utf-8")
    changed = {**asked, "log.every": 1}
    train_classifier(
        texts, out=run, steps=4, preset="tiny", settings=changed, continue_with_changes=True, progress=False
    )
    config = json.loads((run / "model" / "config.json").read_text(encoding="utf-8"))
    assert (config["encoder_layers"], config["window"], config["ngram_fingerprints"]) == (4, WINDOW, False)


def test_a_classifier_begins_with_vectors_of_tokens_that_occur_together(texts: Path, tmp_path: Path) -> None:
    recipe = ClassifierRecipe([texts])
    settings = plan("classifier", texts, steps=3, preset="tiny").settings
    recipe.prepare(tmp_path / "store", settings, expected=None, encoder=None)
    recipe.fit(settings)
    vectors = recipe.model(settings).embed.tokens.weight
    assert torch.equal(vectors, recipe.model(settings).embed.tokens.weight)
    tokenizer = recipe.corpus.tokenizer
    one, other = (vectors[[tokenizer.encode([letter])[0][-1] for letter in topic]] for topic in TOPICS)
    alike = (one @ one.T)[~torch.eye(len(one), dtype=torch.bool)]
    assert alike.mean() > (one @ other.T).mean() + 0.2  # vectors have the length 1
