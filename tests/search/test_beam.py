"""Beam and greedy search against brute force and against themselves in other batches."""

from __future__ import annotations

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from toy_model import TOLERANCE, WORD, ToyModel, consistent

from jumok.errors import JumokError
from jumok.search.beam import beam_search
from jumok.search.constraints import Rules
from jumok.search.decoding import Scoring
from jumok.tokenizer import BOS, EOS

SEEDS = st.integers(0, 2**31)
PENALTIES = st.sampled_from([0.0, 0.6, 1.0, 2.0])


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, words=st.integers(1, 4), longest=st.integers(1, 4), penalty=PENALTIES)
def test_a_beam_as_wide_as_everything_finds_exactly_the_best(seed, words, longest, penalty):
    model = ToyModel.random([seed, seed + 1], words)
    limits = [longest, max(1, longest - 1)]
    everything = [model.everything(sentence, limit, penalty) for sentence, limit in enumerate(limits)]
    n_best = min(7, len(everything[1]))
    found = beam_search(
        model.step,
        model.cache(),
        Rules(limits),
        beam=len(everything[0]),
        n_best=n_best,
        length_penalty=penalty,
    )
    for sentence, hypotheses in enumerate(found):
        expected = everything[sentence][:n_best]
        assert [h.ids for h in hypotheses] == [ids for _, ids in expected]
        assert all(abs(h.score - score) < TOLERANCE for h, (score, _) in zip(hypotheses, expected, strict=True))
        assert all(consistent(model, sentence, h, penalty) for h in hypotheses)


def test_all_outputs_there_are_when_more_are_asked_for():
    model = ToyModel.random([1], 1)
    found = beam_search(model.step, model.cache(), Rules([2]), beam=50, n_best=50)
    assert sorted(h.ids for h in found[0]) == [[WORD], [WORD, WORD]]


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, limit=st.integers(1, 9), penalty=PENALTIES)
def test_greedy_takes_the_most_probable_token_until_the_end(seed, limit, penalty):
    model = ToyModel.random([seed], 5)
    ids: list[int] = []
    finished = True
    while True:
        scores = model.log_probs(0, [BOS, *ids]).clone()
        scores[: EOS if ids else WORD] = -torch.inf  # no output is empty
        token = int(scores.argmax())
        if token == EOS or len(ids) == limit:
            finished = token == EOS
            break
        ids.append(token)
    [[found]] = beam_search(model.step, model.cache(), Rules([limit]), beam=1, length_penalty=penalty)
    assert (found.ids, found.finished) == (ids, finished)
    assert consistent(model, 0, found, penalty)


@settings(max_examples=30, deadline=None)
@given(
    seed=SEEDS,
    beam=st.integers(1, 6),
    penalty=PENALTIES,
    limits=st.lists(st.integers(1, 12), min_size=1, max_size=5),
    bias=st.sampled_from([{}, {WORD: 1.5}, {EOS: -2.0, WORD + 1: 0.3}]),
    data=st.data(),
)
def test_early_finish_changes_nothing(seed, beam, penalty, limits, bias, data):
    n_best = data.draw(st.integers(1, beam))

    def search(model):
        return beam_search(
            model.step,
            model.cache(),
            Rules(limits, bias=bias),
            beam=beam,
            n_best=n_best,
            length_penalty=penalty,
        )

    seeds = [seed + number for number in range(len(limits))]
    early, late = ToyModel.random(seeds, 6, 14), ToyModel.random(seeds, 6, 14)
    found = search(early)
    with pytest.MonkeyPatch.context() as patch:
        never = lambda _, totals, *__: totals.masked_fill(totals > -torch.inf, torch.inf)  # noqa: E731
        patch.setattr(Scoring, "best_possible", never)
        assert search(late) == found
    assert early.steps <= late.steps


