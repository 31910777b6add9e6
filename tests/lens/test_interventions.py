"""A change holds inside its `with` block, does what it says, and leaves nothing behind."""

from pathlib import Path

import numpy as np
import pytest
import torch
from small_models import make_painter, make_translator

from jumok import lens
from jumok.engines.translator.text import TextTranslator
from jumok.errors import ConfigError
from jumok.lens import changed, mean_outputs
from jumok.lens.traces import Trace
from jumok.tokenizer import Tokenizer

TEXT, TARGET = "cat dog tree house .", "고양이 개 나무 ."


def look(translator: TextTranslator) -> Trace:
    return lens.trace(translator, TEXT, target=TARGET)


def test_nothing_has_changed_after_the_block(translator: TextTranslator) -> None:
    before = look(translator)
    with changed(translator, heads={("encoder.0.self", 1): "zero"}, beta=3.0, positions="removed"):
        inside = look(translator)
    with pytest.raises(RuntimeError, match="stop"), changed(translator, hard=True):
        raise RuntimeError("stop")
    after = look(translator)
    assert not np.array_equal(before["logits"].values, inside["logits"].values)
    for name in before:
        assert np.array_equal(before[name].values, after[name].values), name
    model = translator.engine.model  # type: ignore[attr-defined]
    assert not [module for module in model.modules() if module._forward_hooks or module._forward_pre_hooks]


def test_a_head_that_is_switched_off_gives_zero_and_the_others_stay(translator: TextTranslator) -> None:
    before = look(translator)
    with changed(translator, heads={("encoder.0.self", 1): "zero"}):
        trace = look(translator)
    mixed = trace["encoder.0.self.mixed"].values
    assert (mixed[1] == 0).all()
    assert np.array_equal(mixed[0], before["encoder.0.self.mixed"].values[0])
    assert trace.facts["changes"]["heads"] == [["encoder.0.self", 1, "zero"]]


def test_a_uniform_head_attends_to_every_visible_key_alike(translator: TextTranslator) -> None:
    with changed(translator, heads={("decoder.1.self", 0): "uniform"}):
        weights = look(translator)["decoder.1.self.weights"].values
    visible = np.tril(np.ones(weights.shape[1:]))
    np.testing.assert_allclose(weights[0], visible / visible.sum(1, keepdims=True), rtol=1e-6)


def test_a_head_can_be_its_mean_over_some_texts(translator: TextTranslator) -> None:
    with mean_outputs(translator) as means:
        before = look(translator)
    expected = before["decoder.0.cross.mixed"].values.mean(1)
    np.testing.assert_allclose(means["decoder.0.cross"].numpy(), expected, rtol=1e-5)
    with changed(translator, heads={("decoder.0.cross", 1): "mean"}, means=means):
        mixed = look(translator)["decoder.0.cross.mixed"].values
    np.testing.assert_allclose(mixed[1], np.broadcast_to(expected[1], mixed[1].shape), rtol=1e-5)


def test_beta_between_uniform_and_hard(translator: TextTranslator) -> None:
    def weights(**change: object) -> np.ndarray:
        with changed(translator, **change):  # type: ignore[arg-type]
            return look(translator)["encoder.0.self.weights"].values

    scores = look(translator)["encoder.0.self.scores"].values
    width = 16 // 2
    beta = 2.5
    expected = torch.from_numpy(scores * beta * width**0.5).softmax(-1).numpy()
    np.testing.assert_allclose(weights(beta=beta), expected, rtol=1e-4)
    np.testing.assert_allclose(weights(beta=0.0), 1 / scores.shape[-1], rtol=1e-6)
    hard = weights(hard=True)
    assert set(np.unique(hard)) == {0.0, 1.0}
    assert np.array_equal(hard.argmax(-1), scores.argmax(-1))
    np.testing.assert_allclose(weights(beta=1e4), hard, atol=1e-3)


def test_hard_attention_mixes_what_it_says(translator: TextTranslator) -> None:
    with changed(translator, hard=True, attention="encoder.1.self"):
        trace = look(translator)
    for name in ("encoder.0.self", "encoder.1.self"):
        weights, values, mixed = (trace[f"{name}.{part}"].values for part in ("weights", "v", "mixed"))
        np.testing.assert_allclose(weights @ values, mixed, atol=1e-6)
    assert set(np.unique(trace["encoder.1.self.weights"].values)) == {0.0, 1.0}
    assert set(np.unique(trace["encoder.0.self.weights"].values)) != {0.0, 1.0}


