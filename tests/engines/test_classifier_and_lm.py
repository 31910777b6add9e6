"""Classifiers, language models and sentence vectors at work."""

from pathlib import Path

import numpy as np
import pytest
import torch

from jumok.bundle import Bundle, load_bundle, save_bundle
from jumok.engines.classifier.text import TextClassifier
from jumok.engines.classifier.torch import TorchClassifier
from jumok.engines.language_model.text import TextLanguageModel
from jumok.engines.language_model.torch import TorchLanguageModel
from jumok.engines.loading import load
from jumok.engines.options import GenerationOptions
from jumok.engines.translator.text import SEGMENT_TOKENS
from jumok.engines.translator.torch import TorchTranslator
from jumok.errors import BundleError, ConfigError
from jumok.model.classifier import Classifier
from jumok.model.config import ModelConfig, preset
from jumok.model.language_model import LanguageModel
from jumok.model.translator import Translator
from jumok.tokenizer import BOS, EOS, PAD, UNK, Tokenizer

TEXTS = ["the cat sees the dog", "a cat", "", "the dog sees the very small bird in the tall tree", "고양이가 자요"]
SIZES = {"d_model": 16, "heads": 2, "d_ff": 32, "dropout": 0.0}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train([text for text in TEXTS if text] * 5, 400)


def config(tokenizer: Tokenizer, task: str, **changes: object) -> ModelConfig:
    layers = {"classifier": {"encoder_layers": 2}, "language_model": {"decoder_layers": 2}}.get(
        task, {"encoder_layers": 2, "decoder_layers": 2}
    )
    return preset("tiny", vocabulary=tokenizer.size, task=task, **SIZES, **layers, **changes)


@pytest.fixture(scope="module")
def classifying_model(tokenizer: Tokenizer) -> Classifier:
    torch.manual_seed(0)
    model = Classifier(config(tokenizer, "classifier", classes=3, window=6, ngrams=64)).eval()
    torch.nn.init.normal_(model.ngrams[0].get_parameter("scores"))
    return model


@pytest.fixture(scope="module")
def classifier(tokenizer: Tokenizer, classifying_model: Classifier) -> TextClassifier:
    card = {"classes": {"a": 1, "b": 2, "c": 3}, "metrics": {"temperature": 2.0}}
    return TextClassifier(TorchClassifier(classifying_model), tokenizer, card, Path("model"))


@pytest.fixture(scope="module")
def language_model(tokenizer: Tokenizer) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(config(tokenizer, "language_model")).eval()


@pytest.fixture(scope="module")
def generator(tokenizer: Tokenizer, language_model: LanguageModel) -> TextLanguageModel:
    return TextLanguageModel(TorchLanguageModel(language_model), tokenizer, {}, Path("model"))


def saved(tmp_path: Path, model: torch.nn.Module, tokenizer: Tokenizer, card: dict[str, object]) -> Bundle:
    weights = {name: weight.detach().numpy() for name, weight in model.state_dict().items()}
    values = model.config.to_dict()  # type: ignore[union-attr, operator]
    save_bundle(
        tmp_path / "model", config=values, weights=weights, encoder=("tokenizer", tokenizer.to_bytes()), card=card
    )
    return load_bundle(tmp_path / "model")