@given(
    total=st.floats(-50, 5),
    gain=st.sampled_from([0.0, 0.1, 3.0]),
    penalty=PENALTIES,
    length=st.integers(1, 20),
    more=st.integers(1, 20),
)
@example(total=0.0, gain=0.1, penalty=0.0, length=1, more=19)
def test_the_bound_is_never_beaten_and_can_be_reached(total, gain, penalty, length, more):
    longest = length + more
    scoring = Scoring(1, torch.tensor([float(n) ** penalty for n in range(longest + 1)], dtype=torch.float64), gain)
    totals = torch.tensor([total], dtype=torch.float64)
    bound = float(scoring.best_possible(totals, length, torch.tensor([longest])))
    reachable = [(total + gain * (n - length)) / n**penalty for n in range(length + 1, longest + 1)]
    assert all(score <= bound + TOLERANCE for score in reachable)
    ceiling = total + gain * more
    assert bound == pytest.approx(ceiling / (longest if ceiling <= 0 else length + 1) ** penalty)
    if gain == 0 and total <= 0:
        assert max(reachable) == pytest.approx(bound)


def test_the_very_last_token_can_decide():
    probabilities = torch.tensor([[0.0, 1.0, 0.0], [0.4, 0.31, 0.29], [1.0, 0.0, 0.0]])
    model = ToyModel.without_memory(probabilities.log())
    [[found]] = beam_search(model.step, model.cache(), Rules([2]), beam=2, length_penalty=1.0)
    assert found.ids == [WORD, WORD]  # log 0.31 / 3 > log 0.4 / 2 > log 0.31 / 2


def test_greedy_search_stops_at_its_first_end_though_a_longer_output_would_score_better():
    probabilities = torch.tensor([[0.0, 1.0, 0.0], [0.52, 0.48, 0.0], [1.0, 0.0, 0.0]])
    model = ToyModel.without_memory(probabilities.log())
    [[found]] = beam_search(model.step, model.cache(), Rules([9]), beam=1, length_penalty=1.0)
    assert found.ids == [WORD]  # log 0.52 / 2 < log 0.48 / 3
    assert model.steps == 2


