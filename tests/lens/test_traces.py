"""A trace is what the model computed: equal to an untraced run, and to a forward pass written independently."""

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from reference import Reference
from small_models import make_translator

from jumok import lens
from jumok.engines.classifier.text import TextClassifier
from jumok.engines.language_model.text import TextLanguageModel
from jumok.engines.translator.text import TextTranslator
from jumok.errors import InputError, UnreadableError
from jumok.lens.traces import Trace
from jumok.tokenizer import Tokenizer

TEXT = "cat dog tree house ."


def compare(trace: Trace, values: dict[str, torch.Tensor]) -> None:
    """Every recorded value, and none besides."""
    expected = {name: value.detach().numpy() for name, value in values.items()}
    assert set(expected) <= set(trace)
    own = {name for name in trace if "layer_" not in name} - {"probabilities", "surprise", "pooled"}
    own -= {"class_scores", "class_probabilities"}
    assert own == set(expected)
    for name, value in expected.items():
        assert trace[name].shape == value.shape, name
        np.testing.assert_allclose(np.asarray(trace[name], float), value.astype(float), atol=1e-5, err_msg=name)


@pytest.mark.parametrize("target", [None, "고양이 개 ."])
def test_every_value_of_a_translator_equals_an_independent_forward_pass(
    translator: TextTranslator, target: str | None
) -> None:
    trace = lens.trace(translator, TEXT, target=target, max_ratio=0.2)
    reference = Reference(translator.engine.model)  # type: ignore[attr-defined]
    memory = reference.encode(torch.from_numpy(trace["encoder.ids"].values))
    reference.decode(torch.from_numpy(trace["decoder.ids"].values), memory)
    compare(trace, reference.values)


def test_every_value_of_a_language_model_equals_an_independent_forward_pass(language_model: TextLanguageModel) -> None:
    trace = lens.trace(language_model, TEXT)
    reference = Reference(language_model.engine.model)  # type: ignore[attr-defined]
    reference.decode(torch.from_numpy(trace["decoder.ids"].values), None)
    compare(trace, reference.values)
    [scores] = language_model.score([TEXT])
    np.testing.assert_allclose(trace["surprise"].values, -np.array(scores) / np.log(2), rtol=1e-5)


def test_every_value_of_a_classifier_equals_an_independent_forward_pass(classifier: TextClassifier) -> None:
    trace = lens.trace(classifier, "cat dog .")
    reference = Reference(classifier.engine.model)  # type: ignore[attr-defined]
    reference.encode(torch.from_numpy(trace["encoder.ids"].values))
    compare(trace, reference.values)
    np.testing.assert_array_equal(trace["class_scores"].values, classifier.scores(["cat dog ."])[0])
    assert trace.output == classifier.classify(["cat dog ."])[0].label


def test_a_text_of_several_windows_has_an_axis_for_them(classifier: TextClassifier) -> None:
    trace = lens.trace(classifier, "cat dog bird fish tree house river sky cat dog .")
    weights = trace["encoder.1.self.weights"]
    assert weights.axes == ("window", "head", "query", "key")
    assert weights.shape == (2, 2, 8, 8)


def test_tracing_changes_no_bit_of_the_output(translator: TextTranslator) -> None:
    options = {"beam": 3, "n_best": 2, "max_ratio": 0.5}
    before = translator.translate_batch([TEXT], translator_options(**options))
    trace = lens.trace(translator, TEXT, **options)
    after = translator.translate_batch([TEXT], translator_options(**options))
    assert before == after
    assert trace.output == before[0].text
    assert trace.search is not None
    assert trace.search.nodes[trace.search.best].score == pytest.approx(before[0].score, abs=1e-6)


def translator_options(**options: object) -> object:
    from jumok.engines.options import DecodingOptions

    return DecodingOptions.of(**options)


def test_weights_times_values_are_what_the_model_mixed(translator: TextTranslator) -> None:
    trace = lens.trace(translator, TEXT, max_ratio=0.2)
    found = trace.find("*.weights")
    assert len(found) == 2 + 3 + 3
    for name, weights in found.items():
        values, mixed = (trace[name.replace("weights", part)].values for part in ("v", "mixed"))
        assert np.abs(weights.values @ values - mixed).max() <= 1e-6
        np.testing.assert_allclose(weights.values.sum(-1), 1, rtol=1e-6)


def test_masked_weights_are_exactly_zero(translator: TextTranslator) -> None:
    trace = lens.trace(translator, TEXT, target="고양이 개 나무 집 .")
    weights, masked = trace["decoder.1.self.weights"].values, trace["decoder.1.self.masked"].values
    hidden = ~np.tril(np.ones(weights.shape[1:], bool))
    assert hidden.sum() > 5
    assert (weights[:, hidden] == 0).all()
    assert (masked[:, hidden] == -np.inf).all()
    assert np.array_equal(trace["decoder.1.self.mask"].values, ~hidden)


