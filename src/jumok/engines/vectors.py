"""What a sentence means, as a vector: the mean of what the encoder makes of its tokens.

The encoder of a translator has to put everything the translation needs into these states, so sentences of like meaning
lie near each other. Axes: B texts, S tokens with `</s>`, D d_model.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jumok.engines.engine import sorted_batches, to_unit_length
from jumok.engines.torch_models import Ids, device_of, padded, undisturbed
from jumok.model.classifier import Classifier, pool
from jumok.model.translator import Translator
from jumok.tokenizer import EOS, PAD

BATCH_TOKENS = 8192


def sentence_vectors(model: Translator | Classifier, texts: Ids) -> npt.NDArray[np.float32]:
    """A vector [B, D] of length 1 for every text, in their order; zeros for a text without any token."""
    lengths = [len(ids) + 1 for ids in texts]
    result = np.zeros((len(texts), model.config.d_model), np.float32)
    with undisturbed(model, max(map(len, texts), default=0)):
        for batch in sorted_batches(lengths, BATCH_TOKENS):
            rows = padded([[*texts[i], EOS] for i in batch], device_of(model))
            states = model.encode(rows) if isinstance(model, Classifier) else model.encode(rows).states
            result[batch] = pool(states, (rows != PAD) & (rows != EOS), "mean").cpu().numpy()
    return to_unit_length(result)
