"""Painting: sampling image tokens, with and without guidance."""

import numpy as np
import pytest
import torch

from jumok.engines.painter.options import PaintingOptions
from jumok.engines.painter.torch import LIKELY, TorchPainter
from jumok.errors import ConfigError
from jumok.model.cache import DecoderCache
from jumok.model.config.painter import PainterConfig
from jumok.model.painter import FIRST_CODE, Painter
from jumok.tokenizer import BOS, EOS

CAPTIONS = [[5, 6, 7], [8], [9, 10]]


@pytest.fixture(scope="module")
def engine() -> TorchPainter:
    torch.manual_seed(1)
    sizes = {"d_model": 32, "heads": 2, "d_ff": 48, "dropout": 0.0, "norm": "pre"}
    picture = {"height": 8, "width": 8, "channels": 1, "patch": 4, "codes": 12, "code_width": 16}
    config = PainterConfig(vocabulary=20, encoder_layers=1, decoder_layers=1, **sizes, **picture)  # type: ignore[arg-type]
    model = Painter(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)  # clear preferences
    return TorchPainter(model)


def test_every_picture_has_all_its_tokens_and_they_are_codes(engine: TorchPainter) -> None:
    found = engine.paint(CAPTIONS, PaintingOptions(n=3))
    assert [codes.shape for codes in found] == [(3, 4)] * 3
    assert all(((codes >= 0) & (codes < 12)).all() for codes in found)
    pictures = engine.draw(found[0])
    assert (pictures.shape, pictures.dtype) == ((3, 8, 8, 1), np.uint8)


@pytest.mark.parametrize("guidance", [1.0, 3.0])
def test_a_picture_depends_on_its_caption_and_the_seed_alone(engine: TorchPainter, guidance: float) -> None:
    together = engine.paint(CAPTIONS, PaintingOptions(n=2, seed=7, guidance=guidance))
    alone = [engine.paint([caption], PaintingOptions(n=2, seed=7, guidance=guidance))[0] for caption in CAPTIONS]
    assert all((a == b).all() for a, b in zip(together, alone, strict=True))
    other = engine.paint(CAPTIONS, PaintingOptions(n=2, seed=8, guidance=guidance))
    assert any((a != b).any() for a, b in zip(together, other, strict=True))


@pytest.mark.parametrize("guidance", [1.0, 0.5])
def test_many_pictures_are_painted_in_parts_and_are_the_same(
    engine: TorchPainter, guidance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = PaintingOptions(n=20, seed=7, guidance=guidance, temperature=3)
    together = engine.paint(CAPTIONS, options)
    rows: list[int] = []
    decode = engine.model.decode

    def noted(ids: torch.Tensor, cache: DecoderCache) -> tuple[torch.Tensor, DecoderCache]:
        rows.append(len(ids))
        return decode(ids, cache)

    monkeypatch.setattr(engine.model, "decode", noted)
    monkeypatch.setattr("jumok.engines.painter.torch.PICTURES_AT_A_TIME", 8)
    in_parts = engine.paint(CAPTIONS, options)
    assert all((a == b).all() for a, b in zip(together, in_parts, strict=True))
    assert len({tuple(codes) for codes in together[0]}) > 8
    assert max(rows) == (8 if guidance == 1 else 2 * 8)


def test_guidance_mixes_the_logits_with_and_without_the_caption(engine: TorchPainter) -> None:
    """Greedy painting with a cache equals the formula, computed without one."""
    [[codes]] = engine.paint(CAPTIONS[:1], PaintingOptions(temperature=0, guidance=2.5))
    ids = torch.tensor([[BOS]])
    with torch.no_grad():
        for code in codes.tolist():
            rows = [engine.model(torch.tensor([[*caption, EOS]]), ids)[0, -1] for caption in (CAPTIONS[0], [])]
            mixed = (rows[1] + 2.5 * (rows[0] - rows[1]))[FIRST_CODE:]
            likely = rows[0][FIRST_CODE:].softmax(0)
            mixed[likely < LIKELY * likely.max()] = -torch.inf
            assert int(mixed.argmax()) == code
            ids = torch.cat((ids, torch.tensor([[FIRST_CODE + code]])), 1)


def test_strong_guidance_takes_only_what_is_likely_with_the_caption(engine: TorchPainter) -> None:
    """Without that, what is least probable without the caption would win."""
    for caption in CAPTIONS:
        [found] = engine.paint([caption], PaintingOptions(n=8, guidance=50))
        target = torch.from_numpy(found) + FIRST_CODE
        ids = torch.cat((torch.full((8, 1), BOS), target[:, :-1]), 1)
        with torch.no_grad():
            probable = engine.model(torch.tensor([[*caption, EOS]] * 8), ids)[..., FIRST_CODE:].softmax(2)
        taken = probable.gather(2, target[..., None] - FIRST_CODE)
        assert (taken >= 0.999 * LIKELY * probable.amax(2, keepdim=True)).all()


def test_no_guidance_is_the_picture_without_a_caption(engine: TorchPainter) -> None:
    [[ignored]] = engine.paint(CAPTIONS[:1], PaintingOptions(temperature=0, guidance=0))
    [[empty]] = engine.paint([[]], PaintingOptions(temperature=0, guidance=1))
    assert (ignored == empty).all()


def test_scores_are_the_log_probabilities_of_the_tokens(engine: TorchPainter) -> None:
    codes = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    scores = engine.score(CAPTIONS[:2], codes)
    target = torch.tensor([[BOS, *(FIRST_CODE + codes[1, :3])]])
    with torch.no_grad():
        logits = engine.model(torch.tensor([[*CAPTIONS[1], EOS]]), target)[0, :, FIRST_CODE:]
    wanted = logits.log_softmax(1).gather(1, torch.from_numpy(codes[1])[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(scores[1]), wanted)


def test_wrong_options_are_named() -> None:
    with pytest.raises(ConfigError, match="n is 0"):
        PaintingOptions(n=0)
    with pytest.raises(ConfigError, match="guidance is -1"):
        PaintingOptions(guidance=-1)
