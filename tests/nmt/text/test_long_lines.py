"""Where lines are split that are too long."""

import itertools

from nmt.text.long_lines import split_line

PARTS = [b"a", b" ", b".", b'"', "ä".encode(), "。".encode(), b"\xa4"]


def test_even_short_lines_are_split_until_all_pieces_fit():
    """Only a byte fits; no half may be empty, or splitting would never end."""
    for parts in itertools.chain(*(itertools.product(PARTS, repeat=count) for count in (1, 2, 3, 4))):
        line, rounds = b"".join(parts), itertools.count()

        def fit(pieces, line=line, rounds=rounds):
            assert next(rounds) < 20, line
            assert all(pieces), line
            return [len(piece) < 2 for piece in pieces]

        assert split_line(line, fit) == [bytes([byte]) for byte in line]
