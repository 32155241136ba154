"""Measures of translation quality."""

import pytest

from nmt.decoding.metrics import bleu, exact_match, read_lines
from nmt.errors import UserError


def test_bleu_of_the_reference_is_100_and_of_other_words_0():
    lines = ["ein Mann fährt mit dem Rad .", "zwei Hunde spielen im Schnee ."]
    assert bleu(lines, lines).score == pytest.approx(100)
    assert bleu(["a b c d e"] * 2, lines).score == 0


def test_bleu_is_cased_and_says_how_it_was_made():
    score, signature = bleu(["Ein mann fährt mit dem Rad."], ["Ein Mann fährt mit dem Rad."])
    # Matches 6 of 7 words, 4 of 6 pairs, 3 of 5 triples and 2 of 4 quadruples, at equal length.
    assert score == pytest.approx(100 * (6 / 7 * 4 / 6 * 3 / 5 * 2 / 4) ** 0.25)
    assert "case:mixed" in signature
    assert "tok:13a" in signature


@pytest.mark.parametrize(("translations", "references"), [(2, 3), (3, 2), (0, 0)])
def test_bleu_takes_one_reference_for_each(translations, references):
    with pytest.raises(UserError, match=f"{translations} translations and {references} references; give one reference"):
        bleu(["a b c d"] * translations, ["a b c d"] * references)


def test_only_a_line_feed_ends_a_line(tmp_path):
    """U+2028 and a carriage return within a line separate lines for Python, but not in a text file."""
    (tmp_path / "text").write_bytes("\ufeffa\u2028b\rc\r\n\nd".encode())
    assert read_lines(tmp_path / "text") == ["a\u2028b\rc", "", "d"]


def test_exact_match_counts_equal_lines():
    assert exact_match(["a", "b", "c", "d"], ["a", "b", "c", "x"]) == 75.0
