import numpy as np
import pytest

from experiments.reader.data import (
    ENTITIES,
    FIRST_ENTITY,
    GAP,
    PADDING,
    UNKNOWN,
    Part,
    find_clozes,
    find_names,
    most_frequent_wrong,
    read_corpus,
)
from nmt.errors import UserError
from tests.experiments.data_sets.novels import write_novel

TEXT = [f"On that day the {a} saw the {b} again .".split() for a, b in zip("XYZXYZXYZX", "YZXYZXYZXY", strict=True)]
NAMES = {"X": "Xenia", "Y": "Yorick", "Z": "Zora"}
SENTENCES = [[NAMES.get(word, word) for word in sentence] for sentence in TEXT]


def test_names_are_capitalized_within_sentences_and_hardly_ever_lower_case():
    text = [line.split() for line in ("the Rose of Emma Bates", "a rose and Emma", "Then Mr Elton came")] * 6
    assert find_names(text) == {"Emma", "Bates", "Elton"}  # not Then, Mr, Rose
    assert find_names(text[:3]) == set()  # too rare


def test_a_question_has_a_gap_for_a_name_of_the_eight_sentences_before_it():
    found = list(find_clozes(SENTENCES, np.random.default_rng(0)))
    assert len(found) == 2
    for number, cloze in enumerate(found):
        original = [word for sentence in SENTENCES[number : number + 8] for word in sentence]
        assert [isinstance(word, int) for word in cloze.passage] == [word in NAMES.values() for word in original]
        numbers = {name: cloze.passage[original.index(name)] for name in NAMES.values()}
        assert len(set(numbers.values())) == 3 and max(numbers.values()) < ENTITIES
        restored = [next((name for name, n in numbers.items() if n == word), word) for word in cloze.question]
        answer = next(name for name, n in numbers.items() if n == cloze.answer)
        assert [answer if word is None else word for word in restored] == SENTENCES[8 + number]
        assert None in cloze.question and cloze.answer not in cloze.question


def test_numbers_of_entities_tell_nothing(novels):
    answers = read_corpus(str(novels)).train.answers
    assert len(np.unique(answers)) > ENTITIES / 2


def test_parts_have_novels_of_their_own_and_come_again(novels):
    found, again = read_corpus(str(novels)), read_corpus(str(novels))
    assert [len(part.answers) for part in found] == [4 * 52, 52, 52]  # 60 sentences each, 8 before the first
    for one, other in zip(found.train, again.train, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not {*map(bytes, found.train.passages)} & {*map(bytes, found.test.passages)}


def test_ids_are_padding_unknown_gap_entities_and_words(novels):
    found = read_corpus(str(novels))
    passages, questions, answers = found.valid
    assert passages.min() == questions.min() == PADDING
    assert ((questions == GAP).sum(1) == 1).all() and not (passages == GAP).any()
    assert not (passages == UNKNOWN).any()  # all novels have the same words
    lengths = (passages != PADDING).sum(1)
    assert (passages[np.arange(len(lengths)), lengths - 1] > FIRST_ENTITY + ENTITIES).all()  # the full stop
    assert ((passages == FIRST_ENTITY + answers[:, None]).sum(1) >= 1).all()
    assert not (questions == FIRST_ENTITY + answers[:, None]).any()


def test_the_most_frequent_entity_is_counted():
    passages = np.array([[40, 3, 4, 4, 0], [5, 5, 3, 3, 3], [6, 3, 50, 0, 0]])
    assert most_frequent_wrong(Part(passages, passages, np.array([1, 2, 0]))) == pytest.approx(100 / 3)


def test_held_out_novels_have_enough_questions(tmp_path):
    for number in range(20):
        write_novel(tmp_path / f"{number}.txt.gz", number, sentences=20)  # 12 questions
    write_novel(tmp_path / "long.txt.gz", 20, sentences=208)  # 200 questions, of 440
    sizes = [len(part.answers) for part in read_corpus(str(tmp_path))]
    assert sum(sizes) == 440
    assert min(sizes[1:]) >= 0.08 * 440  # one novel alone has fewer


def test_too_little_text_is_refused(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text("No name is here. " * 20)
    with pytest.raises(UserError, match="too few names occur in consecutive sentences"):
        read_corpus(str(tmp_path))
