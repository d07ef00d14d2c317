"""Numbers of Go's math/rand, as published experiments were drawn from."""

from collections import Counter

from berth.tools.lab.go_random import GoRandom, _constants


def test_constants_and_draws_are_those_of_go() -> None:
    assert int(_constants()[0]) & (2**63 - 1) == 5041579894721019882
    assert GoRandom(42).int63() == 3440579354231278675


def test_a_shuffle_keeps_all_items() -> None:
    items = list(range(100))
    GoRandom(1).shuffle(items)

    assert sorted(items) == list(range(100))
    assert items != list(range(100))


def test_a_permutation_has_each_number_once() -> None:
    assert sorted(GoRandom(7).permutation(50)) == list(range(50))


def test_numbers_below_a_bound_are_uniform() -> None:
    chance = GoRandom(3)
    for bound in (5, 8):
        counts = Counter(chance.below(bound) for _ in range(4000))

        assert sorted(counts) == list(range(bound))
        assert max(counts.values()) < 1.3 * 4000 / bound


def test_fractions_lie_below_one() -> None:
    chance = GoRandom(5)
    drawn = [chance.random() for _ in range(2000)]

    assert all(0 <= each < 1 for each in drawn)
    assert 0.45 < sum(drawn) / len(drawn) < 0.55
