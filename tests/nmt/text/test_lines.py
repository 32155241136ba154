"""Lines of files and streams."""

import gzip
import os
import random
import threading

import pytest

from nmt.errors import UserError
from nmt.text.lines import read_blocks, read_chunks, read_lines


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"one\r\ntwo\n\nlast", [b"one", b"two", b"", b"last"]),
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", [b"one", b"\xef\xbb\xbftwo"]),
        (b"\xef\xbb\xbf", [b""]),
        (b"one\r\r\ntwo\r\n\r\nlast\r\r", [b"one", b"two", b"", b"last"]),
        (
            "one \ufefftwo\nthree\ufeff\n".encode(),
            ["one \ufefftwo".encode(), "three\ufeff".encode()],
        ),
        (b"\r", [b""]),
        (b"a\0b\n\0\n", [b"a\0b", b"\0"]),
        ("a\u2028b\x0bc\x0cd\x85e\rf\n".encode(), ["a\u2028b\x0bc\x0cd\x85e\rf".encode()]),
        (b"x" * 10**6 + b"\ny\n", [b"x" * 10**6, b"y"]),
    ],
    ids=[
        "empty",
        "line ends",
        "mark",
        "only a mark",
        "carriage returns",
        "marks later",
        "a carriage return",
        "NUL",
        "other separators",
        "megabyte",
    ],
)
def test_files_and_streams_give_the_same_lines(write, content, lines):
    path = write("text", content)
    assert list(read_lines(path)) == lines
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
        list(read_lines(path, errors="keep"))


def test_text_with_some_strange_bytes_is_read(write):
    latin = "Größe, Süße, Maße und weiterer Text in einer alten Kodierung".encode("latin-1")
    for content in (latin, b"a\0b", b"\xff\xfe a", b"a\tb\f" * 50):
        assert list(read_lines(write("data", content), errors="keep")) == [content]


def test_lines_do_not_depend_on_where_the_text_is_cut(write):
    """Marks, carriage returns and letters of several bytes may be cut anywhere; a piece may be
    empty."""
    text = "\ufeffä\r\r\n\r\n\ufeffb\ufeff\n\rc\r".encode()
    lines = ["ä".encode(), b"", "\ufeffb\ufeff".encode(), b"\rc"]
    for size in range(1, len(text)):
        pieces = [text[max(0, start) : start + size] for start in range(-size, len(text), size)]
        for errors in ("strict", "keep"):
            assert b"".join(read_blocks(pieces, "text", errors=errors)) == b"\n".join(lines) + b"\n"


def test_a_text_of_carriage_returns_is_refused_where_lines_must_be_right(write):
    path = write("text", b"one\rtwo\rthree")
    with pytest.raises(UserError, match="lines with carriage returns"):
        list(read_lines(path))
    assert list(read_lines(path, errors="keep")) == [b"one\rtwo\rthree"]


def test_a_stream_gives_lines_before_it_ends():
    reading, writing = os.pipe()
    chunks = read_chunks(reading, 100)
    os.write(writing, b"one\ntwo\nthr")
    assert next(chunks) == [b"one", b"two"]
    os.write(writing, b"ee")
    threading.Timer(
        0.3, os.write, (writing, b"\n")
    ).start()  # longer than the pause that ends a chunk
    assert next(chunks) == [b"three"]
    os.write(writing, b"four")
    os.close(writing)
    assert list(chunks) == [[b"four"]]
    os.close(reading)
