"""Figure 1 once more, out of `torch.nn` modules with copied weights: every intermediate by the names of a trace."""

import math
from typing import Any

import torch
from torch import Tensor, nn

Values = dict[str, Tensor]


class Reference:
    """A forward pass that is written here independently of the model whose weights it copies."""

    def __init__(self, model: Any) -> None:
        self.weights: dict[str, Tensor] = {name: value.clone() for name, value in model.state_dict().items()}
        self.config = model.config
        self.values: Values = {}

    def linear(self, name: str, x: Tensor, rows: slice = slice(None)) -> Tensor:
        weight = self.weights[f"{name}.weight"][rows]
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=f"{name}.bias" in self.weights)
        layer.weight.data = weight
        if layer.bias is not None:
            layer.bias.data = self.weights[f"{name}.bias"][rows]
        return layer(x)

    def norm(self, name: str, x: Tensor) -> Tensor:
        layer = nn.LayerNorm(x.shape[-1], eps=1e-6)
        layer.weight.data, layer.bias.data = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return layer(x)

    def embed(self, stack: str, ids: Tensor) -> Tensor:
        table = nn.Embedding.from_pretrained(self.weights["embed.tokens.weight"])
        d_model = table.embedding_dim
        angle = torch.arange(len(ids), dtype=torch.float64)[:, None] / 10000 ** (
            torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
        )
        positions = torch.zeros(len(ids), d_model)
        positions[:, 0::2], positions[:, 1::2] = angle.sin().float(), angle.cos().float()
        values = {"ids": ids, "embedding": table(ids), "scaled": table(ids) * math.sqrt(d_model)}
        values |= {"positions": positions, "embedded": values["scaled"] + positions}
        self.values |= {f"{stack}.{name}": value for name, value in values.items()}
        return values["embedded"]

    def attention(self, name: str, module: str, x: Tensor, memory: Tensor | None, mask: Tensor | None) -> Tensor:
        heads, d_model = self.config.heads, self.config.d_model
        width = d_model // heads

        def split(y: Tensor) -> Tensor:
            return torch.stack(y.split(width, dim=-1))  # [H, T, K]

        if memory is None:
            q, k, v = (
                split(self.linear(f"{module}.query_key_value", x, slice(i * d_model, (i + 1) * d_model)))
                for i in range(3)
            )
        else:
            q = split(self.linear(f"{module}.query", x))
            k, v = (
                split(self.linear(f"{module}.key_value", memory, slice(i * d_model, (i + 1) * d_model)))
                for i in range(2)
            )
        if self.config.rotary and memory is None and ".0." not in module:
            q, k = self.rotated(q), self.rotated(k)
        scores = torch.einsum("hqd,hkd->hqk", q, k) / math.sqrt(width)
        masked = scores if mask is None else scores.masked_fill(~mask, -math.inf)
        weights = nn.Softmax(-1)(masked)
        mixed = torch.einsum("hqk,hkd->hqd", weights, v)
        merged = torch.cat(list(mixed), dim=-1)
        values = {"q": q, "k": k, "v": v, "scores": scores, "masked": masked, "weights": weights}
        values |= {"mixed": mixed, "merged": merged, "output": self.linear(f"{module}.output", merged)}
        if mask is not None:
            values["mask"] = mask
        self.values |= {f"{name}.{part}": value for part, value in values.items()}
        return values["output"]

    def rotated(self, x: Tensor) -> Tensor:
        """Number i and number i + K/2 are one complex number, which is turned by pos / 10000^(2i/K)."""
        half = x.shape[-1] // 2
        angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] / 10000 ** (
            torch.arange(half, dtype=torch.float64) / half
        )
        turned = torch.complex(x[..., :half].double(), x[..., half:].double()) * torch.polar(
            torch.ones_like(angle), angle
        )
        return torch.cat((turned.real, turned.imag), -1).float()

    def feed_forward(self, name: str, module: str, x: Tensor) -> Tensor:
        activation = nn.ReLU() if self.config.activation == "relu" else nn.GELU()
        hidden = activation(self.linear(f"{module}.widen", x))
        self.values |= {f"{name}.hidden": hidden, f"{name}.output": self.linear(f"{module}.narrow", hidden)}
        return self.values[f"{name}.output"]

    def sublayer(self, name: str, norm: str, x: Tensor, run: Any) -> Tensor:
        """x + Sublayer(LayerNorm(x)), or LayerNorm(x + Sublayer(x))."""
        if self.config.norm == "pre":
            self.values[f"{name}.norm"] = self.norm(norm, x)
            self.values[f"{name}.residual"] = x + run(self.values[f"{name}.norm"])
            return self.values[f"{name}.residual"]
        self.values[f"{name}.residual"] = x + run(x)
        self.values[f"{name}.norm"] = self.norm(norm, self.values[f"{name}.residual"])
        return self.values[f"{name}.norm"]

    def finish(self, stack: str, x: Tensor) -> Tensor:
        self.values[f"{stack}.output"] = self.norm(f"{stack}.norm", x) if self.config.norm == "pre" else x
        return self.values[f"{stack}.output"]

    def encode(self, ids: Tensor) -> Tensor:
        x = self.embed("encoder", ids)
        for depth in range(self.config.encoder_layers):
            name, module = f"encoder.{depth}", f"encoder.layers.{depth}"
            x = self.sublayer(
                f"{name}.self",
                f"{module}.add_norm_1.norm",
                x,
                lambda y, n=name, m=module: self.attention(f"{n}.self", f"{m}.attention", y, None, None),
            )
            x = self.sublayer(
                f"{name}.feed_forward",
                f"{module}.add_norm_2.norm",
                x,
                lambda y, n=name, m=module: self.feed_forward(f"{n}.feed_forward", f"{m}.feed_forward", y),
            )
        return self.finish("encoder", x)

    def decode(self, ids: Tensor, memory: Tensor | None) -> Tensor:
        x = self.embed("decoder", ids)
        causal = torch.ones(len(ids), len(ids)).tril().bool() if len(ids) > 1 else None
        for depth in range(self.config.decoder_layers):
            name, module = f"decoder.{depth}", f"decoder.layers.{depth}"
            x = self.sublayer(
                f"{name}.self",
                f"{module}.add_norm_1.norm",
                x,
                lambda y, n=name, m=module: self.attention(f"{n}.self", f"{m}.self_attention", y, None, causal),
            )
            if memory is not None:
                x = self.sublayer(
                    f"{name}.cross",
                    f"{module}.add_norm_2.norm",
                    x,
                    lambda y, n=name, m=module: self.attention(f"{n}.cross", f"{m}.cross_attention", y, memory, None),
                )
            x = self.sublayer(
                f"{name}.feed_forward",
                f"{module}.add_norm_3.norm",
                x,
                lambda y, n=name, m=module: self.feed_forward(f"{n}.feed_forward", f"{m}.feed_forward", y),
            )
        states = self.finish("decoder", x)
        self.values["logits"] = nn.functional.linear(states, self.weights["embed.tokens.weight"])
        return states
