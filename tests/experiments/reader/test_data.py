import itertools

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

TEXT = [
    f"On that day the {a} saw the {b} again .".split()
    for a, b in zip("XYZ" * 4, "YZX" * 4, strict=True)
]
NAMES = {"X": "Xenia", "Y": "Yorick", "Z": "Zora"}
SENTENCES = []
for number, sentence in enumerate(TEXT):
    SENTENCES.append([f"word{number}", *(NAMES.get(word, word) for word in sentence[1:])])


def test_names_are_capitalized_within_sentences_and_hardly_ever_lower_case():
    text = [
        line.split() for line in ("the Rose of Emma Bates", "a rose and Emma", "Then Mr Elton came")
    ] * 6
    assert find_names(text) == {"Emma", "Bates", "Elton"}  # not Then, Mr, Rose
    assert find_names(text[:3]) == set()  # too rare


def windows(words, size):
    return [words[start : start + size] for start in range(len(words) - size + 1)]


def is_part(short, long):
    """Returns whether `short` is `long` without some of its entries."""
    rest = iter(long)
    return all(word in rest for word in short)


def test_a_question_is_a_shortened_sentence_of_its_passage_with_a_gap_for_a_name():
    found = [
        cloze for seed in range(20) for cloze in find_clozes(SENTENCES, np.random.default_rng(seed))
    ]
    assert len(found) > 20 * len(SENTENCES) / 2
    words = [word for sentence in SENTENCES for word in sentence]
    passages = windows(words, PASSAGE)
    for cloze in found:
        assert len(set(map(str, cloze.passage)) - set(words)) == 3  # the numbers of the names
        numbers = {word for word in cloze.passage if isinstance(word, int)}
        assert max(numbers) < ENTITIES and cloze.answer in numbers
        assert None in cloze.question and cloze.answer not in cloze.question
        question = [cloze.answer if word is None else word for word in cloze.question]
        for order in itertools.permutations(NAMES.values()):
            names = dict(zip(numbers, order, strict=True))
            passage = [names.get(word, word) for word in cloze.passage]
            filled = [names.get(word, word) for word in question]
            whole = [
                sentence for sentence in SENTENCES if sentence in windows(passage, len(sentence))
            ]
            if passage in passages and any(is_part(filled, sentence) for sentence in whole):
                break
        else:
            pytest.fail(f"no names make this a passage with one of its sentences: {cloze}")


def test_a_question_has_seven_of_ten_words_of_its_sentence_and_needs_a_name():
    found = [len(list(find_clozes(SENTENCES, np.random.default_rng(seed)))) for seed in range(100)]
    assert np.mean(found) == pytest.approx(
        len(SENTENCES) * (1 - 0.3**2), abs=0.5
    )  # two names in each sentence
    lengths = [
        len(cloze.question) for cloze in find_clozes(SENTENCES * 50, np.random.default_rng(0))
    ]
    expected = 7 - 0.3**2 * 8 * 0.7  # all ten words, less the questions without a name
    assert np.mean(lengths) == pytest.approx(expected / (1 - 0.3**2), abs=0.2)


def test_numbers_of_entities_tell_nothing(novels):
    assert len(np.unique(read_corpus(str(novels)).train.answers)) > ENTITIES / 2


def test_parts_have_novels_of_their_own_and_come_again(novels):
    found = read_corpus(str(novels))
    again = read_corpus(str(novels))
    train, valid, test = (len(part.answers) for part in found)
    assert (
        train > 3 * max(valid, test) and 45 < valid < 60 and 45 < test < 60
    )  # of 60 sentences a novel
    for one, other in zip(found.train, again.train, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not {*map(bytes, found.train.passages)} & {*map(bytes, found.test.passages)}


def test_ids_are_padding_unknown_gap_entities_and_words(novels):
    passages, questions, answers = read_corpus(str(novels)).valid
    assert questions.min() == PADDING < passages.min()
    assert ((questions == GAP).sum(1) == 1).all() and not (passages == GAP).any()
    assert not (passages == UNKNOWN).any()  # all novels have the same words
    assert ((passages == FIRST_ENTITY + answers[:, None]).sum(1) >= 1).all()
    assert not (questions == FIRST_ENTITY + answers[:, None]).any()


def test_the_most_frequent_entity_is_counted():
    passages = np.array([[40, 3, 4, 4, 0], [5, 5, 3, 3, 3], [6, 3, 50, 0, 0]])
    assert most_frequent_wrong(Part(passages, passages, np.array([1, 2, 0]))) == pytest.approx(
        100 / 3
    )


def test_too_little_text_is_refused(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text("No name is here. " * 20)
    with pytest.raises(UserError, match="too few passages have several names"):
        read_corpus(str(tmp_path))
