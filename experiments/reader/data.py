"""Makes cloze questions of novels: a name in a shortened sentence is to be found."""

import collections
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nmt.errors import UserError

from ..data_sets.arrays import Parts
from ..data_sets.files import most_frequent
from ..data_sets.novels import Sentence, hold_out, read_novels

WORDS = 5000  # ids: of padding, any other word, the gap, the entities, and the most frequent words
PADDING, UNKNOWN, GAP, FIRST_ENTITY = range(4)
ENTITIES = 10  # numbers of the names of an example
PASSAGE = 50  # words
SENTENCE = (6, 30)  # words of a sentence that becomes a question
KEPT = 0.7  # probability of each of its words to be in the question

# The novels for validation hold at least this share of the questions; so do those for the test.
_HELD_OUT = 0.08
_MOST = (
    1000  # questions for validation, and as many for the test; others of their novels are left out
)
_SEED = 0  # of passages, questions and numbers, and of the questions that are held out
_TITLES = {
    "I",
    "O",
    "Mr",
    "Mrs",
    "Miss",
    "Dr",
    "Sir",
    "Lord",
    "Lady",
    "St",
    "God",
    "Madam",
    "Master",
    "Captain",
}


class Part(NamedTuple):
    passages: np.ndarray  # ids of words `[examples, PASSAGE]`
    questions: np.ndarray  # ids of words `[examples, longest question]`, padded with 0
    answers: np.ndarray  # number of the entity that belongs into the gap, `[examples]`


class Cloze(NamedTuple):
    """A question in words. The gap is `None`, and a name is the number of its entity."""

    passage: list[str | int | None]
    question: list[str | int | None]
    answer: int


def read_corpus(data: str) -> Parts:
    """Reads a folder of novels; see `read_novels`. The same questions come every time.

    No novel is in two of the parts.

    Raises:
        UserError: A part has no question.
    """
    generator = np.random.default_rng(_SEED)
    by_novel = {
        name: list(find_clozes(novel, generator)) for name, novel in read_novels(data).items()
    }
    parts = [list(itertools.chain(*part)) for part in hold_out(by_novel, _HELD_OUT, parts=2)]
    if not all(parts):
        raise UserError(
            f"{data}: too few passages have several names; give more and longer novels in English"
        )
    train, *held_out = parts
    parts = [train]
    for part in held_out:
        chosen = generator.choice(len(part), min(_MOST, len(part)), replace=False)
        parts.append([part[number] for number in chosen])
    passages = itertools.chain.from_iterable(each.passage for each in train)
    text = (word.lower() for word in passages if isinstance(word, str))
    words = most_frequent(text, WORDS - FIRST_ENTITY - ENTITIES, first=FIRST_ENTITY + ENTITIES)
    return Parts(*(_encode(part, words) for part in parts))


def find_clozes(sentences: list[Sentence], generator: np.random.Generator) -> Iterator[Cloze]:
    """Yields questions on passages of the novel that have several names.

    There is at most one for each sentence. The question is a sentence of the passage without some
    of its words, and with a gap in the place of a name.

    Args:
        sentences: A novel.
        generator: Chooses the passage, the words and the name, and numbers the entities.
    """
    names = find_names(sentences)
    words = list(itertools.chain(*sentences))
    starts = itertools.accumulate(map(len, sentences), initial=0)
    for sentence, start in zip(sentences, starts, strict=False):
        first = max(start + len(sentence) - PASSAGE, 0)  # starts of passages
        last = min(start, len(words) - PASSAGE)
        if first > last or not SENTENCE[0] <= len(sentence) <= SENTENCE[1]:
            continue
        begin = generator.integers(first, last, endpoint=True)
        passage = words[begin : begin + PASSAGE]
        question = [word for word in sentence if generator.random() < KEPT]
        entities = sorted(names.intersection(passage))
        answers = [name for name in entities if name in question]
        if answers and 1 < len(entities) <= ENTITIES:
            numbers = dict(zip(entities, generator.permutation(ENTITIES).tolist(), strict=False))
            answer = answers[generator.integers(len(answers))]
            yield Cloze(
                [numbers.get(word, word) for word in passage],
                [None if word == answer else numbers.get(word, word) for word in question],
                numbers[answer],
            )


def find_names(sentences: list[Sentence], least: int = 5) -> set[str]:
    """Returns the words that are nearly always capitalized.

    Some of their uses are in the middle of a sentence.
    """
    middle = collections.Counter()
    lower = collections.Counter()
    for sentence in sentences:
        for before, word in itertools.pairwise(sentence):
            if word.islower():
                lower[word] += 1
            elif word.istitle() and (before.isalpha() or before == ","):
                middle[word] += 1
    return {
        word
        for word, count in middle.items()
        if count >= max(least, 20 * lower[word.lower()]) and word not in _TITLES
    }


def most_frequent_wrong(part: Part) -> float:
    """Returns the error, in percent, of the answer that the passage names most often.

    Of equally frequent ones, it is the entity with the lowest number.
    """
    entities = FIRST_ENTITY + np.arange(ENTITIES)
    ids = part.passages[:, :, None] == entities  # [examples, words, entities]
    return 100 * float(np.mean(ids.sum(1).argmax(-1) != part.answers))


def _encode(clozes: list[Cloze], words: dict[str, int]) -> Part:
    def number(word: str | int | None) -> int:
        if word is None:
            return GAP
        if isinstance(word, int):
            return FIRST_ENTITY + word
        return words.get(word.lower(), UNKNOWN)

    def ids(text: list[str | int | None]) -> list[int]:
        return list(map(number, text))

    questions = np.full((len(clozes), SENTENCE[1]), PADDING, np.int32)
    for row, each in zip(questions, clozes, strict=True):
        row[: len(each.question)] = ids(each.question)
    passages = np.array([ids(each.passage) for each in clozes], np.int32).reshape(-1, PASSAGE)
    return Part(passages, questions, np.array([each.answer for each in clozes], np.int32))
