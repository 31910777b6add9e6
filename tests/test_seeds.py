from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jumok.seeds import bit_stream, derive_seed

arguments = st.tuples(st.integers(), st.text(), st.lists(st.integers()).map(tuple))


def test_the_same_seed_on_every_machine_and_in_every_version() -> None:
    # A changed value would silently change every training that is resumed with a newer version.
    assert derive_seed(1, "batches", 2, 3) == 4687405767943593021
    assert bit_stream(1, "batches", 2, 3).random_raw(2).tolist() == [9531651119769554631, 1564915973957832980]


@given(arguments, arguments)
def test_different_arguments_give_unrelated_seeds(one: tuple, other: tuple) -> None:
    seeds = [derive_seed(seed, purpose, *numbers) for seed, purpose, numbers in (one, other)]
    assert (seeds[0] == seeds[1]) == (one == other)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_numbers_are_not_run_together() -> None:
    assert len({derive_seed(1, "p", 12, 3), derive_seed(1, "p", 1, 23), derive_seed(1, "p", 123)}) == 3


def test_generators_of_two_purposes_do_not_share_numbers() -> None:
    first, again, other = (bit_stream(5, purpose, 1).random_raw(100) for purpose in ("dropout", "dropout", "batches"))
    assert (first == again).all()
    assert not (first == other).any()
