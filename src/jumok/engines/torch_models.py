"""What all PyTorch engines share: building a model from a bundle, evaluation mode, padding, log-probabilities.

Shape letters: B rows, T tokens, N positions, D d_model, V vocabulary.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from jumok.bundle import CONFIG, WEIGHTS, Bundle
from jumok.engines.batching import TokenIds
from jumok.errors import BundleError, ConfigError
from jumok.model.config import ModelConfig, config_from_dict
from jumok.tokenizer import BOS, PAD, UNK

NEVER_WRITTEN = [PAD, UNK, BOS]  # byte tokens spell every character that has no token of its own
LOGIT_ROWS = 512  # positions whose V logits exist at the same time

Model = TypeVar("Model", bound=nn.Module)


def load_model(bundle: Bundle, kind: Callable[[ModelConfig], Model]) -> Model:
    """The model of a bundle in evaluation mode, without gradients."""
    weights = bundle.weights()
    try:
        config = config_from_dict(bundle.config)
        with torch.device("meta"):  # shapes without memory: a hostile config may ask for more than there is
            outline = kind(config)
    except ConfigError as error:
        raise BundleError(f"{bundle.path / CONFIG}: {error}") from error
    _check_weights({name: tuple(array.shape) for name, array in weights.items()}, outline, bundle)
    with torch.random.fork_rng(devices=[]):  # initial weights are random; the global generator is restored
        model = kind(config)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    return model.eval().requires_grad_(False)


class TorchEngine(Generic[Model]):
    """An engine around a model: no copy is made, and its training mode is restored."""

    kind: type[Any]  # of the model

    def __init__(self, model: Model) -> None:
        self.model = model

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> Self:
        """An engine with a model of its own."""
        return cls(load_model(bundle, cls.kind))

    @property
    def device(self) -> torch.device:
        """The device of the model's weights."""
        return device_of(self.model)


@contextmanager
def evaluating(model: Any, longest: int) -> Iterator[None]:
    """Evaluation and inference mode for texts of `longest` tokens and `<s>` or `</s>`; restores training mode."""
    with torch.no_grad():
        # The table of positions grows here, if it must: tensors made in inference mode could not be trained with later.
        model.embed.positions(torch.zeros(1, 1, model.config.d_model, device=device_of(model)), longest)
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for module in training:
            module.training = True


def padded(rows: TokenIds, device: torch.device | str = "cpu") -> Tensor:
    """Rows of ids as one tensor [B, T], shorter rows padded."""
    tensors = [torch.tensor(row, dtype=torch.long) for row in rows]
    return pad_sequence(tensors, batch_first=True, padding_value=PAD).to(device)


def forced_log_probs(model: Any, states: Tensor, ids: Tensor) -> Tensor:
    """The log-probability [B, T] of each of the ids [B, 1 + T] but the first, given the states [B, T, D] before it."""
    states, wanted = states.flatten(0, 1), ids[:, 1:].flatten()
    found = torch.empty(len(wanted), device=states.device)
    for start in range(0, len(wanted), LOGIT_ROWS):
        some = slice(start, start + LOGIT_ROWS)
        found[some] = next_log_probs(model, states[some]).gather(1, wanted[some, None])[:, 0]
    return found.view(len(ids), -1)


def prefill(model: Any, ids: Tensor, cache: Any) -> tuple[Tensor, Any]:
    """Feed all ids [N, 1 + P] but the last in one pass; returns log-probabilities [N, P] of ids[:, 1:], and a cache.

    `search.step.Prefill` for any model with a decoder.
    """
    vocabulary = len(model.embed.tokens.weight)
    if int(ids.max()) >= vocabulary:
        raise ConfigError(f"A prefix names id {int(ids.max())}; the vocabulary ends at {vocabulary - 1}.")
    states, cache = model.decode(ids[:, :-1], cache)
    return forced_log_probs(model, states, ids), cache


def next_log_probs(model: Any, states: Tensor) -> Tensor:
    """The log-probabilities [N, V] of the token after the states [N, D]; -inf for tokens that no text contains."""
    logits = model.logits(states).float()
    logits[:, NEVER_WRITTEN] = -torch.inf
    return torch.log_softmax(logits, 1)


def device_of(model: Any) -> torch.device:
    """The device of a model's weights."""
    device: torch.device = model.embed.tokens.weight.device
    return device


def _check_weights(found: Mapping[str, tuple[int, ...]], model: nn.Module, bundle: Bundle) -> None:
    """Raise unless the tensors are exactly those that the config describes."""
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    problems = [
        *(f"{name} is missing" for name in wanted if name not in found),
        *(f"{name} is unexpected" for name in found if name not in wanted),
        *(
            f"{name} is {list(found[name])} instead of {list(shape)}"
            for name, shape in wanted.items()
            if name in found and found[name] != shape
        ),
    ]
    if problems:
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise BundleError(
            f"{bundle.path / WEIGHTS}: does not fit {CONFIG} beside it: {'; '.join(problems[:3])}{more}. "
            "Copy the whole model directory again, or train it again."
        )
