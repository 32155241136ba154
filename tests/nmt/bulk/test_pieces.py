"""Files of translated pieces, and their order in a shard."""

import io
import random

import pytest

from nmt.bulk.lines import Extent, Fault
from nmt.bulk.pieces import Outcome, Piece, Shard, Work, failed_lines, failures, in_order, read_outcome, write_piece
from nmt.bulk.report import Report, add, of_shard, summary

SHARD = Shard("/in/a.en", "12-1.0", "a.en", "/out")


def outcome(first, lines, failed=(), work=(0.0, 1.0, 0.5)):
    return Outcome(Piece(SHARD, Extent(0, 0, first, lines)), tuple(failed), Work(*work))


def test_a_piece_is_read_as_it_was_written():
    file = io.BytesIO()
    results = [b"a", Fault("ß is bad\n"), b"", b"b\r\x00"]
    written = outcome(0, 4, [(1, "ß is bad\n")])
    write_piece(file, results, written.work)
    file.seek(0)
    assert failures(results) == written.failed
    assert read_outcome(file, written.piece) == written
    assert file.read() == b"a\n\n\nb\r\x00\n"


def test_pieces_of_other_texts_or_lines_have_other_files():
    others = [("/in/a.en", "12-2.0", "a.en"), ("/in/b.en", "12-1.0", "b.en"), ("/other/a.en", "12-1.0", "a.en")]
    shards = [SHARD, *(Shard(*other, "/out") for other in others)]
    extents = [Extent(0, 9, 0, 5), Extent(0, 9, 0, 6), Extent(9, 9, 5, 5)]
    assert len({Piece(shard, extent).path for shard in shards for extent in extents}) == 12


def test_pieces_are_put_in_order():
    outcomes = [outcome(10 * i, 10) for i in range(20)] + [outcome(200, 3)]
    shuffled = random.Random(1).sample(outcomes, len(outcomes))
    assert in_order(shuffled, 203) == outcomes
    assert in_order([], 0) == []


@pytest.mark.parametrize(
    "pieces, lines",
    [([(0, 5)], 10), ([(5, 5)], 10), ([(0, 5), (0, 5)], 10), ([(0, 5), (6, 4)], 10), ([], 1), ([(0, 5)], 4)],
)
def test_a_shard_with_lines_missing_or_twice_is_not_put_together(pieces, lines):
    with pytest.raises(RuntimeError, match="line"):
        in_order([outcome(*piece) for piece in pieces], lines)


def test_failed_lines_have_the_numbers_of_the_shard():
    outcomes = [outcome(0, 10, [(0, "first")]), outcome(10, 10, [(9, "last")])]
    assert failed_lines(outcomes) == [
        {"shard": "/in/a.en", "line": 1, "reason": "first"},
        {"shard": "/in/a.en", "line": 20, "reason": "last"},
    ]


def test_reports_add_up():
    new = outcome(0, 10, [(3, "bad")], work=(100.0, 104.0, 2.0))
    later = outcome(20, 5, work=(102.0, 110.0, 1.0))
    report = of_shard([new, outcome(10, 10, [(1, "bad")], work=(50.0, 99.0, 7.0)), later], 100.0)
    assert report == Report(1, 25, 2, 14, 3.0, 100.0, 110.0)
    total = add([report, of_shard([outcome(0, 7)], 100.0), Report(unreadable={"b": "cut off"}), add([])])
    assert total == Report(2, 32, 2, 14, 3.0, 100.0, 110.0, {"b": "cut off"})
    assert Report(**total.as_dict()) == total


def test_one_is_not_plural():
    assert summary(Report(1, 1, 1, 1), 1, 2.0, "f") == (
        "1 shard written with 1 line; 1 line translated in 2.0 s (0.5 lines/s); 1 line failed, see f; "
        "already there: 1 shard"
    )


def test_the_summary_says_what_was_done():
    report = Report(shards=2, lines=1500, failed=3, translated=1000)
    assert summary(report, 4, 20.0, "out/_bulk/failed") == (
        "2 shards written with 1,500 lines; 1,000 lines translated in 20.0 s (50.0 lines/s); "
        "3 lines failed, see out/_bulk/failed; already there: 4 shards"
    )
