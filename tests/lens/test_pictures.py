"""Traces of pictures: of a classifier, whose patches add up, and of a painter, whose tokens attend to words."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_models import make_image_classifier, make_image_tokens, make_painter

from jumok import lens
from jumok.engines.painter.options import PaintingOptions
from jumok.engines.painter.text import TextPainter
from jumok.errors import ConfigError, InputError
from jumok.lens.importance import measure_for
from jumok.lens.session import Entry, Session
from jumok.model.painter import FIRST_CODE
from jumok.pictures import UnusablePictureError, png_bytes
from jumok.tokenizer import BOS, EOS, Tokenizer

PIXELS = np.random.default_rng(1).integers(0, 256, (10, 12, 1), dtype=np.uint8)
CAPTION = "cat dog ."


@pytest.fixture
def painter(tokenizer: Tokenizer, tmp_path: Path) -> TextPainter:
    return make_painter(tokenizer, tmp_path)


@pytest.mark.parametrize("mirror", [False, True])
def test_patches_add_up_to_the_scores_and_hidden_ones_are_classified_again(tmp_path: Path, mirror: bool) -> None:
    classifier = make_image_classifier(tmp_path, mirror=mirror)
    found = lens.trace(classifier, PIXELS, hide=True)
    [scores] = classifier.scores([PIXELS])
    bias: Any = classifier.engine.model.head.bias  # type: ignore[attr-defined]
    np.testing.assert_allclose(found["patch_scores"].values.sum(0) + bias.numpy(), scores, atol=1e-5)
    assert found["hidden_scores"].shape == (9, 3)
    for patch, (row, column) in enumerate((row, column) for row in (0, 4, 8) for column in (0, 4, 8)):
        pixels = PIXELS.copy()
        pixels[row : row + 4, column : column + 4] = 102  # 0.4 · 255, the mean
        np.testing.assert_allclose(found["hidden_scores"].values[patch], classifier.scores([pixels])[0], atol=1e-5)


def test_a_traced_picture_is_the_one_that_is_painted_and_its_words_are_attended_to(painter: TextPainter) -> None:
    found = lens.trace(painter, CAPTION, seed=3, guidance=1.5)
    [source] = painter.tokenizer.encode([CAPTION])
    [[codes]] = painter.engine.paint([source], PaintingOptions(seed=3, guidance=1.5))
    assert found.facts["chosen"] == (codes + FIRST_CODE).tolist()
    [[pixels]] = painter.paint_arrays([CAPTION], seed=3, guidance=1.5)
    assert (found["picture"].values == pixels).all()
    model: Any = painter.engine.model  # type: ignore[attr-defined]
    with torch.no_grad():
        target = torch.tensor([[BOS, *found.facts["chosen"][:-1]]])
        logits = model(torch.tensor([[*source, EOS]]), target)[0].numpy()
    np.testing.assert_allclose(found["logits"].values, logits, atol=1e-5)
    assert found["decoder.ids"].values.tolist() == target[0].tolist()
    table = model.positions.rows[:, None] + model.positions.columns
    np.testing.assert_allclose(found["decoder.positions"].values, table.flatten(0, 1).numpy(), atol=1e-6)
    for attention in ("encoder.0.self", "decoder.0.self", "decoder.1.cross"):
        weights, v = found[f"{attention}.weights"].values, found[f"{attention}.v"].values
        np.testing.assert_allclose(weights @ v, found[f"{attention}.mixed"].values, atol=1e-6)
    probabilities = found["probabilities"].values
    assert not probabilities[:, :FIRST_CODE].any()
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-5)


def test_the_gain_of_a_caption_is_the_log_probability_with_it_less_that_without(painter: TextPainter) -> None:
    codes = [3, 0, 11, 5, 5, 1]
    found = lens.trace(painter, CAPTION, codes=codes)
    assert found.sides["chosen"] == ("#3", "#0", "#11", "#5", "#5", "#1")
    chosen = np.array(codes) + FIRST_CODE
    model: Any = painter.engine.model  # type: ignore[attr-defined]
    with torch.no_grad():
        logits = model(torch.tensor([[EOS]]), torch.tensor([[BOS, *chosen[:-1]]]))[0]
    logits[:, :FIRST_CODE] = -torch.inf
    alone = logits.log_softmax(1).numpy()[range(6), chosen]
    own = np.log(found["probabilities"].values[range(6), chosen])
    np.testing.assert_allclose(found["caption_gain"].values, own - alone, atol=1e-5)


@pytest.mark.parametrize("codes", [[1, 2], [0, 1, 2, 3, 4, 12], [-1, 1, 2, 3, 4, 5]])
def test_codes_that_no_picture_has_are_an_error(painter: TextPainter, codes: list[int]) -> None:
    with pytest.raises(InputError, match="6 numbers from 0 to 11"):
        lens.trace(painter, CAPTION, codes=codes)


def test_a_request_names_a_picture_that_the_page_was_started_with_or_brings_its_file(tmp_path: Path) -> None:
    classifier = make_image_classifier(tmp_path)
    path = tmp_path / "own.png"
    path.write_bytes(png_bytes(PIXELS))
    session = Session([Entry("model", lambda: classifier)], pictures={"own": path})
    own = session.trace({"text": "own"})
    assert (own["text"], own["output"]) == ("own", classifier.classify(path).label)
    brought = session.trace({"text": "other.png", "picture": base64.b64encode(png_bytes(PIXELS)).decode()})
    assert brought["arrays"]["class_scores"] == own["arrays"]["class_scores"]
    for name in (str(path), "own.png", ""):
        with pytest.raises(InputError, match="has no picture"):
            session.trace({"text": name})
    with pytest.raises(InputError, match="not base64"):
        session.trace({"text": "a", "picture": "no base64!"})
    with pytest.raises(UnusablePictureError, match="not a PNG"):
        session.trace({"text": "a", "picture": base64.b64encode(b"text").decode()})


def test_no_request_opens_a_file_that_it_names(tmp_path: Path) -> None:
    """Whether there is such a file must not be seen either."""
    classifier = make_image_classifier(tmp_path)
    session = Session([Entry("model", lambda: classifier)])
    (tmp_path / "secret").write_text("secret")
    for name in (str(tmp_path / "secret"), str(tmp_path / "missing")):
        request = {"text": name}
        with pytest.raises(InputError, match="has no picture"):
            session.trace(request)
        with pytest.raises(ConfigError, match="Heads of a picture classifier cannot be ranked"):
            next(session.rank(request))
        with pytest.raises(ConfigError, match="Attributions explain"):
            session.attribution(request)


def test_image_tokens_alone_cannot_be_looked_into(tmp_path: Path) -> None:
    tokens = make_image_tokens(tmp_path)
    session = Session([Entry("first stage", lambda: tokens)])
    for look in (
        lambda: session.model(0),
        lambda: lens.trace(tokens, PIXELS),
        lambda: measure_for(tokens, [], score=False),
    ):
        with pytest.raises(
            ConfigError, match=r"A set of image tokens cannot be looked into.*a painter: give the run directory"
        ):
            look()


@pytest.mark.parametrize("codes", [[[0, 12]], [[-1, 0]], [[1]], [1, 2], [[1.5, 1]], [[1, 2], [1]], []])
def test_image_tokens_that_no_picture_has_are_not_drawn(tmp_path: Path, codes: Any) -> None:
    tokens = make_image_tokens(tmp_path)
    assert tokens.draw(np.array([[11, 0]])).shape == (1, 4, 8, 1)
    with pytest.raises(InputError, match="2 numbers from 0 to 11"):
        tokens.draw(codes)


def test_heads_of_models_of_pictures_cannot_be_ranked(painter: TextPainter) -> None:
    with pytest.raises(ConfigError, match="Heads of a painter cannot be ranked"):
        measure_for(painter, [], score=False)
