"""The left half of Figure 1: an encoder, and the class scores of a text."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from jumok.errors import require_choice
from jumok.model.config.base import BaseConfig, require_config
from jumok.model.config.classifier import ClassifierConfig
from jumok.model.masks import none_if_open, padding_mask
from jumok.model.ngrams import NgramScores
from jumok.model.stacks import Encoder
from jumok.model.summary import count_parameters
from jumok.model.translator import make_embedder, stack_options


def pool(states: Float[Tensor, "B S D"], real: Bool[Tensor, "B S"], how: str) -> Float[Tensor, "B D"]:
    """Mean or max pooling over the real tokens of a text. A text without any gives zeros."""
    require_choice("pooling", how, ("mean", "max"))
    if how == "mean":
        return (states * real[..., None]).sum(1) / real.sum(1, keepdim=True).clamp(min=1)
    if not states.shape[1]:
        return states.sum(1)  # amax knows no empty axis
    lowest = torch.finfo(states.dtype).min
    largest = states.masked_fill(~real[..., None], lowest).amax(1)
    return largest * real.any(1, keepdim=True)


class Classifier(nn.Module):
    """Ids in, a score for every class out."""

    def __init__(self, config: BaseConfig) -> None:
        super().__init__()
        self.config = config = require_config(config, ClassifierConfig)
        self.embed = make_embedder(config)
        self.encoder = Encoder(config.encoder_layers, **stack_options(config))
        self.head = nn.Linear(config.d_model, config.classes)
        self.ngrams = nn.ModuleList(NgramScores(config, unit) for unit in config.ngram_units)
        # The weight of the encoder's scores beside the n-gram scores, fitted at validation.
        self.encoder_share = nn.Parameter(torch.ones(()), requires_grad=False) if config.ngrams else None

    def encode(self, text: Int[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        """The state of every token; tokens attend to the others of their window."""
        batch, length = text.shape
        window = self.config.window
        if not window or length <= window:
            states: Tensor = self.encoder(self.embed(text), none_if_open(padding_mask(text)))
            return states
        parts = nn.functional.pad(text, (0, -length % window)).view(-1, window)
        states = self.encoder(self.embed(parts), none_if_open(padding_mask(parts)))
        return states.view(batch, -1, states.shape[-1])[:, :length]

    def attended(self, length: int) -> int:
        """How many tokens of a text of that length attend to each other."""
        return min(length, self.config.window or length)

    def pooled(self, text: Int[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        """The pooled states of a text."""
        how = "max" if self.config.pooling == "answers" else self.config.pooling
        return pool(self.encode(text), padding_mask(text)[:, 0, 0], how)

    def extra_repr(self) -> str:
        return f"{count_parameters(self):,} parameters"

    def encoder_scores(self, text: Int[Tensor, "B S"]) -> Float[Tensor, "B C"]:
        """The scores of the encoder alone. It is trained alone: beside the fitted n-grams it would learn little."""
        if self.config.pooling == "answers":
            return pool(self.head(self.encode(text)), padding_mask(text)[:, 0, 0], "max")
        scores: Tensor = self.head(self.pooled(text))
        return scores

    def ngram_scores(self, text: Int[Tensor, "B S"]) -> Float[Tensor, "B C"]:
        """The scores of the n-grams of all units."""
        return torch.stack([part(text) for part in self.ngrams]).sum(0)

    def forward(self, text: Int[Tensor, "B S"]) -> Float[Tensor, "B C"]:
        """The class scores; their softmax is the probability."""
        scores = self.encoder_scores(text)
        return scores if self.encoder_share is None else self.encoder_share * scores + self.ngram_scores(text)
