"""One recurrent layer over a padded batch. Axes: N rows, T tokens, D d_model."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from jumok.model.devices import to_device
from jumok.model.dropout import Dropout
from jumok.model.masks import PAD

State = tuple[Tensor, ...]  # of one layer: (h,) of a GRU, (h, c) of an LSTM, each [N, D]
_CELLS: dict[str, Any] = {"gru": nn.GRU, "lstm": nn.LSTM}


@dataclass(frozen=True)
class Lengths:
    """The number of real tokens in each row of a padded batch, and the rows in the order that PyTorch packs them in:
    the longest first. PyTorch would sort them itself, but then wait for a card."""

    decreasing: Int[Tensor, " N"]  # on the CPU
    order: Int[Tensor, " N"]  # row `order[n]` is the n-th longest
    inverse: Int[Tensor, " N"]

    @classmethod
    def of(cls, ids: Int[Tensor, "N T"], device: torch.device) -> "Lengths | None":
        """Of rows of ids, for a model on that device; an empty row counts as one token. None: no padding.
        The host must know lengths: for ids on a card it waits."""
        real = ids.cpu() != PAD
        if bool(real.all()):
            return None
        decreasing, order = real.sum(1).clamp(min=1).sort(descending=True)
        return cls(decreasing, to_device(order, device), to_device(order.argsort(), device))


class RecurrentLayer(nn.Module):
    """One GRU or LSTM over a sequence, in one direction or in both, then dropout."""

    def __init__(self, d_model: int, *, cell: str, dropout: float, directions: int = 1) -> None:
        super().__init__()
        self.cell = _CELLS[cell](d_model, d_model // directions, bidirectional=directions == 2)
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "N T D"], lengths: Lengths | None, state: State | None = None
    ) -> tuple[Float[Tensor, "N T D"], State]:
        """The output at each token, and the state after the last real token of each row. `lengths` is None: no
        padding."""
        if lengths is None:
            output, end = self._run(x.transpose(0, 1), state)
            return self.dropout(output.transpose(0, 1)), end
        packed = pack_padded_sequence(x.index_select(0, lengths.order), lengths.decreasing, batch_first=True)
        output, end = self._run(packed, state and tuple(part.index_select(0, lengths.order) for part in state))
        output, _ = pad_packed_sequence(output, batch_first=True, total_length=x.shape[1])
        end = tuple(part.index_select(0, lengths.inverse) for part in end)
        return self.dropout(output.index_select(0, lengths.inverse)), end

    def _run(self, x: Any, state: State | None) -> tuple[Any, State]:
        """The outputs of the cell, in the form of its inputs, and its last state."""
        begin: Any = state and tuple(part[None] for part in state)
        output, end = self.cell(x, begin[0] if begin and isinstance(self.cell, nn.GRU) else begin)
        parts = end if isinstance(end, tuple) else (end,)  # each [directions, N, D / directions]
        return output, tuple(part.transpose(0, 1).flatten(1) for part in parts)
