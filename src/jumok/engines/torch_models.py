"""What all PyTorch engines share: a model from a bundle, threads, evaluation mode, log-probabilities, sentence vectors.
Shape letters: B rows, S source tokens with `</s>`, T tokens, N positions, D d_model, V vocabulary."""

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from jumok.bundle import CONFIG, WEIGHTS, Bundle
from jumok.engines.batching import FloatMatrix, TokenIds, padded_array, sorted_batches, to_unit_length
from jumok.errors import BundleError, ConfigError
from jumok.model.classifier import pool
from jumok.model.config import config_from_dict
from jumok.model.devices import choose_device, device_of, explain_lack_of_memory, to_device
from jumok.search.step import CacheT
from jumok.system import forking_thread, usable_cores
from jumok.tasks import resolve, task_of_config
from jumok.tokenizer import BOS, EOS, PAD, UNK

NEVER_WRITTEN = [PAD, UNK, BOS]  # byte tokens spell every character that has no token of its own
LOGIT_ROWS = 512  # positions whose V logits exist at the same time
VECTOR_TOKENS = 8192  # padded tokens in a batch, for sentence vectors
OTHER_DEVICE = 'Choose another one with `device=`, such as `device="cpu"`.'
FEWER_AT_A_TIME = f"Give fewer or shorter texts at a time, or a smaller `beam=`. {OTHER_DEVICE}"
_FACTORIES = (torch.empty, torch.zeros, torch.ones, torch.full, torch.randn)
_SPARE = 1 << 20  # elements of tensors that are no weights, such as the table of positions

Model = TypeVar("Model", bound=nn.Module)
Engine = TypeVar("Engine", bound="TorchEngine")
Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


def load_model(bundle: Bundle, kind: Callable[[Any], Model]) -> Model:
    """The model of a bundle in evaluation mode, without gradients."""
    weights = bundle.weights()
    try:
        config = config_from_dict(bundle.config)
        model = _new_model(kind, config, sum(array.size for array in weights.values()))
    except ConfigError as error:
        raise BundleError(f"{bundle.path / CONFIG}: {error}") from error
    _check_weights({name: tuple(array.shape) for name, array in weights.items()}, model, bundle)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    return model.eval().requires_grad_(False)


class _TooLargeError(Exception):
    """A new model has more weights than the file that they shall come from."""


class _Limited(TorchFunctionMode):
    """Context in which new tensors have at most so many elements together."""

    def __init__(self, elements: int) -> None:
        self.elements = elements

    def __torch_function__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in _FACTORIES and args:
            self.elements -= math.prod(args[0] if isinstance(args[0], Sequence) else args)
            if self.elements < 0:
                raise _TooLargeError
        return function(*args, **(kwargs or {}))


def _new_model(kind: Callable[[Any], Model], config: Any, elements: int) -> Model:
    """A new model; only the shapes of one (on the device "meta") that has far more than so many elements: a hostile
    config may ask for more memory than there is. Shapes alone are no quicker: PyTorch imports its compiler for them."""
    try:
        with torch.random.fork_rng(devices=[]), _Limited(2 * elements + _SPARE):  # first weights are random
            return kind(config)
    except _TooLargeError:
        with torch.device("meta"):
            return kind(config)


def padded(rows: TokenIds, device: torch.device | str = "cpu") -> Tensor:
    """Rows of ids as one tensor [B, T], shorter rows padded."""
    return to_device(torch.from_numpy(padded_array(rows)), torch.device(device))


