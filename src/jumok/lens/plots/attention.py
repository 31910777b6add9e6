"""Plots of attention. Rows are queries and columns keys; masked cells are hatched and have no colour."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

from jumok.engines.translator.alignment import Alignment
from jumok.errors import ConfigError, InputError, counted
from jumok.lens.plots.fonts import Lettering, OnMessage
from jumok.lens.plots.grid import (
    LOOK_AHEAD,
    PADDING,
    Matrix,
    name_cells,
    new_figure,
    show_matrix,
    write_numbers,
)
from jumok.lens.traces import Trace
from jumok.model.attention import attention_weights

ATTENTIONS = {"encoder-self": "encoder.{}.self", "decoder-self": "decoder.{}.self", "cross": "decoder.{}.cross"}
_USUAL = {"translator": "cross", "classifier": "encoder-self", "language_model": "decoder-self"}
SHARES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # of 1/√d_k: β from soft to hard
_SHARE_OF_ROW = "attention weight; every row sums to 1"


def draw_weights(
    weights: Matrix, keys: Sequence[str], queries: Sequence[str], *, on_message: OnMessage | None = None
) -> Figure:
    """Weights [T, S] of a translation: a row for each output token (query), a column for each source token (key)."""
    lettering = Lettering(on_message)
    columns, rows = lettering.labels(keys, "source tokens"), lettering.labels(queries, "output tokens")
    figure = new_figure(2.5 + 0.45 * len(columns), 2 + 0.4 * len(rows))
    axes = figure.subplots()
    image = show_matrix(axes, weights, cmap="viridis", vmin=0)
    name_cells(axes, rows, columns)
    axes.set(xlabel="source tokens (keys)", ylabel="output tokens (queries)")
    figure.colorbar(image, ax=axes, label=_SHARE_OF_ROW)
    return lettering.apply(figure)


def draw_attention(
    trace: Trace,
    attention: str | None = None,
    *,
    layer: int | None = None,
    head: int | None = None,
    window: int | None = None,
    on_message: OnMessage | None = None,
) -> Figure:
    """The attention weights of a trace: one head, all heads of a layer, or all layers. `attention` is "encoder-self",
    "decoder-self" or "cross"; by default what the task is best seen by. `window` is for a classifier's long text."""
    name = _name(trace, attention)
    layers = _chosen("layer", layer, _layers(trace, name))
    heads = _chosen("head", head, trace.shape_of(name.format(0) + ".weights")[-3])
    lettering = Lettering(on_message)
    rows, columns = _tokens(trace, name.format(0), window)
    rows, columns = lettering.labels(rows, "queries"), lettering.labels(columns, "keys")
    single = len(layers) * len(heads) == 1
    width, height = (_side(len(names), single) for names in (columns, rows))
    figure = new_figure(1.8 + width * len(heads), 1.5 + height * len(layers))
    panels = figure.subplots(len(layers), len(heads), squeeze=False, sharex=True, sharey=True)
    for number, depth in enumerate(layers):
        values, hidden = _weights(trace, name.format(depth), window)
        for index, which in enumerate(heads):
            axes = panels[number, index]
            show_matrix(axes, values[which], _hatches(hidden, name), cmap="viridis", vmin=0, vmax=1)
            axes.set_title(f"layer {depth}, head {which}", fontsize=10 if single else 8)
            bottom, left = number == len(layers) - 1, index == 0
            name_cells(axes, rows if left else None, columns if bottom else None, 10 if single else 6)
    masked = " (hatched: masked)" if any(axes.patches for axes in panels.flat) else ""
    figure.supxlabel(("keys: source tokens" if name == ATTENTIONS["cross"] else "keys") + masked, fontsize=10)
    figure.supylabel("queries: output tokens" if name == ATTENTIONS["cross"] else "queries", fontsize=10)
    label = _SHARE_OF_ROW if single else "attention weight"
    figure.colorbar(panels[0, 0].images[0], ax=panels, label=label, shrink=1 if len(layers) == 1 else 0.6)
    return lettering.apply(figure)


