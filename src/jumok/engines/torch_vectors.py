"""Sentence vectors in PyTorch: the mean of the encoder's states. Axes: B texts, S tokens with `</s>`, D d_model.

The encoder of a translator has to put everything that the translation needs into these states, so sentences of similar
meaning are near each other.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from jumok.engines.batching import FloatMatrix, TokenIds, sorted_batches, to_unit_length
from jumok.engines.torch_models import device_of, padded
from jumok.model.classifier import pool
from jumok.tokenizer import EOS, PAD

BATCH_TOKENS = 8192


def sentence_vectors(
    model: Any, encode: Callable[[Tensor], Tensor], texts: TokenIds, longest: int | None = None
) -> FloatMatrix:
    """A vector [B, D] of length 1 for every text; zeros for a text without any token.

    `encode` gives the states [B, S, D] of ids [B, S]. Texts of more than `longest` tokens are encoded in parts. To be
    called inside `evaluating`.
    """
    step = longest or max(map(len, texts), default=0) or 1
    parts = [(number, ids[i : i + step]) for number, ids in enumerate(texts) for i in range(0, len(ids), step)]
    lengths = [len(part) + 1 for _, part in parts]
    result = np.zeros((len(texts), model.config.d_model), np.float32)
    for batch in sorted_batches(lengths, BATCH_TOKENS):
        rows = padded([[*parts[i][1], EOS] for i in batch], device_of(model))
        means = pool(encode(rows), (rows != PAD) & (rows != EOS), "mean").cpu().numpy()
        for i, mean in zip(batch, means, strict=True):
            result[parts[i][0]] += mean * len(parts[i][1])
    return to_unit_length(result)
