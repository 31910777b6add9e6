"""Plots: the drawn values are the model's, masked cells have no colour, and letters are drawn or explained."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import PathPatch
from matplotlib.text import Text

from jumok.engines.options import DecodingOptions
from jumok.engines.translator.alignment import Alignment
from jumok.errors import ConfigError, InputError
from jumok.lens import plots, trace
from jumok.lens.plots import fonts
from jumok.lens.plots.attention import SHARES
from jumok.lens.traces import Trace

CJK = not fonts.fonts_for("고양이猫")[1]


@pytest.fixture
def traced(translator: Any) -> Trace:
    return trace(translator, "2 3 5", target="5 3 2")


def image(axes: Any) -> Any:
    [found] = axes.images
    return found.get_array()


def hatches(axes: Any) -> list[str]:
    return [patch.get_hatch() for patch in axes.patches if isinstance(patch, PathPatch)]


def names(axes: Any) -> tuple[list[str], list[str]]:
    """What stands at the rows and at the columns."""
    axes.figure.canvas.draw()
    return [text.get_text() for text in axes.get_yticklabels()], [text.get_text() for text in axes.get_xticklabels()]


def test_positions_are_the_formula() -> None:
    drawn = image(plots.draw_positions().axes[0])
    assert drawn.shape == (50, 128)
    assert drawn[7, 4] == pytest.approx(np.sin(7 / 10000 ** (4 / 128)), abs=1e-6)
    assert drawn[7, 5] == pytest.approx(np.cos(7 / 10000 ** (4 / 128)), abs=1e-6)
    [line] = plots.draw_waves(dimensions=[5]).axes[0].lines
    assert np.array_equal(line.get_ydata(), drawn[:, 5])
    products = image(plots.draw_products(length=9, d_model=16).axes[0])
    assert products.shape == (9, 9)
    assert np.allclose(products.diagonal(), 8)  # sin² + cos² of 8 pairs


def test_positions_of_a_model_are_its_own() -> None:
    table = np.random.default_rng(1).normal(size=(6, 4)) * 3
    assert np.array_equal(image(plots.draw_positions(table).axes[0]), table)


def test_a_dimension_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ConfigError, match="128"):
        plots.draw_waves(dimensions=[128])


def test_masks_hide_padding_and_later_tokens() -> None:
    padding, later, both = plots.draw_masks(["a", "b", "c"], padding=1).axes[:3]
    hidden = [np.ma.getmaskarray(image(axes)) for axes in (padding, later, both)]
    assert hidden[0].tolist() == [[False, False, False, True]] * 4
    assert hidden[1].tolist() == np.triu(np.ones((4, 4), bool), 1).tolist()
    assert np.array_equal(hidden[2], hidden[0] | hidden[1])
    assert hatches(padding) != hatches(later)
    assert set(hatches(both)) == {*hatches(padding), *hatches(later)}
    assert (later.get_xlabel(), padding.get_ylabel()) == ("keys", "queries")
    assert names(padding) == (["a", "b", "c", "<pad>"], ["a", "b", "c", "<pad>"])


def test_the_schedule_is_the_papers() -> None:
    lines = plots.draw_schedule([512, 1024], warmups=[400], steps=2000).axes[0].lines
    assert len(lines) == 2
    for d_model, line in zip((512, 1024), lines, strict=True):
        step = np.asarray(line.get_xdata(), float)
        assert np.allclose(line.get_ydata(), d_model**-0.5 * np.minimum(step**-0.5, step * 400**-1.5))


def test_all_heads_of_all_layers_are_drawn_with_their_weights(traced: Trace) -> None:
    figure = plots.draw_attention(traced)
    for number, (layer, head) in enumerate(np.ndindex(3, 2)):
        assert np.array_equal(image(figure.axes[number]), traced[f"decoder.{layer}.cross.weights"][head])
        assert figure.axes[number].get_title() == f"layer {layer}, head {head}"
    assert figure.get_supxlabel() == "keys: source tokens"
    assert figure.get_supylabel() == "queries: output tokens"


def test_masked_weights_are_hatched_and_not_coloured(traced: Trace) -> None:
    axes = plots.draw_attention(traced, "decoder-self", layer=1, head=1).axes[0]
    weights = traced["decoder.1.self.weights"][1]
    assert np.array_equal(np.ma.getmaskarray(image(axes)), np.triu(np.ones_like(weights), 1))
    assert np.array_equal(image(axes).compressed(), weights[np.tril(np.ones_like(weights)) > 0])
    assert hatches(axes) == ["////"]
    assert names(axes) == (list(traced.sides["decoder"]),) * 2


def test_an_open_attention_has_no_hatches(traced: Trace) -> None:
    figure = plots.draw_attention(traced, "encoder-self", layer=0)
    assert not any(hatches(axes) for axes in figure.axes[:2])
    assert figure.get_supxlabel() == "keys"


def test_the_padding_of_a_window_is_hatched(classifier: Any) -> None:
    found = trace(classifier, "2 3 5 7 1 2 3 4 5 6 2 1")  # longer than a window of 8 tokens
    with pytest.raises(ConfigError, match="`window=`"):
        plots.draw_attention(found)
    windows = found.shape_of("encoder.0.self.q")[0]
    axes = plots.draw_attention(found, layer=0, head=0, window=windows - 1).axes[0]
    rows, columns = names(axes)
    padding = columns.index("<pad>")
    assert rows == columns == [*found.sides["encoder"][(windows - 1) * 8 :], *["<pad>"] * (8 - padding)]
    assert np.ma.getmaskarray(image(axes))[:, padding:].all()
    assert hatches(axes) == ["...."]


def test_beta_goes_from_all_alike_over_the_models_own_to_hard(traced: Trace) -> None:
    axes = plots.draw_beta(traced, 1, layer=2, head=1).axes[0]
    weights = traced["decoder.2.cross.weights"][1, 1]
    drawn = image(axes)
    assert np.allclose(drawn[0], 1 / len(weights))
    assert np.allclose(drawn[SHARES.index(1.0)], weights, atol=1e-6)
    assert drawn[-1].tolist() == np.eye(len(weights))[weights.argmax()].tolist()
    masked = plots.draw_beta(traced, 1, "decoder-self").axes[0]
    assert np.ma.getmaskarray(image(masked))[:, 2:].all()
    assert not np.ma.getmaskarray(image(masked))[:, :2].any()


def test_a_query_is_found_by_its_token(traced: Trace) -> None:
    queries = traced.sides["decoder"]
    position = next(number for number, token in enumerate(queries) if queries.count(token) == 1 and number > 0)
    axes = plots.draw_beta(traced, queries[position]).axes[0]
    assert f"query {position} " in axes.get_title()
    with pytest.raises(InputError, match="is not among the queries"):
        plots.draw_beta(traced, "zebra")
    with pytest.raises(InputError, match="no query 99"):
        plots.draw_beta(traced, "99")


@pytest.mark.parametrize("wrong", [{"layer": 3}, {"head": 2}, {"window": 1}, {"layer": -1}])
def test_what_the_model_does_not_have_is_an_error(traced: Trace, wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="There is no"):
        plots.draw_attention(traced, **wrong)


def test_an_attention_that_the_task_does_not_have_is_an_error(language_model: Any) -> None:
    with pytest.raises(ConfigError, match="It has: decoder-self"):
        plots.draw_attention(trace(language_model, "2 3"), "cross")


# What random weights write may have letters of several scripts, which few machines have a single font for.
@pytest.mark.filterwarnings("ignore:No installed font has all letters")
def test_the_alignment_is_that_of_the_translator(translator: Any) -> None:
    [result] = translator.translate_batch(["2 3 5"], DecodingOptions(alignment=True))
    if result.text.split():
        drawn = image(plots.draw_alignment(result.alignment, "2 3 5", result.text).axes[0])
        pairs = {(int(column), int(row)) for row, column in np.argwhere(drawn)}
        assert pairs == set(result.alignment.by_word("2 3 5", result.text))
    known = Alignment(("▁a", "b", "▁c"), ("▁x", "▁y"), ((2, 0), (1, 1)))
    axes = plots.draw_alignment(known, "ab c", "x y").axes[0]
    assert image(axes).tolist() == [[0, 1], [1, 0]]
    assert names(axes) == (["x", "y"], ["ab", "c"])
    with pytest.raises(InputError, match="nothing to align"):
        plots.draw_alignment(known, "ab c", "")


def write_run(path: Path, entries: list[dict[str, Any]]) -> Path:
    path.mkdir(parents=True)
    record = {"format": 1, "asked": {}, "settings": {}, "fingerprint": "", "keeps_vocabulary": True}
    (path / "run.json").write_text(json.dumps(record), encoding="utf-8")
    (path / "log.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


def test_curves_of_several_runs_are_what_was_logged(tmp_path: Path) -> None:
    logged = [
        {"event": "train", "step": 10, "epoch": 1, "tokens": 100, "seconds": 30, "loss": 5.0, "lr": 0.1},
        {"event": "valid", "step": 10, "epoch": 1, "tokens": 100, "seconds": 30, "loss": 4.5, "bleu": 7.0},
        {"event": "train", "step": 20, "epoch": 1, "tokens": 200, "seconds": 60, "loss": 4.0, "lr": 0.2},
        {"event": "valid", "step": 20, "epoch": 1, "tokens": 200, "seconds": 60, "loss": 3.5, "bleu": 9.0},
        {"event": "valid", "step": 20, "tokens": 200, "seconds": 60, "loss": 3.4, "bleu": 9.5, "averaged": "last"},
    ]
    one = write_run(tmp_path / "one", logged)
    other = write_run(tmp_path / "other", logged[:1])
    loss, rate, bleu = plots.draw_training([one, other], along="minutes").axes
    curves = [(list(line.get_xdata()), list(line.get_ydata())) for line in loss.lines]
    assert curves[:3] == [([0.5, 1.0], [5.0, 4.0]), ([0.5, 1.0], [4.5, 3.5]), ([1.0], [3.4])]
    assert curves[3] == ([0.5], [5.0])
    assert [axes.get_ylabel() for axes in (loss, rate, bleu)] == ["loss", "learning rate", "BLEU"]
    assert [text.get_text() for text in loss.get_legend().get_texts()] == ["one", "other"]
    assert list(bleu.lines[1].get_ydata()) == [7.0, 9.0]


def test_a_directory_without_a_training_or_without_losses_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not the run directory"):
        plots.draw_training([tmp_path])
    with pytest.raises(InputError, match="no losses yet"):
        plots.draw_training([write_run(tmp_path / "new", [])])


def test_a_confusion_matrix_is_coloured_by_share_and_shows_counts() -> None:
    axes = plots.draw_confusion(np.array([[3, 1], [0, 0]]), ["good", "$bad$"]).axes[0]
    assert image(axes).tolist() == [[0.75, 0.25], [0, 0]]
    assert [text.get_text() for text in axes.texts] == ["3", "1", "0", "0"]
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("true class", "predicted class")
    assert names(axes) == (["good", "$bad$"],) * 2


@pytest.mark.parametrize(("ending", "start"), [(".png", b"\x89PNG"), (".SVG", b"<?xml"), (".pdf", b"%PDF")])
def test_the_ending_of_the_name_is_the_format(tmp_path: Path, ending: str, start: bytes) -> None:
    tokens = ["▁가", "나"] if CJK else ["▁a", "b"]
    written = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}{ending}"
        plots.save_figure(plots.draw_weights(np.eye(2), ["▁c", "$d$"], tokens), path)
        written.append(path.read_bytes())
    assert written[0].startswith(start)
    assert written[0] == written[1]  # the same figure gives the same bytes


def test_another_ending_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in \.png, \.svg or \.pdf"):
        plots.save_figure(plots.draw_masks(), tmp_path / "figure.docx")


@pytest.mark.skipif(not CJK, reason="no CJK font is installed")
def test_hangul_and_kanji_get_a_font_that_has_them() -> None:
    figure = plots.draw_weights(np.eye(2), ["▁the", "cat"], ["▁고양이", "猫"])
    families = {tuple(text.get_fontfamily()) for text in figure.findobj(Text)}
    [chosen] = families
    assert chosen[0] == fonts.DEFAULT_FONT
    assert len(chosen) == 2
    assert {ord(letter) for letter in "고양이猫"} <= fonts._letters(fonts._files()[chosen[1]])


def test_letters_that_no_font_has_are_numbered_and_a_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "_letters", lambda _file: frozenset(map(ord, "abc</s>▁")))
    messages: list[str] = []
    figure = plots.draw_weights(np.eye(2), ["▁a", "</s>"], ["▁가", "</s>"], on_message=messages.append)
    assert names(figure.axes[0]) == (["1", "2"], ["▁a", "</s>"])
    [message] = messages
    assert "letters of the output tokens, such as 가" in message
    assert "fonts-noto-cjk (Debian, Ubuntu)" in message
    assert message.endswith("are numbered: 1 ▁가  2 </s>")  # tokens may end in a full stop: none is added
    with pytest.warns(UserWarning, match="fonts-noto-cjk"):
        plots.draw_confusion(np.eye(1), ["가"])


def test_several_fonts_are_taken_where_no_single_one_has_all_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    have = {"default": "a", "one": "가나", "two": "ก"}
    monkeypatch.setattr(fonts, "_files", lambda: {fonts.DEFAULT_FONT: "default", "One": "one", "Two": "two"})
    monkeypatch.setattr(fonts, "_letters", lambda file: frozenset(map(ord, have[file])))
    assert fonts.fonts_for("a 가나ก") == (["One", "Two"], set())
    assert fonts.fonts_for("aก猫") == (["Two"], {"猫"})
