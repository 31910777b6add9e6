"""What a painter is trained on."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jumok.data.batch import Batch
from jumok.recipes.painter import PainterRecipe
from jumok.tokenizer import BOS, EOS, PAD
from jumok.training.settings import Settings

ROWS = 2000


class Stub(nn.Module):
    """In place of a painter's model: keeps the captions that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(9, 4)
        self.captions: list[Tensor] = []

    def states(self, captions: Tensor, target: Tensor) -> Tensor:
        self.captions.append(captions)
        return torch.ones(*target.shape, 4)


def test_a_tenth_of_the_pictures_is_learned_without_captions_other_ones_in_every_step() -> None:
    captions = np.full((ROWS, 3), 7)
    captions[:, 2] = EOS
    target = np.tile([BOS, 5, 6], (ROWS, 1))
    batch = Batch(captions, target[:, :-1], target[:, 1:], np.arange(ROWS))
    model: Any = Stub()
    loss = PainterRecipe(()).loss(model, Settings())
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        loss(batch)
    left_out = [(given == torch.tensor([EOS, PAD, PAD])).all(1) for given in model.captions]
    assert 0.07 < float(left_out[0].float().mean()) < 0.13
    assert not left_out[0].equal(left_out[1])
    assert left_out[0].equal(left_out[2])
    for given, without in zip(model.captions, left_out, strict=True):
        assert (given[~without] == torch.from_numpy(captions)[~without]).all()  # the others have theirs
    assert (captions[:, 0] == 7).all()  # and the batch stays as it was
