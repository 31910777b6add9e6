"""The trace of a caption: a picture is painted, then one forward pass over its image tokens is recorded.

The pass is the one with the caption. With guidance, tokens are drawn from a mixture of its logits and those of a pass
without the caption; `caption_gain` [position] compares the two: log P(token | caption) - log P(token)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import nn

from jumok.engines.image_tokens import require_codes
from jumok.engines.painter.options import PaintingOptions
from jumok.engines.painter.torch import TorchPainter
from jumok.engines.torch_models import padded
from jumok.lens.glossary import Meaning
from jumok.lens.traces import Trace
from jumok.lens.tracing import CHANGES, Recording, require_tokens, torch_engine
from jumok.model.painter import FIRST_CODE
from jumok.tokenizer import BOS, EOS

MEANINGS = {
    "decoder.ids": Meaning(
        f"{FIRST_CODE} + code of each image token", "jumok.engines.painter.torch:TorchPainter.paint"
    ),
    "decoder.positions": Meaning(
        "trained vector of the row + that of the column", "jumok.model.positions:GridPositions"
    ),
    "probabilities": Meaning("softmax(logits)", "jumok.engines.painter.torch:TorchPainter.next_log_probs"),
    "caption_gain": Meaning("log P(token | caption) − log P(token)", "jumok.lens.painter:trace"),
}
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")


def requested(request: Any, _pictures: Any) -> tuple[str, dict[str, Any]]:
    """What a request of the page asks for: a caption, and options of `trace`."""
    return request.text, {name: value for name in ("seed", "guidance") if (value := getattr(request, name)) is not None}


def trace(painter: Any, caption: str, *, codes: Sequence[int] | None = None, **options: Any) -> Trace:
    """The trace of one picture of a caption. `codes` [T] are those of a given picture, which is then not painted;
    `options` are those of `PaintingOptions`."""
    engine: TorchPainter = torch_engine(painter)
    model, config = engine.model, engine.model.config
    [source] = painter.tokenizer.encode([caption])
    require_tokens(source, caption)
    chosen = PaintingOptions.of(**options)
    picture = engine.paint([source], chosen)[0][:1] if codes is None else require_codes([codes], model.pictures)
    target = nn.functional.pad(padded((picture + FIRST_CODE).tolist(), engine.device), (1, 0), value=BOS)
    rows = padded([[*source, EOS]], engine.device), target[:, :-1]
    recording = Recording(engine)
    recording.add_logits(recording.run(lambda: model.states(*rows), len(source)))
    [with_caption], [without] = engine.score([source], picture), engine.score([[]], picture)
    recording.tensors |= {
        "picture": engine.draw(picture)[0],
        "caption_gain": np.array(with_caption) - np.array(without),
    }
    height, width = config.grid
    sides = {
        "encoder": tuple(painter.tokenizer.pieces([*source, EOS])),
        "decoder": tuple(f"{row},{column}" for row in range(height) for column in range(width)),
        "chosen": tuple(f"#{code}" for code in picture[0]),
    }
    facts = {
        "chosen": (picture[0] + FIRST_CODE).tolist(),
        "vocabulary": [*SPECIAL, *(f"#{code}" for code in range(config.codes))],
        "config": config.to_dict(),
        "grid": [height, width],
        "places": ["decoder", "chosen"],
        "never_written": list(range(FIRST_CODE)),
        "unknown_words": painter.unknown_words(caption),
        "painting": {"seed": chosen.seed, "guidance": chosen.guidance, "temperature": chosen.temperature},
        "changes": CHANGES.get(),
    }
    output = f"{height} × {width} image tokens"
    return Trace("painter", caption, output, recording.tensors, sides, None, facts)