def test_positions_are_removed_shifted_or_shuffled(translator: TextTranslator) -> None:
    plain = look(translator)
    scaled = plain["encoder.scaled"].values
    with changed(translator, positions="removed"):
        np.testing.assert_array_equal(look(translator)["encoder.embedded"].values, scaled)
    with changed(translator, positions=2):
        shifted = look(translator)["encoder.embedded"].values - scaled
    table = plain["encoder.positions"].values
    np.testing.assert_allclose(shifted[:-2], table[2:], atol=1e-6)
    with changed(translator, positions="shuffled", seed=3):
        shuffled = look(translator)["encoder.embedded"].values - scaled
        output = translator.translate(TEXT, max_ratio=0.1)
        assert lens.trace(translator, TEXT, max_ratio=0.1).output == output
    assert not np.allclose(shuffled, table, atol=1e-3)


def test_without_positions_the_order_of_the_words_does_not_matter(translator: TextTranslator) -> None:
    def states(text: str) -> np.ndarray:
        return lens.trace(translator, text, target=TARGET)["encoder.output"].values.sum(0)

    one, other = "cat dog tree house .", "house cat tree dog ."
    assert not np.allclose(states(one), states(other), atol=1e-3)
    with changed(translator, positions="removed"):
        np.testing.assert_allclose(states(one), states(other), atol=1e-4)


def test_rotations_are_shifted_and_shuffled_too(tokenizer: Tokenizer) -> None:
    translator = make_translator(tokenizer, norm="pre", rotary=True)
    rotations = translator.engine.model.encoder.rotations  # type: ignore[attr-defined]
    like = torch.zeros(1)
    plain = rotations(like, 40)
    with changed(translator, positions=2):
        torch.testing.assert_close(rotations(like, 38), plain[:, 2:])
    with changed(translator, positions="shuffled", seed=3):
        shuffled = rotations(like, 40)
        torch.testing.assert_close(rotations(like, 1, 7), shuffled[:, 7:8])  # as in a step of decoding
    assert not torch.equal(shuffled, plain)


def test_the_rotations_of_a_picture_stay(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = make_painter(tokenizer, tmp_path, rotary=True, encoder_layers=2).engine.model  # type: ignore[attr-defined]
    source, target = torch.tensor([[7, 8, 9, 3]]), torch.tensor([[2, 5, 6, 7]])
    memory, (states, _) = model.encode(source), model.decode(target, model.encode(source))
    with changed(model, positions="removed"):
        assert torch.equal(model.decode(target, memory)[0], states)
        assert not torch.equal(model.encode(source).states, memory.states)


@pytest.mark.parametrize("positions", ["removed", "shuffled", 2])
def test_changed_positions_are_recorded_as_they_were_added(translator: TextTranslator, positions: str | int) -> None:
    with changed(translator, positions=positions):
        trace = look(translator)
    for stack in ("encoder", "decoder"):
        scaled, table, embedded = (trace[f"{stack}.{name}"].values for name in ("scaled", "positions", "embedded"))
        np.testing.assert_array_equal(scaled + table, embedded)
    assert not np.array_equal(trace["encoder.positions"].values, look(translator)["encoder.positions"].values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": {("encoder.7.self", 0): "zero"}}, 'no attention "encoder.7.self"'),
        ({"heads": {("encoder.0.self", 9): "zero"}}, "no head 9"),
        ({"heads": {("encoder.0.self", 0): "off"}}, "off"),
        ({"heads": {("encoder.0.self", 0): "mean"}}, "mean_outputs"),
        ({"beta": float("inf")}, "hard=True"),
        ({"positions": "none"}, "removed"),
        ({"positions": -1}, "positions=-1"),
        ({"positions": 1.5}, "positions=1.5"),
    ],
)
def test_a_change_that_cannot_be_made_is_an_error(
    translator: TextTranslator, change: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message), changed(translator, **change):  # type: ignore[arg-type]
        pass
    assert not [m for m in translator.engine.model.modules() if m._forward_hooks]  # type: ignore[attr-defined]