def test_axes_and_tokens_are_named(translator: TextTranslator) -> None:
    trace = lens.trace(translator, "cat dog .", target="고양이 개 .")
    weights = trace["decoder.2.cross.weights"]
    assert weights.axes == ("head", "query", "key")
    assert weights.tokens == {"query": ("<s>", "▁고양이", "▁개", "▁."), "key": ("▁cat", "▁dog", "▁.", "</s>")}
    assert repr(weights) == "decoder.2.cross.weights [head=2, query=4, key=4]"
    assert trace["encoder.embedding"].tokens == {"position": ("▁cat", "▁dog", "▁.", "</s>")}
    assert list(trace.find("encoder.*.weights")) == ["encoder.0.self.weights", "encoder.1.self.weights"]


def test_a_wrong_name_is_an_error_that_suggests_the_right_one(translator: TextTranslator) -> None:
    trace = lens.trace(translator, "cat .", target="개 .")
    with pytest.raises(InputError, match=r'no "encoder\.0\.self\.weight"\. Did you mean "encoder\.0\.self\.weights"'):
        trace["encoder.0.self.weight"]


def test_the_tree_names_every_value_in_the_order_of_the_forward_pass(
    translator: TextTranslator, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = lens.trace(translator, "cat .", target="개 .")
    trace.tree()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(trace)
    assert "encoder.1.self.weights           head 2 × query 3 × key 3" in lines
    names = [line.split()[0] for line in lines]
    assert names.index("encoder.output") < names.index("decoder.ids") < names.index("decoder.0.self.q")
    assert names.index("decoder.0.self.weights") < names.index("decoder.0.cross.q") < names.index("logits")


def test_a_step_is_what_a_shorter_output_would_have_been(translator: TextTranslator) -> None:
    trace = lens.trace(translator, TEXT, target="고양이 개 나무 집 .").at(2)
    shorter = lens.trace(translator, TEXT, target="고양이 개")
    assert trace["decoder.1.self.weights"].shape == (2, 3, 3)
    for name in shorter:
        np.testing.assert_allclose(trace[name].values, shorter[name].values, atol=1e-5, err_msg=name)
    with pytest.raises(InputError, match="Step 3 is not among the 3"):
        trace.at(3)


def test_a_trace_is_saved_to_one_file_and_loaded_again(translator: TextTranslator, tmp_path: Path) -> None:
    trace = lens.trace(translator, TEXT, max_ratio=0.2)
    trace.save(tmp_path / "one.trace")
    loaded = lens.load_trace(tmp_path / "one.trace")
    assert (loaded.text, loaded.output, loaded.sides) == (trace.text, trace.output, trace.sides)
    assert loaded.search == trace.search
    assert list(loaded) == list(trace)
    for name in trace:
        assert np.array_equal(loaded[name].values, trace[name].values), name


@pytest.mark.parametrize("content", [b"", b"\x00" * 20, b"\xff" * 100])
def test_another_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UnreadableError, match=r"is not a trace"):
        lens.load_trace(tmp_path / "x")


def test_an_empty_text_is_an_error(translator: TextTranslator, language_model: TextLanguageModel) -> None:
    for model in (translator, language_model):
        with pytest.raises(InputError, match="has no tokens"):
            lens.trace(model, "")


def test_a_source_token_can_be_replaced(translator: TextTranslator) -> None:
    trace = lens.trace(translator, "cat dog .", replace={1: "▁tree"}, target="개 .")
    assert trace.sides["encoder"] == ("▁cat", "▁tree", "▁.", "</s>")
    direct = lens.trace(translator, "cat tree .", target="개 .")
    assert np.array_equal(trace["logits"].values, direct["logits"].values)
    with pytest.raises(InputError, match="Position 7"):
        lens.trace(translator, "cat dog .", replace={7: "▁tree"})
    with pytest.raises(InputError, match='"trees" is not a token'):
        lens.trace(translator, "cat dog .", replace={0: "trees"})


def test_the_last_layer_says_what_the_model_says(translator: TextTranslator) -> None:
    trace = lens.trace(translator, TEXT, target="고양이 개 .")
    best = trace["probabilities"].values.argsort(-1)[:, ::-1][:, :10]
    np.testing.assert_array_equal(trace["decoder.2.layer_ids"].values, best)
    shown = np.take_along_axis(trace["probabilities"].values, best, -1)
    np.testing.assert_allclose(trace["decoder.2.layer_probabilities"].values, shown, rtol=1e-5)


def test_tracing_takes_at_most_three_times_as_long(tokenizer: Tokenizer) -> None:
    translator = make_translator(tokenizer, encoder_layers=4, decoder_layers=4, d_model=128, heads=4, d_ff=256)
    text = " ".join(["cat dog tree house river sky"] * 10)  # 60 tokens
    options = {"beam": 5, "max_ratio": 0.3, "resolve_loops": False}

    def seconds(run: object) -> float:
        started = time.process_time()  # not of other programs
        run()  # type: ignore[operator]
        return time.process_time() - started

    ratios = []
    for _ in range(4):
        plain = seconds(lambda: translator.translate(text, **options))
        ratios.append(seconds(lambda: lens.trace(translator, text, **options)) / plain)
    assert min(ratios[1:]) <= 3


def test_the_results_of_a_classifier_stand_in_the_order_in_which_they_are_computed(classifier: TextClassifier) -> None:
    assert list(lens.trace(classifier, "2 3 5"))[-3:] == ["pooled", "class_scores", "class_probabilities"]
