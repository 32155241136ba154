"""Where lines are split that are too long."""

import itertools

from nmt.text.long_lines import split_line

PARTS = [b"a", b" ", b".", b'"', "ä".encode(), "。".encode(), b"\xa4"]


def test_even_short_lines_are_split_until_all_pieces_fit():
    """Only a byte fits; no half may be empty, or splitting would never end."""
    for parts in itertools.chain(
        *(itertools.product(PARTS, repeat=count) for count in (1, 2, 3, 4))
    ):
        line = b"".join(parts)
        rounds = itertools.count()

        def fits(piece, line=line, rounds=rounds):
            assert next(rounds) < 40, line
            assert piece, line
            return len(piece) < 2

        assert split_line(line, fits) == [bytes([byte]) for byte in line]


def test_a_line_is_split_at_the_end_of_the_sentence_nearest_to_its_middle():
    line = b"One two. " * 3 + b"Three four five. " + b"Six seven! Eight"
    pieces = split_line(line, lambda piece: len(piece) < len(line))
    assert pieces == [b"One two. " * 3, b"Three four five. Six seven! Eight"]
    line = b"a " * 10 + b"b. " + b"c " * 40  # the only end of a sentence is not in the middle half
    assert split_line(line, lambda piece: len(piece) < len(line)) == [line[:51], line[51:]]
