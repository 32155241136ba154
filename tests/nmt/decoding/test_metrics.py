"""Measures of translation quality."""

import pytest

from nmt.decoding.metrics import Evaluation, cannot_split, exact_match, read_lines
from nmt.errors import UserError


def bleu(translations, references):
    return Evaluation([references]).scores(translations)["BLEU"]


def test_bleu_of_the_reference_is_100_and_of_other_words_0():
    lines = ["ein Mann fährt mit dem Rad .", "zwei Hunde spielen im Schnee ."]
    assert bleu(lines, lines)[0] == pytest.approx(100)
    assert bleu(["a b c d e"] * 2, lines)[0] == 0


def test_bleu_is_cased_and_says_how_it_was_made():
    score, signature = bleu(["Ein mann fährt mit dem Rad."], ["Ein Mann fährt mit dem Rad."])
    # Matches 6 of 7 words, 4 of 6 pairs, 3 of 5 triples and 2 of 4 quadruples, at equal length.
    assert score == pytest.approx(100 * (6 / 7 * 4 / 6 * 3 / 5 * 2 / 4) ** 0.25)
    assert "case:mixed" in signature
    assert "tok:13a" in signature


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
    assert Evaluation([LINES]).scores(WORSE)["BLEU"][0] < 40
    for name, best in {"BLEU": 100, "chrF": 100, "TER": 0}.items():
        score, signature = Evaluation([LINES, WORSE]).scores(WORSE)[name]
        assert score == pytest.approx(best)
        assert "nrefs:2" in signature


def test_a_difference_between_systems_is_significant_if_every_line_differs():
    p_values = Evaluation([LINES]).p_values
    assert all(p < 0.01 for p in p_values(LINES, WORSE).values())
    halves = [LINES[:20] + WORSE[20:], WORSE[:20] + LINES[20:]]
    assert all(p > 0.3 for p in p_values(*halves).values())
    assert p_values(WORSE, WORSE) == {"BLEU": 1.0, "chrF": 1.0, "TER": 1.0}
    assert p_values(WORSE, [line.replace(" ", "  ") for line in WORSE]) == {"BLEU": 1.0, "chrF": 1.0, "TER": 1.0}


def test_texts_of_different_lengths_are_refused():
    with pytest.raises(UserError, match="the texts have 2, 3 lines; give texts of the same number of lines"):
        Evaluation([LINES[:3]]).scores(LINES[:2])
    with pytest.raises(UserError, match="the texts are empty; give texts with a sentence on each line"):
        Evaluation([[]]).scores([])


JAPANESE, CHINESE, THAI = ["これはペンです", "ネコが好きです"], ["这是一支钢笔", "我喜欢猫"], ["นี่คือปากกา"]


@pytest.mark.parametrize(
    ("tokenizer", "lines", "unsplit"),
    [
        ("13a", JAPANESE, True),
        ("13a", CHINESE, True),
        ("13a", LINES, False),
        ("13a", ["これ は ペン です"], False),
        ("zh", CHINESE, False),
        ("zh", JAPANESE, True),
        ("zh", THAI, True),
        ("char", THAI, False),
    ],
)
def test_scripts_without_spaces_need_their_own_tokenizer(tokenizer, lines, unsplit):
    assert cannot_split(tokenizer, lines) == unsplit
    if unsplit:  # one wrong character makes the whole sentence wrong
        wrong = [line[:-1] + "x" for line in lines]
        assert Evaluation([lines], tokenizer).scores(wrong)["BLEU"][0] == 0
