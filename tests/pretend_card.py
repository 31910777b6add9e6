"""A pretend card: a PyTorch device that computes on the CPU, but is as strict as a real card about where tensors are.

`install()` registers the device `card` once in a process, before its first backward pass. A tensor on it holds its
values in an ordinary CPU tensor. A CPU tensor that meets one on the card is refused, `.numpy()` needs `.cpu()` first,
float64 is refused, as by MPS and some XPUs, random numbers come from a generator of the card's own, and wherever the
host would wait for a real card is noted: every copy from the card, and every copy to it that is not `non_blocking`.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _DummyPrivateUse1Hook,
    _setup_privateuseone_for_python_backend,
)

NAME = "card"
aten = torch.ops.aten
# Operators whose result the host must know, for its value or to know a size: a real card waits for them.
_READ_BY_THE_HOST = {
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten.equal.default,
    aten.masked_select.default,
    aten.is_nonzero.default,
    aten.repeat_interleave.Tensor,
    aten._unique2.default,
    aten.unique_dim.default,
    aten.unique_consecutive.default,
    aten.bincount.default,
}
_WRITES_BY_INDEX = {aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}
_COPIES = ("aten::copy_", "aten::_to_copy", "aten::to")
_LENGTHS_ON_THE_HOST = {
    aten._pack_padded_sequence.default,
    aten._pack_padded_sequence_backward.default,
    aten._pad_packed_sequence.default,
    aten.gru.data,
    aten.lstm.data,
}


class Card(_DummyBackendModule):
    """What `torch.card` is: the state of the card, and what PyTorch asks every device for."""

    def __init__(self) -> None:
        self.present = False  # whether the machine has a card
        self.generator = torch.Generator()
        self.generator.manual_seed(0)
        self.memory: int | None = None  # the largest number of bytes in one allocation; None: no limit
        self.has_bfloat16 = True
        self.waits: list[str] = []  # where the host waited for the card

    def is_available(self) -> bool:
        """Whether it is plugged in."""
        return self.present

    def manual_seed_all(self, seed: int) -> None:
        """Seed the card's own generator."""
        self.generator.manual_seed(seed)

    def manual_seed(self, seed: int) -> None:
        """Seeds the current card only: here another one, as it may be on a machine with several."""

    def get_rng_state(self, device: Any = None) -> Tensor:
        """The state of its generator."""
        return self.generator.get_state()

    def set_rng_state(self, state: Tensor, device: Any = None) -> None:
        """Restore the state of its generator."""
        self.generator.set_state(state)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        """What autocast may compute in."""
        return [torch.bfloat16, torch.float16]

    def is_bf16_supported(self) -> bool:
        """Whether it is a modern card."""
        return self.has_bfloat16

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        """Free bytes, and all."""
        size = 8_000_000_000 if self.memory is None else self.memory
        return size, size

    def synchronize(self, device: Any = None) -> None:
        """Nothing is ever pending."""


CARD = Card()


class _Hook(_DummyPrivateUse1Hook):
    def is_available(self) -> bool:
        return CARD.present


@cache
def _device() -> torch.device:
    return torch.device(NAME, 0)


