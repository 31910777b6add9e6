"""The recurrent translator equals a loop over single cells, whatever else is in the batch and however it is decoded."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from jumok.errors import ConfigError, ShapeError
from jumok.model.config import config_from_dict, preset
from jumok.model.config.recurrent import RecurrentConfig
from jumok.model.masks import PAD
from jumok.model.recording import attentions, record
from jumok.model.recurrent import AdditiveAttend, RecurrentTranslator
from jumok.tasks import task_of_config
from jumok.training.objective import smoothed_cross_entropy

WIDTH, VOCABULARY = 6, 23
KINDS = [pytest.param(cell, attention) for cell, attention in product(("gru", "lstm"), ("none", "additive", "dot"))]
SOURCE = torch.tensor([[5, 6, 7, 8, 3], [9, 4, 3, PAD, PAD], [11, 3, PAD, PAD, PAD]])
TARGET = torch.tensor([[2, 7, 8, 12], [2, 9, PAD, PAD], [2, 10, 14, PAD]])


def build(cell: str = "gru", attention: str = "additive", **changes: Any) -> RecurrentTranslator:
    """A two-layer model in evaluation mode, in double precision: sums of another order must not matter."""
    values = {"vocabulary": VOCABULARY, "d_model": WIDTH, "cell": cell, "attention": attention, **changes}
    torch.manual_seed(20140601)
    return RecurrentTranslator(RecurrentConfig(**values)).double().eval()


def single_cell(layer: Any, suffix: str = "") -> tuple[nn.Module, int]:
    """A GRUCell or LSTMCell with the weights of one direction of a layer, and its width."""
    weights = {name: getattr(layer.cell, f"{name}_l0{suffix}") for name in WEIGHTS}
    width = weights["weight_hh"].shape[1]
    kind = nn.GRUCell if isinstance(layer.cell, nn.GRU) else nn.LSTMCell
    cell = kind(WIDTH, width).double()
    cell.load_state_dict({name: tensor.detach() for name, tensor in weights.items()})
    return cell, width


WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def run_cell(cell: nn.Module, inputs: list[Tensor], state: tuple[Tensor, ...]) -> tuple[list[Tensor], Tensor]:
    """The output for every input, token by token, and the last one."""
    outputs = []
    for x in inputs:
        state = cell(x, state) if len(state) == 2 else (cell(x, state[0]),)
        outputs.append(state[0])
    return outputs, state[0]


def attend(model: RecurrentTranslator, state: Tensor, memory: list[Tensor]) -> Tensor:
    """The context of one decoder state, from the formulas of the papers."""
    attention = model.decoder.cross_attention
    assert attention is not None
    w_query, (w_key, w_value) = attention.query.weight, attention.key_value.weight.chunk(2)
    query, keys = w_query @ state, [w_key @ each for each in memory]
    if model.config.attention == "additive":
        vector: Any = attention.attend.vector
        scores = torch.stack([vector @ torch.tanh(query + key) for key in keys])
    else:
        scores = torch.stack([query @ key for key in keys]) / WIDTH**0.5
    weights = scores.exp() / scores.exp().sum()
    mixed = sum(weight * (w_value @ each) for weight, each in zip(weights, memory, strict=True))
    return attention.output.weight @ mixed


def expected_logits(model: RecurrentTranslator, source: list[int], target: list[int]) -> Tensor:
    """The logits [T, V] of one sentence without padding, computed one token and one cell at a time."""
    table, states = model.embed.tokens.weight, 2 if model.config.cell == "lstm" else 1
    memory, last = [table[token] * WIDTH**0.5 for token in source], torch.zeros(0)
    for layer in model.encoder.layers:
        forward, width = single_cell(layer)
        backward, _ = single_cell(layer, "_reverse")
        zeros = (torch.zeros(width).double(),) * states
        there, end = run_cell(forward, memory, zeros)
        back, begin = run_cell(backward, memory[::-1], zeros)
        memory = [torch.cat(both) for both in zip(there, back[::-1], strict=True)]
        last = torch.cat((end, begin))
    first = torch.tanh(model.decoder.begin(last)).view(len(model.decoder.layers), states, WIDTH)
    x = [table[token] * WIDTH**0.5 for token in target]
    for layer, begin_states in zip(model.decoder.layers, first, strict=True):
        x, _ = run_cell(single_cell(layer)[0], x, tuple(begin_states))
    contexts = [last if model.config.attention == "none" else attend(model, state, memory) for state in x]
    both = torch.stack([torch.cat(pair) for pair in zip(x, contexts, strict=True)])
    return torch.tanh(model.decoder.combine(both)) @ table.T


def real(row: Tensor) -> list[int]:
    return [token for token in row.tolist() if token != PAD]


@pytest.mark.parametrize(("cell", "attention"), KINDS)
def test_a_padded_batch_equals_a_loop_over_single_cells(cell: str, attention: str) -> None:
    model = build(cell, attention, encoder_layers=2 if cell == "gru" else 1)
    with torch.no_grad():
        found = model(SOURCE, TARGET)
        for row, (source, target) in enumerate(zip(SOURCE, TARGET, strict=True)):
            expected = expected_logits(model, real(source), real(target))
            torch.testing.assert_close(found[row, : len(expected)], expected, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize(("cell", "attention"), KINDS)
def test_steps_equal_the_whole_target_and_beams_are_rows(cell: str, attention: str) -> None:
    model = build(cell, attention)
    rows = torch.tensor([[2, 7, 8, 12], [2, 7, 9, 4], [2, 5, 8, 12], [2, 10, 14, 6], [2, 10, 14, 7], [2, 9, 9, 9]])
    with torch.no_grad():
        whole = model.states(SOURCE.repeat_interleave(2, 0), rows)
        several, _ = model.decode(rows, model.encode(SOURCE))
        torch.testing.assert_close(several, whole, atol=1e-12, rtol=1e-10)
        one, cache = model.decode(rows[::2, :1], model.remember(model.encode(SOURCE)))  # one hypothesis each
        cache = cache.reorder(torch.tensor([0, 0, 1, 1, 2, 2]))
        torch.testing.assert_close(one.repeat_interleave(2, 0), whole[:, :1], atol=1e-12, rtol=1e-10)
        two, cache = model.decode(rows[:, 1:3], cache)
        torch.testing.assert_close(two, whole[:, 1:3], atol=1e-12, rtol=1e-10)
        # The second sentence has ended; the hypotheses of the others change places.
        order, stay = torch.tensor([1, 0, 4, 5]), torch.tensor([0, 2])
        three, _ = model.decode(rows[order, 3:], cache.reorder(order, stay))
        torch.testing.assert_close(three, whole[order, 3:], atol=1e-12, rtol=1e-10)


def test_sentences_may_leave_a_batch_without_padding_and_padding_may_be_common_to_all() -> None:
    model, source, target = build(), SOURCE[:1].repeat(2, 1), TARGET[:1].repeat(2, 1)
    with torch.no_grad():
        whole = model.states(source, target)
        _, cache = model.decode(target[:, :2], model.encode(source))
        rest, _ = model.decode(target[:1, 2:], cache.reorder(torch.tensor([1]), torch.tensor([1])))
        torch.testing.assert_close(rest, whole[:1, 2:], atol=1e-12, rtol=1e-10)
        padded = nn.functional.pad(target, (0, 2), value=PAD)
        torch.testing.assert_close(model.states(source, padded)[:, :4], whole, atol=1e-12, rtol=1e-10)
        assert model(source[:0], target[:0]).shape == (0, 4, VOCABULARY)
        one, two = torch.tensor([[3]]), torch.tensor([[3, PAD], [5, 3]])  # a text of one token beside a longer one
        torch.testing.assert_close(model.encode(two).last[:1], model.encode(one).last, atol=1e-12, rtol=1e-10)


def test_the_vector_of_additive_attention_starts_small_and_with_both_signs() -> None:
    vector = AdditiveAttend(400).vector.detach()
    assert -0.05 <= float(vector.min()) < -0.045
    assert 0.045 < float(vector.max()) <= 0.05


def test_a_row_that_ends_early_continues_from_its_last_real_token() -> None:
    model = build()
    with torch.no_grad():
        _, cache = model.decode(TARGET, model.encode(SOURCE))
        found, _ = model.decode(torch.full((3, 1), 15), cache)
        for row, (source, target) in enumerate(zip(SOURCE, TARGET, strict=True)):
            alone = torch.tensor([[*real(target), 15]])
            expected = model.states(torch.tensor([real(source)]), alone)[0, -1]
            torch.testing.assert_close(found[row, 0], expected, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("attention", ["none", "additive", "dot"])
def test_later_tokens_change_nothing_before_them_and_gradients_reach_everything(attention: str) -> None:
    model = build("lstm", attention)
    before = model(SOURCE[:1], TARGET[:1])
    changed = TARGET[:1].clone()
    changed[0, 2] = 4
    after = model(SOURCE[:1], changed)
    assert torch.equal(after[:, :2], before[:, :2])
    assert not torch.equal(after[:, 2:], before[:, 2:])
    embedded: list[Tensor] = []
    model.embed.register_forward_hook(lambda _m, _i, out: (out.retain_grad(), embedded.append(out))[0])
    model(SOURCE[:1], TARGET[:1])[0, -1, 7].backward()
    source, target = (part.grad for part in embedded)
    for reached in (source, target):  # from the last output to every token
        assert reached is not None
        assert bool((reached[0] != 0).any(-1).all())
    assert [name for name, each in model.named_parameters() if each.grad is None or not each.grad.any()] == []


def test_the_recorded_attention_is_the_one_that_was_used() -> None:
    for attention in ("additive", "dot"):
        model = build(attention=attention)
        with record(model) as recorded:
            model(SOURCE, TARGET)
        name, [attend] = "decoder.0.cross", [each.attend for each in attentions(model).values()]
        q, k, v, mask = (recorded[f"{name}.{part}"] for part in ("q", "k", "v", "mask"))
        weights = attend.weights(q, k, mask)
        torch.testing.assert_close(weights @ v, recorded[f"{name}.mixed"])
        assert weights[1, 0, :, 3:].eq(0).all()  # padding
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
        assert (f"{name}.weights" in recorded) == (attention == "additive")  # which nobody could compute from q and k
        assert recorded["encoder.output"].shape == (3, 5, WIDTH)
    assert attentions(build(attention="none")) == {}


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="d_model=7 is odd"):
        build(d_model=7)
    with pytest.raises(ConfigError, match=r"cell='rnn' is unknown. Known: gru, lstm"):
        build("rnn")
    with pytest.raises(ConfigError, match='Unknown model setting "heads"'):
        config_from_dict({"architecture": "recurrent", "vocabulary": 9, "heads": 2})
    with pytest.raises(ConfigError, match=r"Unknown architecture 'recurent' of a translator. Did you mean"):
        config_from_dict({"architecture": "recurent", "vocabulary": 9})
    with pytest.raises(ConfigError, match="Unknown architecture"):
        task_of_config({"task": "classifier", "architecture": "recurrent"})
    with pytest.raises(ConfigError, match="does not fit a RecurrentConfig"):
        RecurrentConfig(vocabulary=9, task="classifier", architecture=None)  # type: ignore[arg-type]
    model = build()
    with pytest.raises(ShapeError, match="padding before a real token"):
        model.encode(torch.tensor([[5, PAD, 3]]))
    with pytest.raises(ShapeError, match="2 rows cannot be shared among 3 sentences"):
        model.decode(TARGET[:2], model.encode(SOURCE))
    _, cache = model.decode(TARGET, model.encode(SOURCE))
    with pytest.raises(ShapeError, match="6 rows of tokens cannot continue a cache of 3 rows"):
        model.decode(TARGET.repeat(2, 1), cache)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("attention", ["additive", "dot"])
def test_with_attention_it_learns_to_copy(attention: str) -> None:
    model = build(attention=attention, d_model=32, encoder_layers=1, decoder_layers=1, dropout=0.0).float().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=160)
    draw = torch.Generator().manual_seed(1)

    def sides(rows: int) -> tuple[Tensor, Tensor]:
        text = torch.randint(4, 14, (rows, 5), generator=draw)
        return nn.functional.pad(text, (0, 1), value=3), nn.functional.pad(text, (1, 0), value=2)

    for _ in range(160):
        source, target = sides(24)
        states = model.states(source, target).flatten(0, 1)
        loss = smoothed_cross_entropy(states, model.embed.tokens.weight, source.flatten(), 0.0)
        optimizer.zero_grad()
        (loss / source.numel()).backward()
        optimizer.step()
        schedule.step()
    source, target = sides(50)
    assert float((model.eval()(source, target).argmax(-1) == source).float().mean()) > 0.98


@pytest.mark.parametrize(("name", "attention"), [("rnn", "none"), ("rnn-attention", "additive")])
def test_presets(name: str, attention: str) -> None:
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 192, "dropout": 0.3}
    assert preset(name, vocabulary=9) == RecurrentConfig(vocabulary=9, attention=attention, **sizes)


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(ConfigError) as error:
        RecurrentConfig(vocabulary=9, d_model=9)
    assert str(error.value) == "d_model=9 is odd, but the encoder splits it between two directions. Use 10."
    assert RecurrentConfig(vocabulary=9, d_model=10).d_model == 10
