"""Measures of translation quality."""

import pytest

from nmt.decoding.metrics import bleu, evaluate, exact_match, p_values, read_lines
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
    assert exact_match(["a", "b", "c", "d"], [["a", "b", "c", "x"]]) == 75.0
    assert exact_match(["a", "b"], [["a", "x"], ["x", "b"]]) == 100.0


LINES = [f"the dog number {i} sees a cat" for i in range(40)]
WORSE = [line.replace("dog", "cow").replace("sees a", "has seen") for line in LINES]


def test_a_second_reference_counts():
    assert evaluate(WORSE, [LINES])["BLEU"][0] < 40
    for name, best in {"BLEU": 100, "chrF": 100, "TER": 0}.items():
        score, signature = evaluate(WORSE, [LINES, WORSE])[name]
        assert score == pytest.approx(best)
        assert "nrefs:2" in signature


def test_a_difference_between_systems_is_significant_if_every_line_differs():
    assert all(p < 0.01 for p in p_values(LINES, WORSE, [LINES]).values())
    halves = [LINES[:20] + WORSE[20:], WORSE[:20] + LINES[20:]]
    assert all(p > 0.3 for p in p_values(*halves, [LINES]).values())
    assert p_values(WORSE, WORSE, [LINES]) == {"BLEU": 1.0, "chrF": 1.0, "TER": 1.0}


def test_texts_of_different_lengths_are_refused():
    with pytest.raises(UserError, match="the texts have 2, 3 lines; give texts of the same number of lines"):
        evaluate(LINES[:2], [LINES[:3]])
