"""Runs a painter in PyTorch: draws image tokens, scores given ones, and turns them into pictures.
Axes: B captions, R pictures of each, N = B * R rows, S tokens of a caption with `</s>`, T image tokens, V their ids."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jumok.engines.batching import TokenIds, sorted_batches
from jumok.engines.image_tokens import draw_pictures, encode_pictures
from jumok.engines.painter.options import PaintingOptions
from jumok.engines.torch_models import TorchEngine, computing, padded
from jumok.model.cache import DecoderCache
from jumok.model.devices import to_device
from jumok.model.painter import FIRST_CODE, Painter
from jumok.search.constraints import Rules
from jumok.search.hypothesis import Hypothesis
from jumok.search.sampling import sample
from jumok.seeds import derive_seed
from jumok.tokenizer import BOS, EOS

PICTURES_AT_A_TIME = 64
LIKELY = 0.1  # of the probability of the most probable image token: others are not taken if guidance is above 1
Codes = npt.NDArray[np.int64]  # [N, T] of pictures


@dataclass(frozen=True)
class GuidedCache:
    """The caches of two runs of the decoder in one batch: rows with captions, then as many rows without."""

    both: DecoderCache

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> GuidedCache:
        """See `search.step.Cache`."""
        past = self.both.past[0]
        half = len(rows) if past is None else past.keys.shape[0] // 2
        captions = self.both.memory[0].keys.shape[0] // 2
        kept = None if sentences is None else torch.cat((sentences, sentences + captions))
        return GuidedCache(self.both.reorder(torch.cat((rows, rows + half)), kept))


class TorchPainter(TorchEngine):
    """A `PainterEngine` around a `Painter`."""

    kind = Painter
    model: Painter

    @property
    def picture_size(self) -> tuple[int, int]:
        """Width and height of the pictures in pixels."""
        return self.model.config.width, self.model.config.height

    @property
    def picture_tokens(self) -> int:
        """T, the number of image tokens of a picture."""
        return int(self.model.config.picture_tokens)

    @computing
    def paint(self, captions: TokenIds, options: PaintingOptions) -> list[Codes]:
        """The codes [n, T] of `options.n` pictures of each caption, the most probable first."""
        results: list[Codes] = []
        rows = max(1, PICTURES_AT_A_TIME // options.n)
        # Greedy search paints one picture of a caption, however many are asked for.
        columns = options.n if options.temperature == 0 else PICTURES_AT_A_TIME
        with self.evaluating(max(map(len, captions), default=0)):
            for start in range(0, len(captions), rows):
                batch = captions[start : start + rows]
                parts = [
                    self._paint(batch, options, range(first, min(first + columns, options.n)))
                    for first in range(0, options.n, columns)
                ]
                for of_caption in zip(*parts, strict=True):
                    best_first = sorted(chain(*of_caption), key=lambda picture: -picture.score)
                    results.append(np.array([picture.ids for picture in best_first], np.int64) - FIRST_CODE)
        return results

    @computing
    def score(self, captions: TokenIds, codes: Codes) -> list[list[float]]:
        """The log-probability of every image token of each picture, given its caption and those before it."""
        results: list[list[float]] = [[] for _ in captions]
        with self.evaluating(max(map(len, captions), default=0)):
            for batch in sorted_batches([len(caption) + 1 for caption in captions], 1 << 20, PICTURES_AT_A_TIME):
                source = padded([[*captions[i], EOS] for i in batch], self.device)
                ids = to_device(torch.from_numpy(codes[batch]), self.device) + FIRST_CODE
                target = nn.functional.pad(ids, (1, 0), value=BOS)
                found = self.forced_log_probs(self.model.states(source, target[:, :-1]), target)
                for index, row in zip(batch, found.tolist(), strict=True):
                    results[index] = row
        return results

    @computing
    def draw(self, codes: Codes) -> npt.NDArray[np.uint8]:
        """The pictures [N, H, W, C] of codes [N, T]."""
        return draw_pictures(self.model.pictures, codes)

    @computing
    def encode(self, pictures: npt.NDArray[np.uint8]) -> Codes:
        """The codes [N, T] of pictures [N, H, W, C]."""
        return encode_pictures(self.model.pictures, pictures)

    def next_log_probs(self, states: Tensor) -> Tensor:
        """The log-probabilities [N, V] of the image token after the states [N, D]; special tokens are none."""
        return self._log_softmax(self.model.logits(states).float())

    def _paint(self, captions: TokenIds, options: PaintingOptions, samples: range) -> list[list[Hypothesis]]:
        """Of all pictures of each caption, those of these numbers."""
        guided = options.guidance != 1
        sources = [[*caption, EOS] for caption in captions] + [[EOS]] * (len(captions) if guided else 0)
        cache = self.model.remember(self.model.encode(padded(sources, self.device)))
        rules = Rules([self.picture_tokens] * len(captions), device=self.device)
        seeds = [derive_seed(options.seed, "caption", *caption) for caption in captions]
        drawing: dict[str, Any] = {"temperature": options.temperature, "top_k": options.top_k, "top_p": options.top_p}
        drawing |= {"seeds": seeds, "samples": len(samples), "first_sample": samples.start}
        if guided:
            return sample(self._guided_step(options.guidance), GuidedCache(cache), rules, **drawing)
        return sample(self._plain_step, cache, rules, **drawing)

    def _plain_step(self, ids: Tensor, cache: DecoderCache) -> tuple[Tensor, DecoderCache]:
        """`search.step.Step`; after the last image token only the end is possible."""
        return (self._only_end(len(ids)), cache) if cache.length == self.picture_tokens else self.step(ids, cache)

    def _guided_step(self, scale: float) -> Callable[[Tensor, GuidedCache], tuple[Tensor, GuidedCache]]:
        """Classifier-free guidance (Ho & Salimans, 2022): logits = without + scale · (with − without the caption).
        Enlarged, the difference prefers what is least probable without the caption, however improbable it is with it:
        only what is likely with the caption is taken (as in contrastive decoding, Li et al., 2022)."""

        def step(ids: Tensor, cache: GuidedCache) -> tuple[Tensor, GuidedCache]:
            if cache.both.length == self.picture_tokens:
                return self._only_end(len(ids)), cache
            states, both = self.model.decode(torch.cat((ids, ids)), cache.both)
            with_caption, without = self.model.logits(states[:, -1]).float().chunk(2)
            guided = without + scale * (with_caption - without)
            if scale > 1:
                likely = with_caption - with_caption[:, FIRST_CODE:].amax(1, keepdim=True)
                guided = guided.masked_fill(likely < math.log(LIKELY), -torch.inf)
            return self._log_softmax(guided), GuidedCache(both)

        return step

    def _log_softmax(self, logits: Tensor) -> Tensor:
        logits[:, :FIRST_CODE] = -torch.inf
        return torch.log_softmax(logits, 1)

    def _only_end(self, rows: int) -> Tensor:
        log_probs = torch.full((rows, FIRST_CODE + self.model.config.codes), -torch.inf, device=self.device)
        log_probs[:, EOS] = 0
        return log_probs