def computing(
    method: Callable[Concatenate[Engine, Arguments], Returned],
) -> Callable[Concatenate[Engine, Arguments], Returned]:
    """Decorate a method that computes: it uses the engine's number of threads, and does not hang in a forked process.
    There, the thread that was copied would wait for PyTorch's, which were not (libgomp has a pool for each calling
    thread), so a new thread calls the method."""

    @wraps(method)
    def call(engine: Engine, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Returned:
        def run() -> Returned:
            with engine.limited_threads(), explain_lack_of_memory(engine.device, "This batch", lambda: FEWER_AT_A_TIME):
                return method(engine, *arguments, **options)

        if threading.get_ident() != forking_thread():
            return run()
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(run).result()

    return call


class TorchEngine:
    """An engine around a model: no copy is made, and its training mode is restored.
    With `threads`, computations use this many threads instead of PyTorch's current number."""

    name = "PyTorch"
    model: Any

    def __init__(self, model: Any, threads: int | None = None) -> None:
        self.model, self.threads = model, threads

    @classmethod
    def from_bundle(cls, bundle: Bundle, threads: int | None = None, device: str = "cpu") -> Self:
        """An engine with a model of its own on a device; see `choose_device`. `threads` is by default PyTorch's number,
        or that of the usable cores if this is smaller, as in a container with a CPU quota."""
        kind = resolve(task_of_config(bundle.config).model)
        chosen = choose_device(device)
        with explain_lack_of_memory(chosen, f"{bundle.path}", lambda: OTHER_DEVICE):
            model = load_model(bundle, kind).to(chosen)
        return cls(model, threads or min(torch.get_num_threads(), usable_cores()))

    @contextmanager
    def limited_threads(self) -> Iterator[None]:
        """Context in which PyTorch uses the engine's number of threads."""
        before = torch.get_num_threads()
        if self.threads in (None, before):
            yield
            return
        torch.set_num_threads(self.threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    @property
    def device(self) -> torch.device:
        """The device of the model's weights."""
        return device_of(self.model)

    @contextmanager
    def evaluating(self, longest: int) -> Iterator[None]:
        """Evaluation and inference mode for texts of `longest` tokens and `<s>` or `</s>`; restores training mode."""
        model = self.model
        with torch.no_grad():
            # The table of positions grows here, if it must: tensors made in inference mode could not be trained with.
            model.embed.positions(torch.zeros(1, 1, model.config.d_model, device=self.device), longest)
        training = [module for module in model.modules() if module.training]
        model.eval()
        try:
            with torch.inference_mode():
                yield
        finally:
            for module in training:
                module.training = True

    def step(self, ids: Tensor, cache: CacheT) -> tuple[Tensor, CacheT]:
        """`search.step.Step` for any model with a decoder."""
        states, cache = self.model.decode(ids, cache)
        return self.next_log_probs(states[:, -1]), cache

    def prefill(self, ids: Tensor, cache: CacheT) -> tuple[Tensor, CacheT]:
        """`search.step.Prefill` for any model with a decoder: feeds all ids [N, 1 + P] but the last in one pass."""
        vocabulary = len(self.model.embed.tokens.weight)
        if int(ids.max()) >= vocabulary:
            raise ConfigError(f"A prefix names id {int(ids.max())}; the vocabulary ends at {vocabulary - 1}.")
        states, cache = self.model.decode(ids[:, :-1], cache)
        return self.forced_log_probs(states, ids), cache

    def forced_log_probs(self, states: Tensor, ids: Tensor) -> Tensor:
        """The log-probability [B, T] of all ids [B, 1 + T] but the first, given the states [B, T, D] before each."""
        states, wanted = states.flatten(0, 1), ids[:, 1:].flatten()
        found = torch.empty(len(wanted), device=states.device)
        for start in range(0, len(wanted), LOGIT_ROWS):
            some = slice(start, start + LOGIT_ROWS)
            found[some] = self.next_log_probs(states[some]).gather(1, wanted[some, None])[:, 0]
        return found.view(len(ids), -1)

    def next_log_probs(self, states: Tensor) -> Tensor:
        """The log-probabilities [N, V] of the token after the states [N, D]; -inf for tokens that no text contains."""
        logits = self.model.logits(states).float()
        for token in NEVER_WRITTEN:  # a list as an index would be copied to the device in every step
            logits[:, token] = -torch.inf
        return torch.log_softmax(logits, 1)

    def mean_states(self, encode: Callable[[Tensor], Tensor], texts: TokenIds, longest: int) -> FloatMatrix:
        """A vector [B, D] of length 1 for every text, the mean of its encoder states; zeros for one without any token.

        Sentences of similar meaning are near each other. `encode` gives the states [B, S, D] of ids [B, S]; texts of
        more than `longest` tokens are encoded in parts. To be called inside `evaluating`.
        """
        parts = [(text, ids[i : i + longest]) for text, ids in enumerate(texts) for i in range(0, len(ids), longest)]
        result = np.zeros((len(texts), self.model.config.d_model), np.float32)
        for batch in sorted_batches([len(part) + 1 for _, part in parts], VECTOR_TOKENS):
            rows = padded([[*parts[i][1], EOS] for i in batch], self.device)
            means = pool(encode(rows), (rows != PAD) & (rows != EOS), "mean").cpu().numpy()
            for i, mean in zip(batch, means, strict=True):
                result[parts[i][0]] += mean * len(parts[i][1])
        return to_unit_length(result)


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
