import itertools
from collections import Counter

from benchmarks.interleaved import orders, seconds_of


def test_each_order_is_a_permutation_and_all_runs_have_the_same_orders():
    first, again = (list(itertools.islice(orders("abcd"), 50)) for _ in range(2))
    assert first == again
    assert all(sorted(order) == list("abcd") for order in first)


def test_each_name_follows_every_other_name_equally_often():
    follows = Counter(pair for order in itertools.islice(orders("abcd"), 400) for pair in itertools.pairwise(order))
    assert follows.keys() == set(itertools.permutations("abcd", 2))
    assert max(follows.values()) < 1.5 * min(follows.values())  # of 100 on average


def test_the_first_two_rounds_are_warm_up():
    calls = []
    seconds = seconds_of({"one": lambda: calls.append(1), "two": lambda: calls.append(2)}, rounds=3)
    assert [len(each) for each in seconds.values()] == [3, 3]
    assert (calls.count(1), calls.count(2)) == (5, 5)
