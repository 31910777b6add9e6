"""What a sentence means, as a vector: the mean of what the encoder makes of its tokens.

The encoder of a translator has to put everything the translation needs into these states, so sentences of like meaning
lie near each other. Axes: B texts, S tokens with `</s>`, D d_model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from jumok.engines.engine import sorted_batches, to_unit_length
from jumok.engines.torch_models import Ids, device_of, padded, undisturbed
from jumok.engines.translator.text import SEGMENT_TOKENS
from jumok.model.classifier import Classifier, pool
from jumok.model.translator import Translator
from jumok.tokenizer import EOS, PAD

BATCH_TOKENS = 8192


def sentence_vectors(model: Translator | Classifier, texts: Ids) -> npt.NDArray[np.float32]:
    """A vector [B, D] of length 1 for every text, in their order; zeros for a text without any token."""
    parts = [(owner, part) for owner, ids in enumerate(texts) for part in _parts(model, ids)]
    lengths = [len(part) + 1 for _, part in parts]
    result = np.zeros((len(texts), model.config.d_model), np.float32)
    longest = max(lengths, default=1)
    longest = model.attended(longest) if isinstance(model, Classifier) else longest
    with undisturbed(model, longest - 1):
        for batch in sorted_batches(lengths, BATCH_TOKENS):
            rows = padded([[*parts[i][1], EOS] for i in batch], device_of(model))
            states = model.encode(rows) if isinstance(model, Classifier) else model.encode(rows).states
            means = pool(states, (rows != PAD) & (rows != EOS), "mean").cpu().numpy()
            for i, mean in zip(batch, means, strict=True):
                result[parts[i][0]] += mean * len(parts[i][1])
    return to_unit_length(result)


def _parts(model: Translator | Classifier, ids: Sequence[int]) -> list[Sequence[int]]:
    """What the encoder reads at a time. A classifier has windows of its own; a translator is used to sentences."""
    if isinstance(model, Classifier):
        return [ids]
    return [ids[start : start + SEGMENT_TOKENS] for start in range(0, len(ids), SEGMENT_TOKENS)]
