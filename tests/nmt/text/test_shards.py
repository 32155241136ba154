"""Texts of several files, some of them compressed: they equal one file, and mistakes name the file
and line.
"""

import gzip
import os
import sys

import pytest
from backports import zstd

from nmt.errors import UserError
from nmt.storage.cache import Cache
from nmt.text.dataset_cache import raw_lines, token_ids
from nmt.text.lines import content_digests, read_blocks, read_chunks, read_lines, read_pieces
from nmt.text.parallel_text import ParallelText, all_shards, find_shards

CHECKSUM = {zstd.CompressionParameter.checksum_flag: 1}  # as `zstd` writes it
PACK = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": lambda content: zstd.compress(content, options=CHECKSUM),
}


@pytest.fixture
def cache(tmp_path):
    (tmp_path / "cache").mkdir()
    return Cache(tmp_path / "cache")


@pytest.fixture
def write(tmp_path):
    """Writes bytes to a file, compressed as its name says, and returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(PACK[path.suffix if path.suffix in PACK else ""](content))
        return path

    return write


def test_a_pattern_names_its_files_in_order(tmp_path, write):
    files = [write(name, b"") for name in ("b-2", "b-1", "a", "c[1]")]
    assert find_shards([tmp_path / "b-*", tmp_path / "a"]) == [[files[1], files[0]], [files[2]]]
    assert all_shards(tmp_path / "c[1]") == [files[3]]  # a file's own name is no pattern
    with pytest.raises(UserError, match=r"no file matches .*d-"):
        find_shards(tmp_path / "d-*")


def prepared(paths, cache):
    """The lines of files, read from the cache."""
    rows = raw_lines(paths, cache)
    return [rows[i].tobytes() for i in range(len(rows))]


def test_several_files_are_read_as_one(write, cache):
    """Each may begin with a byte order mark, end without a line feed, or be empty."""
    parts = [
        b"one\ntwo\r\n",
        b"",
        b"\xef\xbb\xbfthree\n\nfive",
        b"\xef\xbb\xbf",
        "sechs ß\n".encode(),
    ]
    paths = [write(f"part-{i}", part) for i, part in enumerate(parts)]
    lines = [b"one", b"two", b"three", b"", b"five", b"", "sechs ß".encode()]
    assert prepared(paths, cache) == list(read_lines(*paths)) == lines
    assert raw_lines(paths, cache).starts == [0, 2, 2, 5, 6, 7]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_compressed_files_equal_plain_ones(write, cache, ending):
    content = b"".join(b"line %d\n" % i for i in range(200_000)) + b"last"
    path = write(f"text{ending}", content)
    plain = write("text", content)
    assert prepared([path], cache) == prepared([plain], cache) == list(read_lines(path))
    assert list(read_chunks(path, 1000)) == list(read_chunks(plain, 1000))
    assert content_digests([path], cache) == content_digests([plain], cache)


def test_frames_may_follow_each_other(write, cache, tmp_path):
    write("a.gz", b"one\n").write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    write("a.zst", b"").write_bytes(zstd.compress(b"one\n") + zstd.compress(b"two\n"))
    for name in ("a.gz", "a.zst"):
        assert prepared([tmp_path / name], cache) == [b"one", b"two"]


@pytest.mark.parametrize("size", [1, 2, 5, 20])
def test_a_frame_may_end_inside_a_line(write, cache, size):
    """However the file is cut when it is read: decompressing the beginning of a frame may give
    nothing.
    """
    path = write("text.zst", b"")
    path.write_bytes(b"".join(map(zstd.compress, [b"one\ntw", b"", b"o", b"\nthr", b"ee"])))
    assert b"".join(read_blocks(read_pieces(path, size), path)) == b"one\ntwo\nthree\n"
    assert prepared([path], cache) == list(read_lines(path)) == [b"one", b"two", b"three"]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize(
    "damage", [lambda packed: packed[:-40], lambda packed: packed[:50] + bytes(50) + packed[100:]]
)
def test_a_damaged_file_is_named_and_leaves_nothing(write, cache, ending, damage):
    path = write(f"text{ending}", os.urandom(100_000).hex().encode())
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=rf"text\{ending} is damaged or cut off after line 0"):
        raw_lines([path], cache)
    assert not [found for found in cache.directory.iterdir() if found.suffix != ".lock"]


def test_a_large_zstandard_window_is_read(write, cache):
    """As `zstd --long=28` writes it: beyond the 128 MiB that are accepted by default."""
    path = write("plain", b"").with_name("text.zst")
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 28})
    path.write_bytes(packer.compress(b"one\ntwo\n") + packer.flush())
    with pytest.raises(zstd.ZstdError, match="too much memory"):
        zstd.open(path).read()
    assert prepared([path], cache) == [b"one", b"two"]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_pieces_of_a_compressed_file_are_small(write, ending):
    """However much a few bytes of it stand for."""
    path = write(f"text{ending}", b"a\n" * 2**23)
    assert path.stat().st_size < 2**15
    assert {len(piece) for piece in read_pieces(path, 2**16)} == {2**16}


def test_zstd_that_is_missing_is_named(write, cache, monkeypatch):
    path = write("text.zst", b"one\n")
    monkeypatch.setitem(sys.modules, "backports", None)
    with pytest.raises(UserError, match=r"needs the package backports.zstd"):
        raw_lines([path], cache)


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_invalid_utf8_is_named_by_shard_and_line(write, cache, ending):
    """Also in a line far from the beginning, which comes in another piece."""
    good = write(f"0{ending}", b"fine\n")
    bad = write(f"1{ending}", b"good\n" * 500_000 + b"sch\xf6n\nfine\n")
    with pytest.raises(UserError, match=rf"/1\{ending}, line 500001 is not UTF-8: .* 0xf6"):
        raw_lines([good, bad], cache)


def test_pairs_of_shards_must_match(write, tmp_path):
    for name, content in {
        "s-1": b"a\nb\n",
        "s-2": b"c\n",
        "t-1": b"a\n",
        "t-2": b"b\nc\n",
        "u-1": b"",
    }.items():
        write(name, content)
    with pytest.raises(UserError, match=r"s-1 has 2 lines and .*t-1 has 1"):
        list(ParallelText(tmp_path / "s-*", tmp_path / "t-*"))
    with pytest.raises(UserError, match=r"2 files from .* and 1 from"):
        ParallelText(tmp_path / "s-*", tmp_path / "u-*")
    with pytest.raises(UserError, match="2 source texts and 1 target"):
        ParallelText([tmp_path / "s-1", tmp_path / "s-2"], tmp_path / "t-*")


@pytest.mark.parametrize(
    ("source", "target", "fits"),
    [
        ("news-*.en", "news-*.de", False),
        ("news-?.en", "news-[0-9].de", False),
        ("**/news-*.en", "**/news-*.de", False),
        ("news-3*.en", "news-7*.de", True),
        ("*s-*.en", "news-*.de", True),
        ("news-3.en", "news-*.de", True),
        ("talks/*.en", "talks/*.de", True),
        ("**/1*.en", "**/1*.de", True),
    ],
)
def test_wildcards_stand_for_the_same_on_both_sides(
    write, tmp_path, monkeypatch, source, target, fits
):
    """Unless their numbers differ, or a side has none."""
    (tmp_path / "talks").mkdir()
    for name in (
        "news-3.en",
        "news-7.de",
        "talks/1.en",
        "talks/10.en",
        "talks/1.de",
        "talks/10.de",
    ):
        write(name, b"one\n")
    monkeypatch.chdir(tmp_path)
    if fits:
        ParallelText(source, target)
    else:
        with pytest.raises(UserError, match=r"news-3\.en and news-7\.de would"):
            ParallelText(source, target)


def test_the_folders_of_any_depth_are_the_same_on_both_sides(write, tmp_path, monkeypatch):
    for folder, language in (("a", "en"), ("b", "de")):
        (tmp_path / folder / "c").mkdir(parents=True)
        write(f"{folder}/c/news.{language}", b"one\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"a/c/news\.en and b/c/news\.de would"):
        ParallelText("**/news.en", "**/news.de")


class ChangingCache(Cache):
    """Changes a file after its digest is known, without a change of its size or number of lines."""

    def entry(self, name, make):
        (self.directory / "text").write_bytes(b"oni\ntwo\n")
        return super().entry(name, make)


def test_nothing_is_kept_of_a_text_that_changes(tmp_path, vocabulary):
    (tmp_path / "text").write_bytes(b"one\ntwo\n")
    with pytest.raises(UserError, match="text changed while"):
        token_ids([tmp_path / "text"], vocabulary, ChangingCache(tmp_path))
    assert not list(tmp_path.glob("*ids-*/*"))


def test_many_files_leave_few(write, cache, tmp_path, vocabulary):
    for i in range(300):
        write(f"s-{i:03d}", b"%d\n" % i)
    paths = all_shards(tmp_path / "s-*")
    assert prepared(paths, cache) == [b"%d" % i for i in range(300)]
    assert len(token_ids(paths, vocabulary, cache)) == 300
    assert len(list(cache.directory.rglob("*"))) < 20


def test_tokenizing_many_texts_gives_no_warning(write, cache, vocabulary, caplog):
    for name in range(8):
        token_ids([write(str(name), b"one two\n" * name)], vocabulary, cache)
    assert not caplog.records