def test_classes_do_not_depend_on_the_neighbours(classifier: TextClassifier) -> None:
    together = classifier.scores(TEXTS)
    alone = np.concatenate([classifier.scores([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_probabilities_sum_to_one_and_the_label_is_the_largest(classifier: TextClassifier) -> None:
    assert classifier.classify(TEXTS[0]) == classifier.classify(TEXTS[:1])[0]
    for found in classifier.classify(TEXTS):
        assert sum(found.probabilities.values()) == pytest.approx(1)
        assert found.probability == max(found.probabilities.values()) == found.probabilities[found.label]


def test_a_very_long_text_is_read_to_its_end(classifier: TextClassifier) -> None:
    long = "the cat sees the dog " * 4000
    one, other = classifier.scores([long + "a", long + "very small"])
    assert np.isfinite(one).all()
    assert not np.array_equal(one, other)


def test_learned_positions_are_used_up_to_the_last(tokenizer: Tokenizer) -> None:
    learned = {"positions": "learned", "max_length": 8}
    writer = LanguageModel(config(tokenizer, "language_model", **learned)).eval()
    [row] = TorchLanguageModel(writer).score([[5] * 7])
    assert len(row) == 8
    assert TorchLanguageModel(writer).generate([5] * 4, GenerationOptions(max_tokens=3, temperature=0)) is not None
    reader = Classifier(config(tokenizer, "classifier", window=8, **learned)).eval()
    # A window has no more positions than a short text.
    assert np.isfinite(TorchClassifier(reader).scores([[5] * 30])).all()


def test_an_explanation_names_every_subword(classifier: TextClassifier) -> None:
    text = TEXTS[3]
    found = classifier.explain(text)
    assert "".join(piece for piece, _ in found).replace("▁", " ").strip() == text
    assert any(attribution for _, attribution in found)
    other = classifier.explain(text, "a")
    assert {label: classifier.explain(text, label) == other for label in ("a", "b")} == {"a": True, "b": False}
    with pytest.raises(ConfigError, match=r"label='d' is unknown\. Known: a, b, c"):
        classifier.explain(text, "d")


@pytest.mark.parametrize("pooling", ["mean", "max", "answers"])
def test_an_explanation_over_several_windows_is_that_of_each_window(tokenizer: Tokenizer, pooling: str) -> None:
    """The gradient of the chosen class, less the mean of the others, times the input: here computed by hand."""
    torch.manual_seed(2)
    model = Classifier(config(tokenizer, "classifier", classes=3, window=6, pooling=pooling)).eval()
    card = {"classes": {"a": 1, "b": 2, "c": 3}}
    text = "the cat sees the dog and the dog sees the very small bird"
    found = TextClassifier(TorchClassifier(model), tokenizer, card, Path("model")).explain(text, "b")
    [ids] = tokenizer.encode([text])
    row = [*ids, EOS]
    assert len(row) > 13  # three windows
    inputs = [model.embed(torch.tensor([row[i : i + 6]])).detach().requires_grad_() for i in range(0, len(row), 6)]
    states = torch.cat([model.encoder(part, None)[0] for part in inputs])
    by_token = model.head(states)
    by_pooling = {"mean": model.head(states.mean(0)), "max": model.head(states.amax(0)), "answers": by_token.amax(0)}
    scores = by_pooling[pooling]
    (scores[1] - (scores[0] + scores[2]) / 2).backward()
    expected = torch.cat([(part.grad * part).sum(-1)[0] for part in inputs]).tolist()  # type: ignore[operator]
    assert [piece for piece, _ in found] == tokenizer.pieces(ids)
    assert [attribution for _, attribution in found] == pytest.approx(expected[: len(ids)], abs=1e-5)


def test_a_classifier_in_training_stays_in_training(classifier: TextClassifier, tokenizer: Tokenizer) -> None:
    model = Classifier(config(tokenizer, "classifier", classes=2)).train()
    TorchClassifier(model).scores(tokenizer.encode(["cat " * 2000]))
    assert model.training
    model(torch.tensor([[5] * 1500])).sum().backward()  # the table of positions that grew meanwhile can be used


def test_each_task_loads_as_what_it_is(
    tmp_path: Path,
    classifier: TextClassifier,
    classifying_model: Classifier,
    language_model: LanguageModel,
    tokenizer: Tokenizer,
) -> None:
    saved(tmp_path / "c", classifying_model, tokenizer, classifier.card)
    saved(tmp_path / "g", language_model, tokenizer, {})
    again = load(tmp_path / "c" / "model")
    assert isinstance(again, TextClassifier)
    np.testing.assert_array_equal(again.scores(TEXTS), classifier.scores(TEXTS))
    assert again.temperature == 2.0
    assert isinstance(load(tmp_path / "g" / "model", task="language_model"), TextLanguageModel)
    with pytest.raises(BundleError, match=r"is a classifier, not a translator\.$"):
        load(tmp_path / "c" / "model", task="translator")
    with pytest.raises(BundleError, match=r"is a language model, not a classifier\.$"):
        load(tmp_path / "g" / "model", task="classifier")


def test_a_card_that_does_not_fit_its_classifier_is_refused(
    tmp_path: Path, classifying_model: Classifier, tokenizer: Tokenizer
) -> None:
    saved(tmp_path, classifying_model, tokenizer, {"classes": {"a": 1}})
    with pytest.raises(BundleError, match="its card names 1 class,"):
        load(tmp_path / "model")


def test_log_probabilities_are_the_models_own(language_model: LanguageModel, tokenizer: Tokenizer) -> None:
    encoded = tokenizer.encode(TEXTS)
    for ids, row in zip(encoded, TorchLanguageModel(language_model).score(encoded), strict=True):
        logits = language_model(torch.tensor([[BOS, *ids]]))[0].detach()
        logits[:, [PAD, UNK, BOS]] = -torch.inf  # never written, so they have no probability
        logits = logits.log_softmax(-1)
        expected = [float(logits[place, token]) for place, token in enumerate([*ids, EOS])]
        np.testing.assert_allclose(row, expected, atol=1e-4)


def test_the_most_probable_token_follows(language_model: LanguageModel, tokenizer: Tokenizer) -> None:
    [prompt] = tokenizer.encode(["the cat"])
    written = TorchLanguageModel(language_model).generate(prompt, GenerationOptions(max_tokens=5, temperature=0))
    expected = list(prompt)
    for _ in range(5):
        scores = language_model(torch.tensor([[BOS, *expected]]))[0, -1].clone()
        scores[[0, 1, BOS]] = -torch.inf  # never written
        token = int(scores.argmax())
        if token == EOS:
            break
        expected.append(token)
    assert written == expected[len(prompt) :]


@pytest.mark.parametrize("prompt", ["", "the cat", "고양"])
def test_the_parts_of_a_text_are_what_is_returned(generator: TextLanguageModel, prompt: str) -> None:
    parts: list[str] = []
    text = generator.generate(prompt, on_text=parts.append, max_tokens=30, seed=3)
    assert "".join(parts) == text
    assert text == generator.generate(prompt, max_tokens=30, seed=3)
    assert len({generator.generate(prompt, max_tokens=30, seed=seed) for seed in range(5)}) > 1


def test_generation_that_makes_no_sense_is_refused(generator: TextLanguageModel) -> None:
    with pytest.raises(ConfigError, match="max_tokens"):
        generator.generate("x", max_tokens=0)
    with pytest.raises(ConfigError, match="top_p"):
        generator.generate("x", top_p=0.0)


def test_vectors_have_length_one_and_do_not_depend_on_the_neighbours(
    classifying_model: Classifier, tokenizer: Tokenizer
) -> None:
    torch.manual_seed(1)
    translator = Translator(config(tokenizer, "translator")).eval()
    encoded = tokenizer.encode(TEXTS)
    for engine in (TorchTranslator(translator), TorchClassifier(classifying_model)):
        together = engine.vectors(encoded)
        alone = np.concatenate([engine.vectors([ids]) for ids in encoded])
        np.testing.assert_allclose(together, alone, atol=1e-5)
        lengths = np.linalg.norm(together, axis=1)
        assert lengths.tolist() == pytest.approx([1, 1, 0, 1, 1])  # an empty text has no direction
    long = encoded[3] * 100
    parts = [long[start : start + SEGMENT_TOKENS] for start in range(0, len(long), SEGMENT_TOKENS)]
    with torch.inference_mode():
        states = [translator.encode(torch.tensor([[*part, EOS]])).states[0, :-1] for part in parts]
    mean = torch.cat(states).mean(0)
    np.testing.assert_allclose(TorchTranslator(translator).vectors([long])[0], mean / mean.norm(), atol=1e-5)
