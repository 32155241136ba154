"""Files of translated chunks, their order in a shard, and reports."""

import io
import itertools
from dataclasses import asdict

from nmt.bulk.chunks import Chunk, Report, Shard, add, read_chunk, summary, write_chunk
from nmt.bulk.model import Failure

SHARD = Shard("/in/a.en", "12-1.0", "/out")


def test_a_chunk_is_read_as_it_was_written():
    """The numbers of its failed lines are those of the shard.

    What another run translated does not count.
    """
    for run, report in (("this", Report(0, 4, 1, 3)), ("another", Report(0, 4, 1))):
        file = io.BytesIO()
        write_chunk(file, [b"a", Failure("ß is bad\n"), b"", b"b\r\x00"], "this")
        file.seek(0)
        failed = [{"shard": "/in/a.en", "line": 12, "reason": "ß is bad\n"}]
        assert read_chunk(file, Chunk(SHARD, 0, 10, 4), run) == (report, failed)
        assert file.read() == b"a\n\n\nb\r\x00\n"


def test_chunks_of_other_texts_or_lines_have_other_files():
    others = [("/in/a.en", "12-2.0"), ("/in/b.en", "12-1.0"), ("/other/a.en", "12-1.0")]
    shards = [SHARD, *(Shard(*other, "/out") for other in others)]
    places = [(0, 0, 5), (0, 0, 6), (9, 5, 5)]
    chunks = [Chunk(shard, *place) for shard, place in itertools.product(shards, places)]
    assert len({chunk.path for chunk in chunks}) == 12


def test_reports_add_up():
    report = add([Report(shards=1), Report(0, 10, 1, 9), Report(0, 10, 1), Report(0, 5, 0, 5)])
    assert report == Report(1, 25, 2, 14)
    total = add([report, Report(1, 7), Report(unreadable={"b": "cut off"}), add([])])
    assert total == Report(2, 32, 2, 14, {"b": "cut off"})
    assert Report(**asdict(total)) == total


def test_the_summary_says_what_was_done():
    report = Report(shards=2, lines=1500, failed=3, translated=1000)
    assert summary(report, 4, 20.0, "out/_bulk/failed") == (
        "shards written: 2, lines: 1,500, translated: 1,000 in 20.0 s (50.0 lines/s), "
        "failed: 3, see out/_bulk/failed; shards already there: 4"
    )