def draw_beta(
    trace: Trace,
    query: int | str,
    attention: str | None = None,
    *,
    layer: int = 0,
    head: int = 0,
    window: int | None = None,
    on_message: OnMessage | None = None,
) -> Figure:
    """softmax(β · q kᵀ) of one query, from soft to hard: a row for each β, a column for each key. The query is a token
    or its position, counted from 0."""
    name = _name(trace, attention)
    [layer] = _chosen("layer", layer, _layers(trace, name))
    name = name.format(layer)
    [head] = _chosen("head", head, trace.shape_of(f"{name}.weights")[-3])
    queries, keys = _tokens(trace, name, window)
    position = _position(query, queries)
    if f"{name}.scores" not in trace:
        raise ConfigError("This attention is additive: it has no q kᵀ that β could be multiplied with.")
    values, hidden = _weights_by_beta(trace, name, head, position, window)
    lettering = Lettering(on_message)
    columns = lettering.labels(keys, "keys")
    asked = lettering.title(f'query {position} "{queries[position]}"') or f"query {position}"
    figure = new_figure(3 + 0.5 * len(keys), 5)
    axes = figure.subplots()
    later = np.broadcast_to(np.arange(len(keys)) > position, hidden.shape) & hidden & _is_causal(name)
    image = show_matrix(axes, values, {LOOK_AHEAD: later, PADDING: hidden & ~later}, cmap="viridis", vmin=0, vmax=1)
    if len(keys) <= 24:
        texts = [
            ["" if hidden[row, i] else f"{value:.2f}" for i, value in enumerate(values[row])]
            for row in range(len(values))
        ]
        write_numbers(axes, texts, values < 0.5, 7)
    soft = [f"{share:g} / √d_k" for share in SHARES]
    soft[SHARES.index(0.0)] = "0 (all alike)"
    soft[SHARES.index(1.0)] += " (the model's)"
    name_cells(axes, [*soft, "∞ (hard)"], columns)
    axes.set(xlabel="keys", ylabel="β", title=f"{asked}, {name}, head {head}")
    axes.title.set_parse_math(False)
    figure.colorbar(image, ax=axes, label=_SHARE_OF_ROW)
    return lettering.apply(figure)


def draw_alignment(alignment: Alignment, source: str, output: str, *, on_message: OnMessage | None = None) -> Figure:
    """The word alignment of a translation: a filled cell where an output word (row) was translated from a source word
    (column)."""
    lettering = Lettering(on_message)
    columns, rows = source.split(), output.split()
    if not columns or not rows:
        raise InputError("There is nothing to align: the source or its translation is empty.")
    aligned = np.zeros((len(rows), len(columns)), np.float32)
    for of_source, of_output in alignment.by_word(source, output):
        aligned[of_output, of_source] = 1
    columns, rows = lettering.labels(columns, "source words"), lettering.labels(rows, "output words")
    figure = new_figure(2 + 0.45 * len(columns), 1.6 + 0.35 * len(rows))
    axes = figure.subplots()
    show_matrix(axes, aligned, cmap="Blues", vmin=0, vmax=1.3)
    name_cells(axes, rows, columns)
    axes.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="0.85")
    axes.tick_params(which="minor", length=0)
    axes.set(xlabel="source words", ylabel="output words")
    return lettering.apply(figure)


def _name(trace: Trace, attention: str | None) -> str:
    """The name of an attention in the trace, with {} for the layer."""
    there = [kind for kind, name in ATTENTIONS.items() if f"{name.format(0)}.q" in trace.tensors]
    if not there:
        raise ConfigError("This model has no attention: there is nothing to draw.")
    chosen = attention if attention is not None else _USUAL.get(trace.task, there[0])
    if chosen not in there:
        raise ConfigError(f'A {trace.task.replace("_", " ")} has no attention "{chosen}". It has: {", ".join(there)}.')
    return ATTENTIONS[chosen]


def _layers(trace: Trace, name: str) -> int:
    return next(depth for depth in range(1_000_000) if f"{name.format(depth)}.q" not in trace.tensors)