def test_only_what_ends_within_the_beam_is_an_output():
    """Of four candidates of a beam of two, the two beyond it continue or are dropped, whatever their tokens are."""
    probabilities = torch.tensor([[0.0, 0.4, 0.3, 0.2, 0.1], [0.7, 0.1, 0.1, 0.1, 0.0]])
    model = ToyModel.without_memory(probabilities.log())
    [found] = beam_search(model.step, model.cache(), Rules([3]), beam=2, n_best=2, length_penalty=0.0)
    assert [h.ids for h in found] == [[WORD], [WORD + 1]]
    assert all(consistent(model, 0, h, 0.0) for h in found)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_bias_can_lift_what_seemed_lost(penalty):
    probabilities = torch.tensor([[0.0, 0.0, 1.0], [0.6, 0.3, 0.1], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    model = ToyModel.without_memory(probabilities[[0, 1, 2, 2, 2, 3]].log())
    biased = Rules([5], bias={WORD: 0.5})
    [[found]] = beam_search(model.step, model.cache(), biased, beam=2, length_penalty=penalty)
    assert found.ids == [WORD + 1, WORD, WORD, WORD, WORD]
    assert found.score > 0


def test_early_finish_saves_steps():
    model = ToyModel.without_memory([[3.0, -9.0, -9.0]])  # ends as soon as it may, and everybody knows it
    beam_search(model.step, model.cache(), Rules([50]), beam=2, length_penalty=1.0)
    assert model.steps < 40
    model.steps = 0
    beam_search(model.step, model.cache(), Rules([50]), beam=2, length_penalty=0.0)
    assert model.steps == 2


def test_the_bound_is_tight_where_a_bias_may_still_be_gained():
    probabilities = torch.tensor([[0.0, 1.0], [0.6, 0.4], [0.6, 0.4]])
    model = ToyModel.without_memory(probabilities.log())
    rules = Rules([5], bias={WORD: 0.07})  # log 0.4 + 5 * 0.07 < log 0.6
    beam_search(model.step, model.cache(), rules, beam=2, length_penalty=0.0)
    assert model.steps == 2


def test_a_sentence_leaves_the_batch_while_its_neighbours_go_on():
    ends, goes_on = [[-9.0, 9.0], [9.0, -9.0]], [[-9.0, 9.0]]
    model = ToyModel([ToyModel.without_memory(scores).tables[0] for scores in (ends, goes_on)])
    rows = []

    def step(ids, cache):
        rows.append(len(ids))
        return model.step(ids, cache)

    beam_search(step, model.cache(), Rules([6, 6]), beam=2, length_penalty=0.0)
    assert rows == [2, 4, 2, 2, 2, 2, 2]


def test_scores_are_compared_in_the_precision_of_the_model():
    """A later output that is better by less than float32 can tell is the better one, whichever way it would round."""
    for best in (0.3, 0.34, 0.38, 0.42):
        table = torch.zeros(3, WORD + 3, WORD + 3, dtype=torch.float64)
        table[0, :, WORD], table[0, :, WORD + 1] = best, 1 - best
        table[1, WORD, EOS] = table[1, WORD + 1, WORD + 2] = 1.0
        table[2, :, EOS] = best * (1 + 1e-10) / (1 - best)
        table[2, :, WORD] = 1 - table[2, :, EOS]
        model = ToyModel([table.log()])
        [[found]] = beam_search(model.step, model.cache(), Rules([2]), beam=2, length_penalty=0.0)
        assert found.ids == [WORD + 1, WORD + 2]


@settings(max_examples=20, deadline=None)
@given(seeds=st.lists(SEEDS, min_size=1, max_size=6), beam=st.integers(1, 5), ties=st.booleans(), penalty=PENALTIES)
def test_neighbours_change_nothing(seeds, beam, ties, penalty):
    model = ToyModel.random(seeds, 7, 12)
    if ties:
        model.tables = [(table * 2).round() / 2 for table in model.tables]
    limits = [3 + seed % 9 for seed in seeds]

    def search(some, some_limits):
        return beam_search(
            some.step,
            some.cache(),
            Rules(some_limits, no_repeat_ngram=2),
            beam=beam,
            n_best=beam,
            length_penalty=penalty,
        )

    together = search(model, limits)
    alone = [search(ToyModel([table]), [limit])[0] for table, limit in zip(model.tables, limits, strict=True)]
    assert together == alone
    backwards = search(ToyModel(model.tables[::-1]), limits[::-1])
    assert together == backwards[::-1]


def test_ties_go_to_the_lower_id_and_the_earlier_hypothesis():
    flat = ToyModel.without_memory([[0.0] * 4])
    [found] = beam_search(flat.step, flat.cache(), Rules([2]), beam=25, n_best=12, length_penalty=1.0)
    assert [h.ids for h in found] == [*([a] for a in (4, 5, 6)), *([a, b] for a in (4, 5, 6) for b in (4, 5, 6))]


def test_the_limit_is_not_silent():
    model = ToyModel.without_memory([[-5.0, 5.0, -5.0]], sentences=2)
    for beam in (1, 3):
        found = beam_search(model.step, model.cache(), Rules([4, 6]), beam=beam)
        assert [h[0].ids for h in found] == [[WORD] * 4, [WORD] * 6]
        assert not any(h[0].finished for h in found)
        assert all(consistent(model, number, h[0], 1.0) for number, h in enumerate(found))


def test_an_output_that_ends_by_itself_at_its_limit_is_finished():
    model = ToyModel.without_memory([[-5.0, 5.0, -5.0], [-5.0, 5.0, -5.0], [5.0, -5.0, -5.0]])
    [[found]] = beam_search(model.step, model.cache(), Rules([2]), beam=1)
    assert found.ids == [WORD, WORD]
    assert found.finished


def test_an_empty_batch_gives_an_empty_result():
    model = ToyModel([])
    assert beam_search(model.step, model.cache(), Rules([])) == []
    assert model.steps == 0


def test_the_model_runs_without_recording_gradients():
    model = ToyModel.random([0], 3)

    def step(ids, cache):
        assert torch.is_inference_mode_enabled()
        return model.step(ids, cache)

    beam_search(step, model.cache(), Rules([3]))
    assert model.steps
    assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize("beam", [1, 3])
def test_a_broken_model_is_an_error(beam):
    damaged = "The model gives NaN probabilities: its weights are damaged or have diverged."
    impossible = "The model gives probability 0 to every output allowed for sentence 0."
    for value, message in ((torch.nan, damaged), (-torch.inf, impossible)):
        model = ToyModel([torch.full((1, 6, 6), value)])
        with pytest.raises(JumokError) as error:
            beam_search(model.step, model.cache(), Rules([3]), beam=beam)
        assert str(error.value) == message
