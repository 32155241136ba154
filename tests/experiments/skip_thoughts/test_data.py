import numpy as np
import pytest

from experiments.data_sets.files import most_frequent
from experiments.data_sets.novels import split_sentences
from experiments.skip_thoughts.data import (
    END,
    LONGEST,
    PADDING,
    UNKNOWN,
    WORDS,
    read_corpus,
    to_ids,
)
from nmt.errors import UserError


def test_sentences_have_ends_and_padding():
    found = to_ids([["The", "day", "was"], [], ["day"] * 40], {"the": 3, "day": 4})
    assert found[0].tolist() == [3, 4, UNKNOWN, END] + [PADDING] * (LONGEST - 3)
    assert found[1].tolist() == [END] + [PADDING] * LONGEST
    assert found[2].tolist() == [4] * LONGEST + [END]


def test_neighbours_are_of_the_same_novel_and_short_enough(tmp_path):
    words = [
        "One is here.",
        "Two is here.",
        "Three is here.",
        f"Long {'and ' * 40}done.",
        "Four is.",
        "Five is.",
        "Six is.",
    ]
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text(" ".join(words))
    found = read_corpus(str(tmp_path))
    assert found.train.middles.tolist() == [1, 5, 8, 12, 15, 19]
    assert found.valid.middles.tolist() == [1, 5]
    assert found.train.ids.shape == (21, LONGEST + 1)
    text = [word.lower() for sentence in split_sentences(" ".join(words)) for word in sentence]
    (five,) = to_ids([["Five", "is", "."]], most_frequent(text, WORDS, first=END + 1))
    np.testing.assert_array_equal(found.train.ids[5], five)


def test_frequent_words_come_first(novels):
    ids = read_corpus(str(novels)).train.ids
    counts = np.bincount(ids[ids > END])[END + 1 :]
    assert len(counts) > 1 and (np.diff(counts) <= 0).all()


@pytest.mark.parametrize(
    ("names", "text"), [("abcd", "One. Two."), ("a", "One is here. Two is here. Three is here.")]
)
def test_too_little_text_is_refused(tmp_path, names, text):
    for name in names:
        (tmp_path / f"{name}.txt").write_text(text)
    with pytest.raises(UserError, match=f"no three sentences in a row of up to {LONGEST} words"):
        read_corpus(str(tmp_path))
