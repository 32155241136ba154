"""The training set: which pairs are in it, in which batches and order."""

import collections
import itertools
import json

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from nmt.errors import UserError
from nmt.storage.cache import Cache
from nmt.text.datasets import bucket_widths
from nmt.text.parallel_text import ParallelText
from nmt.text.vocabulary import load_vocabulary
from tests.nmt.text.data import take, training_data


def test_a_dictionary_does_not_split_at_random(make_data):
    with pytest.raises(UserError, match="--subword_sampling needs SentencePiece"):
        make_data(["a b"], subword_sampling=0.1)


def test_training_batches_have_static_widths_and_filled_rows(make_data):
    (batch,) = take(make_data(["a b", "c", "d"], ["b a", "c", "d d d"], batch_size=4), 1)
    source, source_mask, target, target_mask = batch
    assert source.shape == target.shape == (4, 8)
    order = source[:, 0].argsort()  # the filler row, then those that begin with a, c and d
    np.testing.assert_array_equal(source[order, :3], [[0, 0, 0], [2, 3, 0], [4, 0, 0], [5, 0, 0]])
    np.testing.assert_array_equal(source_mask[order].sum(1), [1, 3, 2, 2])
    np.testing.assert_array_equal(
        target[order, :4], [[0, 0, 0, 0], [3, 2, 0, 0], [4, 0, 0, 0], [5, 5, 5, 0]]
    )
    np.testing.assert_array_equal(target_mask[order].sum(1), [0, 3, 2, 4])


def test_an_epoch_has_every_pair_once_and_its_own_order(make_data):
    """Twenty lines of two widths, in seven batches; the last of them is the only one that is not
    full.
    """
    lines = [" ".join(words) for words in itertools.product("abcd", repeat=2)] + [
        " ".join("abcd" * 3)
    ] * 4
    data = make_data(lines, batch_size=3)
    assert (data.used, data.batches_per_epoch) == (20, 7)

    def rows(batches):
        return [
            tuple(row)
            for batch in batches
            for row, kept in zip(batch[0], batch[3], strict=True)
            if kept.any()
        ]

    batches = take(data, 14)
    first = rows(batches[:7])
    second = rows(batches[7:])
    assert len(first) == 20
    assert sorted(first) == sorted(second)
    assert first != second


def test_a_batch_may_be_as_large_as_tokens_fit(make_data):
    """Rows of 8 and of 16 tokens, ends and padding counted; 31 tokens hold 3 and 1 of them."""
    lines = ["a"] * 4 + ["b " * 14] * 2
    shapes = sorted(batch[0].shape for batch in take(make_data(lines, token_batch_size=31), 4))
    assert shapes == [(1, 16), (1, 16), (1, 16), (3, 8)]
    assert sorted(batch[0].shape for batch in take(make_data(lines, token_batch_size=1), 6))[0] == (
        1,
        8,
    )


