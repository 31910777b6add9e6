"""A model as a table: every weight with its shape and size."""

from torch import nn


def count_parameters(model: nn.Module) -> int:
    """How many numbers the model learns; a shared matrix counts once."""
    return sum(weight.numel() for weight in model.parameters())


def summarize(model: nn.Module) -> str:
    """One line a weight, layers that look alike folded into one line: name, shape, how many numbers."""
    rows: dict[tuple[str, str, int], int] = {}
    for name, weight in model.named_parameters():
        parts = ["*" if part.isdigit() else part for part in name.split(".")]
        shape = " × ".join(str(size) for size in weight.shape)
        row = (".".join(parts), shape, weight.numel())
        rows[row] = rows.get(row, 0) + 1
    longest = max((len(name) for name, _, _ in rows), default=0)
    lines = [
        f"{name:<{longest}} {shape:>14} {'' if times == 1 else f'× {times}':>5} {size * times:>13,}"
        for (name, shape, size), times in rows.items()
    ]
    lines.append(f"{'total':<{longest}} {'':>14} {'':>5} {count_parameters(model):>13,}")
    return "\n".join(lines)
