"""The validation set: its pairs, sets and prefixes."""

import pytest

from nmt.errors import UserError
from nmt.text.batches import LONGEST
from nmt.text.parallel_text import ParallelText
from tests.nmt.text.data import validation_data


def test_validation_covers_all_pairs(write_lines, vocabulary):
    lines = ["a b c", "d", "a a"]
    text = ParallelText(write_lines("source", lines), write_lines("target", lines))
    data = validation_data(text, vocabulary)
    assert data.references == lines
    for side in data.ids:
        assert [row.tolist() for row in side] == [[2, 3, 4], [5], [2, 2]]


def test_validation_leaves_out_pairs_that_are_too_long(write_lines, vocabulary):
    long = "a " * LONGEST
    text = ParallelText(
        write_lines("a", ["a", long, f"{long}b"]), write_lines("b", [long, f"{long}b", "a"])
    )
    data = validation_data(text, vocabulary)
    assert (data.too_long, [list(map(len, side)) for side in data.ids]) == (2, [[1], [LONGEST]])
    assert len(data.sources) == len(data.references) == 3
    text = ParallelText(write_lines("a", [f"{long}b"]), write_lines("b", ["a"]))
    with pytest.raises(UserError, match="more than 1000 tokens"):
        validation_data(text, vocabulary)


def test_a_validation_text_has_a_set_for_each_file(corpora, vocabulary):
    data = validation_data(corpora, vocabulary, valid_target_prefixes=["", "d d"])
    assert data.sets == [("small", slice(0, 1)), ("large", slice(1, 3))]
    assert data.prefixes == ["", "d d", "d d"]
    assert data.references == ["a", "b c", ""]
    assert [row.tolist() for row in data.ids[1]] == [[2], [5, 5, 3, 4], [5, 5]]


def test_a_sample_of_a_validation_text_is_spread_evenly(write_lines, vocabulary):
    path = write_lines("many", [f"{i}" for i in range(100)])
    few = write_lines("few", ["a", "b"])
    text = ParallelText([path, few], [path, few])
    data = validation_data(text, vocabulary, valid_sample=4)
    assert data.references == ["0", "25", "50", "75", "a", "b"]
    assert data.sets == [("many", slice(0, 4)), ("few", slice(4, 6))]
    assert data.prefixes is None