@hypothesis.given(
    strategies.lists(strategies.integers(1, 60), min_size=1, max_size=60),
    strategies.sampled_from([{"batch_size": 7}, {"batch_size": 1, "token_batch_size": 150}]),
)
@hypothesis.settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
def test_all_batches_of_an_epoch_but_one_are_full(make_data, lengths, options):
    """As `sizes` says.

    A pair is in a batch of its own width, or of a wider one that other pairs have.
    """
    data = make_data(["a " * length for length in lengths], maxlen=60, **options)
    batches = take(data, data.batches_per_epoch)
    shapes = [batch[0].shape for batch in batches]
    pairs = [int(batch[3][:, 0].sum()) for batch in batches]
    assert [rows for rows, _ in shapes] == [
        7 if "token_batch_size" not in options else max(1, 150 // width) for _, width in shapes
    ]
    assert sum(count < rows for count, (rows, _) in zip(pairs, shapes, strict=True)) <= 1
    assert sorted(
        int(row.sum()) - 1 for batch in batches for row in batch[3] if row.any()
    ) == sorted(lengths)
    counts = collections.Counter(width for _, width in shapes)
    assert counts == {width: count for width, _, count in data.sizes if count}


def test_pairs_shared_with_another_text_are_counted(make_data, write_lines, vocabulary):
    """Both sides must be equal. A pair of the other text counts as often as that has it."""
    data = make_data(["a", "b", "b", "c x", "c y"], ["d", "a", "a", "b", "b"])
    dev = (["b", "b", "a", "d", "c z", "c y"], ["a", "a", "b", "d", "b", "b"])
    assert data.shared_with(ParallelText(*map(write_lines, ("dev 1", "dev 2"), dev))) == 3
    assert data.shared_with(ParallelText(*map(write_lines, ("a", "b"), (["x"], ["x"])))) == 0


@pytest.mark.parametrize("first", [1, 3, 5, 9])
def test_batch_n_is_a_function_of_seed_and_n(make_data, first):
    lines = ["a", "b c", "c", "d a", "b", "a a a"]
    whole = take(make_data(lines), 12)
    part = take(make_data(lines), 12 - first, first)
    for expected, found in zip(whole[first:], part, strict=True):
        for x, y in zip(expected, found, strict=True):
            np.testing.assert_array_equal(x, y)
    other = take(make_data(lines, seed=2), 12)
    assert any((x[0] != y[0]).any() for x, y in zip(whole, other, strict=True))


def test_long_and_empty_pairs_are_counted(make_data):
    data = make_data(["a", "a a a", "", "b", "c"], ["a", "a", "b", "b b b b", " "], maxlen=2)
    assert (data.used, data.too_long, data.empty) == (1, 2, 2)


def test_pairs_of_unlike_lengths_are_left_out(make_data):
    """A ratio counts both ways; a pair that is empty or too long is counted as such alone."""
    sources = ["a", "a a a a", "a", "a a a", "", "a a a a a a a"]
    targets = ["b b", "b b", "b b b", "b", "b b", "b"]
    data = make_data(sources, targets, maxlen=6, max_length_ratio=2.0)
    assert (data.used, data.unlike, data.empty, data.too_long) == (2, 2, 1, 1)
    assert make_data(sources, targets, maxlen=6, max_length_ratio=2.9).used == 2
    assert make_data(sources, targets, maxlen=6).used == 4
    with pytest.raises(UserError, match=r"within --max_length_ratio 1.0"):
        make_data(["a a"], ["a"], max_length_ratio=1.0)


def test_training_data_without_pairs_is_refused(make_data):
    with pytest.raises(UserError, match="2 sentence pairs has 1 to 1 tokens"):
        make_data(["a a", ""], maxlen=1)


@pytest.mark.parametrize("maxlen", [1, 7, 50, 200])
def test_bucket_widths_are_few_and_fit_maxlen(maxlen):
    widths = bucket_widths(maxlen)
    assert widths[-1] >= maxlen + 1
    assert widths == sorted(set(widths))
    assert len(widths) <= 24


@pytest.mark.parametrize("parts", [2, 3])
def test_parts_of_a_batch_have_its_rows(make_data, parts):
    data = make_data(["a", "b", "c", "d", "a b", "b c", "d c"], batch_size=4)
    whole = take(data, 4)
    shares = [itertools.islice(data.batches(0, (part, parts)), 4) for part in range(parts)]
    for batch, found in zip(whole, zip(*shares, strict=True), strict=True):
        for expected, *rows in zip(batch, *found, strict=True):
            assert len({len(each) for each in rows}) == 1
            rows = np.concatenate(rows)
            np.testing.assert_array_equal(rows[:4], expected)
            assert len(rows) == -(-4 // parts) * parts
        assert not np.concatenate([each.target_mask for each in found])[4:].any()


def test_weighted_batches_are_a_function_of_seed_and_n(write_lines, vocabulary):
    files = [
        write_lines("small", ["a", "b c"]),
        write_lines("large", ["c", "d a", "b", "a a a", "d d"]),
    ]
    text = ParallelText(files, files)
    data = training_data(
        text, vocabulary, batch_size=2, maxlen=30, seed=1, dataset_weights=(3, 0.5)
    )
    assert (data.used, data.pairs_per_epoch, data.batches_per_epoch) == (7, 9, 5)
    assert data.sizes == [(8, 9, 5)]
    whole = take(data, 12)
    for first in (1, 5, 7):
        for expected, found in zip(whole[first:], take(data, 12 - first, first), strict=True):
            np.testing.assert_array_equal(expected[0], found[0])
    rows = [
        tuple(row[:2])
        for batch in whole[:5]
        for row, kept in zip(batch[0], batch[3], strict=True)
        if kept.any()
    ]
    assert (rows.count((2, 0)), rows.count((3, 4))) == (3, 3)


def test_prepared_texts_give_the_same_batches(write_lines, vocabulary, tmp_path):
    """In one file or two, a second time, and when a file of the cache is damaged."""
    (tmp_path / "cache").mkdir()
    lines = ["a", "b c", "c", "", "d a", "b", "a a a"]
    files = [write_lines("first", lines[:3]), write_lines("second", lines[3:])]
    options = {"batch_size": 2, "maxlen": 2, "seed": 1, "cache": Cache(tmp_path / "cache")}

    def batches(*text):
        return take(training_data(ParallelText(*text), vocabulary, **options), 6)

    expected = batches(*[write_lines("all", lines)] * 2)
    for name in ("", "record.json", "flat", "ends", "hashes", ""):
        found = batches(files, files)
        assert all((x[0] == y[0]).all() for x, y in zip(expected, found, strict=True))
        damaged = list((tmp_path / "cache").glob(f"ids-*/{name}*")) if name else []
        assert bool(damaged) == bool(name)
        for path in damaged:
            path.write_bytes(path.read_bytes()[:-1])


def test_a_text_that_is_edited_later_changes_no_batch(make_data, tmp_path):
    """The next start sees the change."""
    data = make_data(["a", "b"])
    (tmp_path / "source").write_text("c\nd\n")
    assert {row[0] for batch in take(data, 2) for row in batch[0]} == {2, 3}
    assert {row[0] for batch in take(make_data(["c", "d"]), 2) for row in batch[0]} == {4, 5}


@pytest.mark.parametrize("size", [60, 70_000])
def test_ids_of_any_vocabulary_are_kept(write_lines, tmp_path, size):
    """More than 65,536 of them need more bytes."""
    words = ["eos", "UNK", *map(str, range(2, size))]
    (tmp_path / "many.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    vocabulary = load_vocabulary(tmp_path / "many.json")
    path = write_lines("last", [f"2 {size - 1}"])
    (batch,) = take(
        training_data(ParallelText(path, path), vocabulary, batch_size=1, maxlen=9, seed=1), 1
    )
    assert batch[0][0].tolist() == [2, size - 1, 0, 0, 0, 0, 0, 0]


def test_targets_of_a_corpus_begin_with_its_prefix(corpora, vocabulary):
    """Also in random batches of a weighted epoch. An empty side stays one."""
    options = {"batch_size": 1, "maxlen": 3, "seed": 1}
    for weights in (None, (2, 1)):
        given = {"dataset_weights": weights, "target_prefixes": ["", "d"], **options}
        data = training_data(corpora, vocabulary, **given)
        assert (data.used, data.empty, data.too_long) == (2, 1, 0)
        found = {(*batch[0][0, :2], *batch[2][0, :4]) for batch in take(data, 6)}
        assert found == {(2, 0, 2, 0, 0, 0), (3, 4, 5, 3, 4, 0)}
    given = {"target_prefixes": ["d", "d"], "max_length_ratio": 1.0, **options}
    assert training_data(corpora, vocabulary, **given).unlike == 0
    options["maxlen"] = 2
    data = training_data(corpora, vocabulary, target_prefixes=["d", "d"], **options)
    assert (data.used, data.too_long) == (1, 1)
