"""What a sentence means, as a vector: the mean of what the encoder makes of its tokens.

The encoder of a translator has to put everything the translation needs into these states, so sentences of like meaning
lie near each other. Axes: B texts, S tokens with `</s>`, D d_model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from jumok.engines.engine import sorted_batches
from jumok.engines.torch_models import device_of, padded, undisturbed
from jumok.model.classifier import Classifier, pool
from jumok.model.translator import Translator
from jumok.tokenizer import EOS, PAD, Tokenizer

BATCH_TOKENS = 8192


def sentence_vectors(
    model: Translator | Classifier, tokenizer: Tokenizer, texts: Sequence[str]
) -> npt.NDArray[np.float32]:
    """A vector [B, D] of length 1 for every text, in their order; zeros for a text without any token."""
    encoded = tokenizer.encode(texts)
    lengths = [len(ids) + 1 for ids in encoded]
    result = np.zeros((len(texts), model.config.d_model), np.float32)
    with undisturbed(model, max(map(len, encoded), default=0)):
        for batch in sorted_batches(lengths, BATCH_TOKENS):
            rows = padded([[*encoded[i], EOS] for i in batch], device_of(model))
            states = model.encode(rows) if isinstance(model, Classifier) else model.encode(rows).states
            result[batch] = pool(states, (rows != PAD) & (rows != EOS), "mean").cpu().numpy()
    norms = np.linalg.norm(result, axis=1, keepdims=True)
    result /= np.maximum(norms, np.finfo(np.float32).tiny)
    return result
