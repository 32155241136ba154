"""Measures of translation quality."""

import pytest

from nmt.training.validation import cannot_split, validation_metrics


def bleu(translations, references, tokenizer="13a"):
    metric, _ = validation_metrics(tokenizer)
    return metric.corpus_score(translations, [references]).score


def test_bleu_is_cased_and_not_smoothed():
    """Matches 6 of 7 words, 4 of 6 pairs, 3 of 5 triples and 2 of 4 quadruples, at equal length."""
    found = bleu(["Ein mann fährt mit dem Rad."], ["Ein Mann fährt mit dem Rad."])
    assert found == pytest.approx(100 * (6 / 7 * 4 / 6 * 3 / 5 * 2 / 4) ** 0.25)
    assert bleu(["a b c x"], ["a b c y"]) == 0


LINES = [f"the dog number {i} sees a cat" for i in range(40)]


JAPANESE = ["これはペンです", "ネコが好きです"]
CHINESE = ["这是一支钢笔", "我喜欢猫"]
THAI = ["นี่คือปากกา"]


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
        assert bleu([line[:-1] + "x" for line in lines], lines, tokenizer) == 0
