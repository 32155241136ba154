import itertools
import sys
from collections import Counter

import pytest

from benchmarks.runner import ROOT, Worker, noise, orders, ratio, seconds_of, updates_in_turn


def test_each_order_is_a_permutation_and_all_runs_have_the_same_orders():
    first, again = (list(itertools.islice(orders("abcd"), 50)) for _ in range(2))
    assert first == again
    assert all(sorted(order) == list("abcd") for order in first)


def test_each_name_follows_every_other_name_equally_often():
    follows = Counter(
        pair
        for order in itertools.islice(orders("abcd"), 400)
        for pair in itertools.pairwise(order)
    )
    assert follows.keys() == set(itertools.permutations("abcd", 2))
    assert max(follows.values()) < 1.5 * min(follows.values())  # of 100 on average


def test_the_first_two_rounds_are_warm_up():
    calls = []
    seconds = seconds_of({"one": lambda: calls.append(1), "two": lambda: calls.append(2)}, rounds=3)
    assert [len(each) for each in seconds.values()] == [3, 3]
    assert (calls.count(1), calls.count(2)) == (5, 5)


def test_a_round_has_an_update_with_each_batch():
    """An update with a batch takes its number of seconds; the first with each does not count."""
    made = {"one": [], "two": []}
    calls = {
        name: lambda number, of=of: of.append(number) or float(number) for name, of in made.items()
    }
    assert updates_in_turn(calls, batches=3, rounds=2) == (
        {"one": [1, 1], "two": [1, 1]},
        {"one": 2, "two": 2},
    )
    assert made == dict.fromkeys(made, [0, 1, 2] * 3)


def test_short_calls_are_repeated_within_a_turn():
    calls = []
    seconds = seconds_of({"one": lambda: calls.append(1)}, rounds=1, seconds_per_turn=1e-4)
    assert len(calls) > 3 * 5 and seconds["one"][0] < 1e-4


def test_ratio_and_noise_are_medians_of_the_rounds():
    assert ratio([1.0, 4.0, 9.0], [1.0, 2.0, 3.0]) == 2
    assert noise([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == 0
    assert noise([1.1, 2.2, 3.3], [1.0, 2.0, 3.0]) == pytest.approx(0.1)  # always off
    assert noise([0.8, 1.0, 1.2], [1.0, 1.0, 1.0]) == pytest.approx(0.1)  # off in some rounds


def test_a_worker_answers_and_says_when_it_has_ended():
    program = "from benchmarks.runner import answer; answer(lambda asked: print('no') or 1 / asked)"
    with Worker([sys.executable, "-c", program], cwd=ROOT) as worker:
        assert [worker.ask(2), worker.ask(4)] == [0.5, 0.25]
        with pytest.raises(RuntimeError, match="a process has ended"):
            worker.ask(0)
