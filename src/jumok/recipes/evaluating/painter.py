"""How well a painter knows pictures with captions."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jumok.data.examples import Rejections
from jumok.data.reading.captions import read_captioned, require_captions_and_pictures
from jumok.data.reading.options import Columns, reading_options
from jumok.data.reading.unused_options import refuse_unused_for_pictures
from jumok.engines.image_tokens import reconstruction_scores
from jumok.engines.painter.text import TextPainter
from jumok.pictures import PictureShape, picture_from_text
from jumok.recipes.evaluating.evaluation import Evaluation, with_layouts
from jumok.recipes.evaluating.image_tokens import reconstruction_lines


def evaluate(
    model: TextPainter,
    files: Sequence[Path],
    *,
    columns: Columns | None = None,
    separator: str | None = None,
    sheet: str | int | None = None,
    encoding: str | None = None,
) -> Evaluation:
    """Bits per image token of pictures with captions, with and without the caption, the error of pictures drawn from
    their own tokens, and speed."""
    require_captions_and_pictures(files)
    options = reading_options(columns=columns, separator=separator, sheet=sheet, encoding=encoding)
    refuse_unused_for_pictures(options, files)
    rejections = Rejections()
    painter: Any = model.engine
    shape = PictureShape(*painter.model.pictures.shape)
    examples = list(read_captioned(files, rejections, shape=shape, options=options))
    pictures = np.stack([picture_from_text(example.inputs[0]) for example in examples])
    captions = model.tokenizer.encode([example.inputs[1] for example in examples])
    started = time.perf_counter()
    codes = model.engine.encode(pictures)
    bits = bits_per_token(model.engine.score(captions, codes))
    seconds = time.perf_counter() - started
    scores = reconstruction_scores(painter.model.pictures, pictures)
    values: dict[str, Any] = {
        "pictures": len(pictures),
        "bits_per_token": bits,
        "bits_per_token_without_caption": bits_per_token(model.engine.score([[]] * len(captions), codes)),
        **scores,
        "pictures_per_second": len(pictures) / seconds,
        "rejected": rejections.to_json(),
    }
    lines = [
        f"bits         {bits:8.3f}  per image token, {codes.size:,} tokens",
        f"             {values['bits_per_token_without_caption']:8.3f}  without the captions",
        *reconstruction_lines(scores, len(pictures)),
        f"speed        {values['pictures_per_second']:8,.0f}  pictures a second",
    ]
    if rejections.total:
        lines += ["", "left out:", rejections.render()]
    return with_layouts(Evaluation(values, lines), rejections)


def bits_per_token(scores: Sequence[Sequence[float]]) -> float:
    """The mean over all log-probabilities, in bits."""
    return -math.fsum(map(math.fsum, scores)) / sum(map(len, scores)) / math.log(2)
