"""Lines of files and streams."""

import gzip
import os
import random
import threading

import pytest
from backports import zstd

from nmt.errors import UserError
from nmt.text.lines import file_lines, read_chunks, stream_lines


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"one\r\ntwo\n\nlast", [b"one", b"two", b"", b"last"]),
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", [b"one", b"\xef\xbb\xbftwo"]),
        (b"\xef\xbb\xbf", [b""]),
        (b"a\0b\n\0\n", [b"a\0b", b"\0"]),
        ("a\u2028b\x0bc\x0cd\x85e\rf\n".encode(), ["a\u2028b\x0bc\x0cd\x85e\rf".encode()]),
        (b"x" * 10**6 + b"\ny\n", [b"x" * 10**6, b"y"]),
    ],
    ids=["empty", "line ends", "mark", "only a mark", "NUL", "other separators", "megabyte"],
)
def test_files_and_streams_give_the_same_lines(write, content, lines):
    path = write("text", content)
    assert list(stream_lines([path])) == lines
    with path.open("rb") as file:
        chunks = list(read_chunks(file.fileno(), 2))
    assert [line for chunk in chunks for line in chunk] == lines
    assert [len(chunk) for chunk in chunks] == [2] * (len(lines) // 2) + [1] * (len(lines) % 2)


@pytest.mark.parametrize(
    "content",
    [
        random.Random(1).randbytes(5000),
        "Größe und Gewicht\n".encode("utf-16"),
        gzip.compress(b"a b c\n" * 9000) * 20,
        b"\n\x05Const\x12\x0b\n\x05dtype\x12\x02\x30\x01" * 300,
        "A man".encode("utf-16-le"),
        b"A man.\0\0\0\n",
        b"\xff\xfe\xfd a",
    ],
    ids=["random", "UTF-16", "gzip", "protobuf", "short UTF-16", "NUL", "short binary"],
)
def test_what_is_not_text_is_refused(write, content):
    path = write("data", content)
    with path.open("rb") as file, pytest.raises(UserError, match="the input is not text: "):
        list(read_chunks(file.fileno(), 2))
    with pytest.raises(UserError, match="data is not text: "):
        list(read_chunks(path, 2))
    with pytest.raises(UserError, match="data is not text: "):
        list(file_lines(path))


def test_text_with_some_strange_bytes_is_read(write):
    latin = "Größe, Süße, Maße und weiterer Text in einer alten Kodierung".encode("latin-1")
    for content in (latin, b"a\0b", b"\xff\xfe a", b"a\tb\f" * 50):
        assert list(file_lines(write("data", content))) == [content]


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_a_file_may_be_compressed(write, ending):
    content = b"one\ntwo\n\nlast"
    packed = {"": bytes, ".gz": gzip.compress, ".zst": zstd.compress}[ending](content)
    path = write(f"text{ending}", packed)
    assert list(read_chunks(path, 3)) == [[b"one", b"two", b""], [b"last"]]
    assert list(file_lines(path)) == [b"one", b"two", b"", b"last"]


def test_a_stream_gives_lines_before_it_ends():
    reading, writing = os.pipe()
    chunks = read_chunks(reading, 100)
    os.write(writing, b"one\ntwo\nthr")
    assert next(chunks) == [b"one", b"two"]
    os.write(writing, b"ee")
    threading.Timer(0.3, os.write, (writing, b"\n")).start()  # longer than the pause that ends a chunk
    assert next(chunks) == [b"three"]
    os.write(writing, b"four")
    os.close(writing)
    assert list(chunks) == [[b"four"]]
    os.close(reading)