class CardTensor(torch.Tensor):
    """A tensor on the card; `host` holds its values."""

    host: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # else a result on the CPU would be of this class too

    @staticmethod
    def __new__(cls, host: Tensor) -> "CardTensor":
        tensor = torch.Tensor._make_wrapper_subclass(
            cls,
            host.size(),
            strides=host.stride(),
            storage_offset=host.storage_offset(),
            dtype=host.dtype,
            device=_device(),
        )
        tensor.host = host
        return tensor

    def __repr__(self) -> str:
        return f"{NAME}:0 {self.host!r}"

    def tolist(self) -> Any:
        """As every card: a copy to the host first."""
        host: Tensor = self.cpu()
        return host.tolist()

    @classmethod
    def __torch_dispatch__(cls, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(op, args, kwargs or {})


@dataclass(frozen=True)
class _Facts:
    """What is to be known of an operator, found out once."""

    name: str
    is_sent: bool  # to other processes
    copies: bool
    is_read: bool  # the host must know its result
    is_index: bool
    writes_by_index: bool
    takes_lengths: bool  # which are on the host
    gives_lengths: bool  # to the host, with its result
    is_random: bool
    gives_views: bool


@cache
def _facts(op: Any) -> _Facts:
    return _Facts(
        op.name(),
        op.namespace == "c10d",
        op.name().startswith(_COPIES),
        op in _READ_BY_THE_HOST,
        op is aten.index.Tensor,
        op in _WRITES_BY_INDEX,
        op in _LENGTHS_ON_THE_HOST,
        op in (aten._pack_padded_sequence.default, aten._pad_packed_sequence.default),
        torch.Tag.nondeterministic_seeded in op.tags,
        any(returned.alias_info for returned in op._schema.returns),
    )


def _run(op: Any, args: Any, kwargs: Any) -> Any:
    """An operator on the card: the same one on the CPU tensors inside."""
    facts, leaves = _facts(op), _leaves(args, kwargs)
    if facts.is_sent:
        raise RuntimeError(f"{op}: no process group can send from {NAME}:0")
    given = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    if facts.name == "aten::copy_":
        goes_to_host = not isinstance(args[0], CardTensor)
    else:
        goes_to_host = any(leaf.type == "cpu" for leaf in leaves if isinstance(leaf, torch.device))
    if not facts.copies and not facts.takes_lengths:
        _refuse_host_tensors(op, given)
    waits = _is_blocking(facts.name, args, kwargs) if facts.copies else facts.is_read or _has_boolean_index(facts, args)
    if goes_to_host or waits:
        CARD.waits.append(_asked_by(op))
    with _random_numbers_of_the_card() if facts.is_random else _NOTHING:
        result = op(*_mapped(_to_host, args), **{name: _mapped(_to_host, value) for name, value in kwargs.items()})
    if goes_to_host:
        return args[0] if facts.name == "aten::copy_" else result
    if facts.gives_lengths:
        return CardTensor(result[0]), result[1]  # numbers of rows, or lengths, for the host
    known = {id(tensor.host): tensor for tensor in given if isinstance(tensor, CardTensor)}
    # Views of ordinary tensors are ordinary tensors, in inference mode too.
    ordinary = facts.gives_views and torch.is_inference_mode_enabled() and not any(map(torch.is_inference, given))
    with torch.inference_mode(False) if ordinary else _NOTHING:
        return _mapped(lambda leaf: _to_card(leaf, known), result)


_NOTHING = nullcontext()
_HOST = torch.device("cpu")
_SEVERAL = (list, tuple)  # hundreds of thousands of operators are run: a union would be made anew for each


def _leaves(args: Any, kwargs: Any) -> list[Any]:
    """The arguments of an operator, and the elements of those that are lists. (PyTorch's trees are far slower.)"""
    leaves: list[Any] = []
    for value in (*args, *kwargs.values()):
        leaves.extend(value) if isinstance(value, _SEVERAL) else leaves.append(value)
    return leaves


def _mapped(function: Any, value: Any) -> Any:
    """The function of a value, or of each element of a list or tuple."""
    if isinstance(value, _SEVERAL):
        return type(value)([_mapped(function, each) for each in value])
    return function(value)


def _is_blocking(name: str, args: Any, kwargs: Any) -> bool:
    """Whether the host waits, at a copy from its memory to the card, until everything before is computed."""
    source = args[1] if name == "aten::copy_" else args[0]
    can_go_on = kwargs.get("non_blocking") or (name == "aten::copy_" and len(args) > 2 and args[2])
    return isinstance(source, Tensor) and not isinstance(source, CardTensor) and not can_go_on


def _refuse_host_tensors(op: Any, given: list[Tensor]) -> None:
    for tensor in given:
        if not isinstance(tensor, CardTensor) and tensor.ndim > 0:  # a number may meet any device
            raise RuntimeError(f"{op}: a CPU tensor of shape {tuple(tensor.shape)} meets a tensor on {NAME}:0")


def _has_boolean_index(facts: _Facts, args: Any) -> bool:
    """Reading by a boolean mask needs the number of its elements, as does writing by one, unless it is one value."""
    if not facts.is_index and not (facts.writes_by_index and args[2].numel() > 1):
        return False
    return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1])