def _chosen(what: str, number: int | None, count: int) -> list[int]:
    """The number, if it is one of those that there are; all of them without one."""
    if number is not None and not 0 <= number < count:
        raise ConfigError(f"There is no {what} {number}: the model has {counted(count, what)}, counted from 0.")
    return list(range(count)) if number is None else [number]


def _window(trace: Trace, name: str, window: int | None) -> int | None:
    """The number of the window to draw; None if the text is in one piece."""
    if "window" not in trace.axes_of(f"{name}.q"):
        if window:
            raise ConfigError(f"There is no window {window}: the text is read in one piece.")
        return None
    count = trace.shape_of(f"{name}.q")[0]
    if window is None:
        raise ConfigError(f"The model reads this text in {count} windows. Choose one with `window=`, counted from 0.")
    return _chosen("window", window, count)[0]


def _tokens(trace: Trace, name: str, window: int | None) -> tuple[list[str], list[str]]:
    """The queries and the keys of an attention; those of one window end with padding."""
    along = trace[f"{name}.q"].tokens["query"], trace[f"{name}.k"].tokens["key"]
    number = _window(trace, name, window)
    if number is None:
        return list(along[0]), list(along[1])
    width = trace.shape_of(f"{name}.k")[-2]
    tokens = along[0][number * width : (number + 1) * width]
    padded = [*tokens, *["<pad>"] * (width - len(tokens))]
    return padded, padded


def _weights(trace: Trace, name: str, window: int | None) -> tuple[Matrix, Matrix]:
    """Weights [H, T, S] and which of them are masked [T, S]."""
    number = _window(trace, name, window)
    values = trace[f"{name}.weights"].values
    values = values if number is None else values[number]
    mask = trace.tensors.get(f"{name}.mask")
    if mask is None:
        return values, np.zeros(values.shape[1:], bool)
    return values, ~(mask if number is None else mask[number])


def _hatches(hidden: Matrix, name: str) -> dict[str, Matrix]:
    """Which masked cells [T, S] get which hatch: later keys and padding differently."""
    later = np.triu(hidden, 1) & _is_causal(name)
    return {LOOK_AHEAD: later, PADDING: hidden & ~later}


def _is_causal(name: str) -> bool:
    """Whether the queries of an attention may not look ahead."""
    return name.startswith("decoder.") and name.endswith(".self")


def _position(query: int | str, queries: Sequence[str]) -> int:
    """The position of a query that is given by its number or its token."""
    if isinstance(query, str) and not query.isdecimal():
        found = [number for number, token in enumerate(queries) if query in (token, token.lstrip("▁"))]
        if len(found) != 1:
            problem = f"stands at {', '.join(map(str, found))}" if found else "is not among the queries"
            shown = "  ".join(f"{number} {token}" for number, token in enumerate(queries))
            raise InputError(f'The token "{query}" {problem}; choose a position with `query=`: {shown}')
        return found[0]
    if not 0 <= int(query) < len(queries):
        raise InputError(f"There is no query {query}: there are {len(queries)}, counted from 0.")
    return int(query)


def _weights_by_beta(trace: Trace, name: str, head: int, position: int, window: int | None) -> tuple[Matrix, Matrix]:
    """Weights [B, S] of one query for every β and for hard attention, and which of them are masked."""
    number = _window(trace, name, window)
    q, k = (trace.tensors[f"{name}.{part}"] for part in ("q", "k"))
    q, k = (q, k) if number is None else (q[number], k[number])
    _, masked = _weights(trace, name, window)
    asked, keys = torch.from_numpy(q[head, position : position + 1].copy()), torch.from_numpy(k[head].copy())
    mask = torch.from_numpy(~masked[position : position + 1])
    betas = [share * q.shape[-1] ** -0.5 for share in SHARES]
    rows = [attention_weights(asked, keys, mask, beta=beta) for beta in betas]
    rows.append(attention_weights(asked, keys, mask, hard=True))
    values = torch.cat(rows).numpy()
    return values, np.broadcast_to(masked[position], values.shape)


def _side(names: int, single: bool) -> float:
    """Inches for so many rows or columns."""
    return 1.5 + 0.4 * names if single else min(max(1.3, 0.13 * names), 5)
