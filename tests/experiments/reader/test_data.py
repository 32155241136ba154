import numpy as np
import pytest

from experiments.reader.data import (
    ENTITIES,
    FIRST_ENTITY,
    GAP,
    PADDING,
    PASSAGE,
    UNKNOWN,
    Part,
    find_clozes,
    find_names,
    most_frequent_wrong,
    read_corpus,
)
from nmt.errors import UserError

TEXT = [f"On that day the {a} saw the {b} again .".split() for a, b in zip("XYZ" * 4, "YZX" * 4, strict=True)]
NAMES = {"X": "Xenia", "Y": "Yorick", "Z": "Zora"}
SENTENCES = [[NAMES.get(word, word) for word in sentence] for sentence in TEXT]
LENGTH = 10  # words of a sentence, also of those of `write_novel`
FIRST = PASSAGE // LENGTH  # the first sentence with enough words before it


def test_names_are_capitalized_within_sentences_and_hardly_ever_lower_case():
    text = [line.split() for line in ("the Rose of Emma Bates", "a rose and Emma", "Then Mr Elton came")] * 6
    assert find_names(text) == {"Emma", "Bates", "Elton"}  # not Then, Mr, Rose
    assert find_names(text[:3]) == set()  # too rare


def test_a_question_has_a_gap_for_a_name_of_the_words_before_it():
    found = list(find_clozes(SENTENCES, np.random.default_rng(0)))
    words = [word for sentence in SENTENCES for word in sentence]
    assert len(found) == len(SENTENCES) - FIRST
    for number, cloze in enumerate(found, FIRST):
        start = number * LENGTH
        original = words[start - PASSAGE : start]
        assert [isinstance(word, int) for word in cloze.passage] == [word in NAMES.values() for word in original]
        numbers = {name: cloze.passage[original.index(name)] for name in NAMES.values()}
        assert len(set(numbers.values())) == 3 and max(numbers.values()) < ENTITIES
        restored = [next((name for name, n in numbers.items() if n == word), word) for word in cloze.question]
        answer = next(name for name, n in numbers.items() if n == cloze.answer)
        assert [answer if word is None else word for word in restored] == SENTENCES[number]
        assert None in cloze.question and cloze.answer not in cloze.question


def test_numbers_of_entities_tell_nothing(novels):
    answers = read_corpus(str(novels)).train.answers
    assert len(np.unique(answers)) > ENTITIES / 2


def test_parts_have_novels_of_their_own_and_come_again(novels):
    found, again = read_corpus(str(novels)), read_corpus(str(novels))
    assert [len(part.answers) for part in found] == [4 * (60 - FIRST), 60 - FIRST, 60 - FIRST]
    for one, other in zip(found.train, again.train, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not {*map(bytes, found.train.passages)} & {*map(bytes, found.test.passages)}


def test_ids_are_padding_unknown_gap_entities_and_words(novels):
    found = read_corpus(str(novels))
    passages, questions, answers = found.valid
    assert questions.min() == PADDING < passages.min()
    assert ((questions == GAP).sum(1) == 1).all() and not (passages == GAP).any()
    assert not (passages == UNKNOWN).any()  # all novels have the same words
    assert (passages[:, -1] >= FIRST_ENTITY + ENTITIES).all()  # the full stop
    assert ((passages == FIRST_ENTITY + answers[:, None]).sum(1) >= 1).all()
    assert not (questions == FIRST_ENTITY + answers[:, None]).any()


def test_the_most_frequent_entity_is_counted():
    passages = np.array([[40, 3, 4, 4, 0], [5, 5, 3, 3, 3], [6, 3, 50, 0, 0]])
    assert most_frequent_wrong(Part(passages, passages, np.array([1, 2, 0]))) == pytest.approx(100 / 3)


def test_too_little_text_is_refused(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text("No name is here. " * 20)
    with pytest.raises(UserError, match="too few names occur in consecutive sentences"):
        read_corpus(str(tmp_path))