def _asked_by(op: Any) -> str:
    """The line of our own code that an operator came from."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:  # not traceback.extract_stack: it reads the source of every frame
        before, _, file = frame.f_code.co_filename.replace("\\", "/").rpartition("/jumok/")
        if before:
            return f"{file}:{frame.f_code.co_name} {op.name()}"
        frame = frame.f_back
    return f"a test {op.name()}"


@contextmanager
def _random_numbers_of_the_card() -> Iterator[None]:
    host = torch.default_generator.get_state()
    torch.default_generator.set_state(CARD.generator.get_state())
    try:
        yield
    finally:
        CARD.generator.set_state(torch.default_generator.get_state())
        torch.default_generator.set_state(host)


def _to_host(leaf: Any) -> Any:
    if isinstance(leaf, CardTensor):
        return leaf.host
    return _HOST if isinstance(leaf, torch.device) else leaf


def _to_card(leaf: Any, known: dict[int, CardTensor]) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    before = known.get(id(leaf))
    if CARD.memory is not None and leaf.untyped_storage().nbytes() > CARD.memory and before is None:
        raise torch.OutOfMemoryError(f"{NAME}:0 cannot allocate {leaf.nbytes:,} bytes")
    if leaf.dtype == torch.float64:
        raise TypeError(f"{NAME}:0 does not know float64")
    if before is None:
        return CardTensor(leaf)
    assert before.shape == leaf.shape, "an operator resized a tensor, which the pretend card cannot do"
    return before


def _register_autocast(library: torch.library.Library) -> None:
    """Products in the lower precision of autocast; what needs the range or the digits in float32."""
    products = ("linear", "matmul", "mm", "bmm", "addmm", "conv2d", "scaled_dot_product_attention")
    for name, lower in [*((each, True) for each in products), ("softmax.int", False), ("layer_norm", False)]:
        base, _, variant = name.partition(".")
        op = getattr(getattr(aten, base), variant or "default")

        def kernel(*args: Any, op: Any = op, lower: bool = lower, **kwargs: Any) -> Any:
            wanted = torch.get_autocast_dtype(NAME) if lower else torch.float32

            def cast(leaf: Any) -> Any:
                return leaf.to(wanted) if isinstance(leaf, Tensor) and leaf.is_floating_point() else leaf

            with torch.autocast(NAME, enabled=False):
                return op(*tree_map(cast, args), **tree_map(cast, kwargs))

        library.impl(name, kernel, "AutocastPrivateUse1")


def _gru_cell(inputs: Tensor, hidden: Tensor, past: Tensor, *biases: Tensor | None) -> tuple[Tensor, Tensor]:
    """`_thnn_fused_gru_cell`, which cards have instead of the CPU's separate operators."""
    pairs = zip((inputs, hidden), biases or (None, None), strict=True)
    (r, z, n), (hr, hz, hn) = ((gates if bias is None else gates + bias).chunk(3, 1) for gates, bias in pairs)
    new = torch.tanh(n + torch.sigmoid(r + hr) * hn)
    state = (past - new) * torch.sigmoid(z + hz) + new
    return state, state


def _lstm_cell(inputs: Tensor, hidden: Tensor, past: Tensor, *biases: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """`_thnn_fused_lstm_cell`."""
    gates = sum((bias for bias in biases if bias is not None), inputs + hidden)
    i, f, g, o = gates.chunk(4, 1)
    cell = torch.sigmoid(f) * past + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell, cell


_make_tensor = torch.tensor


def tensor(data: Any, *, device: Any = None, **options: Any) -> Tensor:
    """To be used as `torch.tensor`, which calls kernels in a way that a device written in Python cannot answer."""
    made = _make_tensor(data, **options)
    return made if device is None else made.to(device)


_installed: list[Any] = []


def install() -> Card:
    """Register the card with PyTorch, once; returns it."""
    if not _installed:
        _setup_privateuseone_for_python_backend(NAME, backend_module=CARD, hook=_Hook())
        library = torch.library.Library("_", "IMPL")
        library.fallback(lambda op, *args, **kwargs: _run(op, args, kwargs), "PrivateUse1")
        factories = torch.library.Library("aten", "IMPL")
        for overload in ("arange", "arange.start", "arange.start_step"):  # PyTorch's own would resize a tensor
            name, _, variant = overload.partition(".")
            op = getattr(getattr(aten, name), variant or "default")
            factories.impl(overload, lambda *args, op=op, **kwargs: _run(op, args, kwargs), "PrivateUse1")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it replaces kernels of PyTorch's
            for name, cell in (("_thnn_fused_gru_cell", _gru_cell), ("_thnn_fused_lstm_cell", _lstm_cell)):
                for key in ("PrivateUse1", "AutogradPrivateUse1"):
                    factories.impl(name, cell, key)
        library.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
        _register_autocast(factories)
        _installed.extend((library, factories))
    return CARD
