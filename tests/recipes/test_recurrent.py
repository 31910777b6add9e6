"""A recurrent translator through the whole way: everything but the network is what a Transformer has too."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jumok
from jumok.cli.info_text import describe_facts
from jumok.engines.copying import copy_for_runtime
from jumok.engines.options import DecodingOptions, SearchOptions
from jumok.errors import ConfigError
from jumok.lens import changed, trace
from jumok.lens.plots import draw_attention, draw_beta
from jumok.lens.session import Entry, Session
from jumok.recipes.export import export_ctranslate2
from jumok.recipes.training import plan
from jumok.recipes.translator import train_translator
from jumok.training.trainer import StoppedEarly

SMALL: dict[str, Any] = {
    "model.d_model": 16,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "batch.tokens": 64,
    "validate.sentences": 4,
    "validate.every": 4,
    "checkpoint.every": 2,
}
WORDS = ("a", "b", "c", "d", "e")

pytestmark = [pytest.mark.usefixtures("without_shape_checks"), pytest.mark.xdist_group("recurrent")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of letters, and a run of each preset: `rnn`, `rnn-attention`."""
    directory = tmp_path_factory.mktemp("recurrent")
    lines = [f"{one} {two} {three}" for one in WORDS for two in WORDS for three in WORDS]
    for name in ("a.src", "a.tgt"):
        (directory / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for preset in ("rnn", "rnn-attention"):
        train(directory, preset, preset)
    return directory


def train(directory: Path, preset: str, out: str, **options: Any) -> list[dict[str, Any]]:
    events: list[Any] = []
    files = directory / "a.src", directory / "a.tgt"
    request = {"steps": 8, "preset": preset, "settings": SMALL, "progress": False, **options}
    train_translator(*files, out=directory / out, on_event=events.append, **request)
    return events


def test_a_training_that_was_interrupted_gives_the_same_model(runs: Path) -> None:
    asked = iter([False, False, False, False, True])
    with pytest.raises(StoppedEarly):
        train(runs, "rnn-attention", "again", stop_requested=lambda: next(asked))
    events = train(runs, "rnn-attention", "again")
    assert any(event["event"] == "resumed" for event in events)
    one, other = (runs / out / "model" / "weights.safetensors" for out in ("rnn-attention", "again"))
    assert one.read_bytes() == other.read_bytes()


def test_it_is_not_exported_and_runs_with_pytorch(runs: Path, tmp_path: Path) -> None:
    reason = "CTranslate2 cannot run a recurrent translator; it runs with PyTorch"
    [finished] = [event for event in train(runs, "rnn", str(tmp_path / "run"), steps=1) if event["event"] == "finished"]
    assert reason in finished["not_exported"]
    with pytest.raises(ConfigError, match=reason):
        export_ctranslate2(runs / "rnn")
    with pytest.raises(ConfigError, match='cannot run a recurrent translator; use `engine="torch"`'):
        jumok.load(runs / "rnn", "ctranslate2")
    with pytest.raises(ConfigError, match="`fast=True` needs CTranslate2, which cannot run a recurrent translator"):
        jumok.load(runs / "rnn", fast=True)
    with pytest.raises(ConfigError, match="a recurrent translator runs with PyTorch only"):
        copy_for_runtime(runs / "rnn", tmp_path / "copy")
    config = {"task": "translator", "architecture": "recurrent"}
    model = {"config": config, "card": {}, "path": "run", "runtime_only": False, "id": "", "created": "", "note": ""}
    lines = list(describe_facts({"model": {**model, "parameters": 1, "export": None, "files": {}}}))
    assert lines[0] == "model        run  (recurrent translator)"
    assert "export       none; it runs with PyTorch" in lines


def test_search_and_scores_do_not_depend_on_the_batch(runs: Path) -> None:
    for preset in ("rnn", "rnn-attention"):
        translator = jumok.load(runs / preset, task="translator")
        texts = ["a b c", "d", "", "e e a b c d a", "b"]
        together = translator.translate_batch(texts, DecodingOptions(beam=3, n_best=2))
        alone = [translator.translate_batch([text], DecodingOptions(beam=3, n_best=2))[0] for text in texts]
        assert [result.text for result in together] == [result.text for result in alone]
        assert [result.score for result in together] == pytest.approx([result.score for result in alone], abs=1e-5)
        sources = translator.tokenizer.encode(["a b c", "d"])
        best = [found[0] for found in translator.engine.generate(sources, SearchOptions(beam=3))]
        forced = translator.engine.score(sources, [each.ids for each in best])
        for each, row in zip(best, forced, strict=True):
            assert each.log_probs == pytest.approx(row[: len(each.log_probs)], abs=1e-5)
        assert translator.vectors(texts).shape == (5, 16)


def test_its_attention_can_be_seen(runs: Path) -> None:
    translator = jumok.load(runs / "rnn-attention", task="translator")
    found = trace(translator, "a b c", target="a b c")
    weights = found["decoder.0.cross.weights"]
    assert weights.axes == ("head", "query", "key")
    assert weights.tokens["key"] == found.sides["encoder"]
    assert weights.values.sum(-1) == pytest.approx(1.0, abs=1e-5)
    ids = [translator.tokenizer.encode(["a b c"])[0]] * 2
    assert weights.values[0] == pytest.approx(translator.engine.align([ids[0]], [ids[1]])[0], abs=1e-6)
    assert [name for name in found if "scores" in name or "layer" in name] == []  # not of additive attention
    assert found._repr_html_().startswith("<pre>&lt;Trace of a translator")
    [result] = translator.translate_batch(["a b c"], DecodingOptions(alignment=True))
    assert result.alignment is not None
    assert draw_attention(found).axes
    with pytest.raises(ConfigError, match="This attention is additive"):
        draw_beta(found, 1)


def test_what_it_has_not_is_refused(runs: Path) -> None:
    translator = jumok.load(runs / "rnn", task="translator")
    found = trace(translator, "a b c", target="a b")
    assert found["encoder.output"].shape == (4, 16)
    assert found["probabilities"].shape[0] == 3
    refusals: list[tuple[str, Callable[[], Any]]] = [
        ("has no attention: there is nothing to draw", lambda: draw_attention(found)),
        ("has no attention, so its outputs", lambda: translator.engine.align([[5]], [[5]])),
        ("The explorer shows the parts of a Transformer", lambda: Session([Entry("", lambda: translator)]).model(0)),
        ("no positional encoding", lambda: changed(translator, positions="removed").__enter__()),
        ("decoder.0.cross is additive", lambda: changed(jumok.load(runs / "rnn-attention"), beta=2.0).__enter__()),
    ]
    for message, call in refusals:
        with pytest.raises(ConfigError, match=message):
            call()
    with pytest.raises(ConfigError, match='The preset "rnn" is for a translator, not for a classifier'):
        jumok.train_classifier(runs / "a.src", out=runs / "no", preset="rnn")


def test_no_time_is_kept_for_an_export_that_cannot_be_made(runs: Path) -> None:
    files = runs / "a.src", runs / "a.tgt"
    asked = {"steps": 8, "settings": SMALL}
    recurrent, attention = (plan("translator", *files, preset=preset, **asked) for preset in ("rnn", "tiny"))
    assert recurrent.export_validations == 0
    assert attention.export_validations > 0
