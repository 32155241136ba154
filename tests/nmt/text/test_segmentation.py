"""Random segmentations: the usual ones without randomness, as frequent as those of SentencePiece,
always the same.
"""

import collections
import itertools
import math
import subprocess
import sys
from pathlib import Path

import pytest
import sentencepiece

from nmt.text.segmentation import SubwordSampler
from nmt.text.sentencepiece_training import train_sentencepiece

STEMS = ["low", "new", "wid", "slow", "talk", "walk", "jump"]
WORDS = list(map("".join, itertools.product(STEMS, ("", "er", "est", "ing", "ed"))))
LINES = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))]
STRANGE = [
    "walking <x>talked<y>",
    "<x><y>",
    "über zwölf",
    "low  \tnewest ",
    "",
    "漢字 jumped 漢",
    "a\u2581b",
    "<x>low",
]
NEVER = {"bpe": 0.0, "unigram": 1000.0}  # the strength at which nothing is random


@pytest.fixture
def make(tmp_path, write_lines):
    """Trains a vocabulary and returns the content of its file."""

    def make(kind, size=48, **options):
        (tmp_path / "some.model").write_bytes(
            train_sentencepiece(write_lines("sentences", LINES), size, kind=kind, **options)
        )
        return (tmp_path / "some.model").read_bytes()

    return make


def draw(model, lines, alpha, seed=(1,), longest=10**6):
    rows = SubwordSampler(model)([line.encode() for line in lines], alpha, seed, longest)
    return [row.tolist() for row in rows]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize(
    "options", [{}, {"byte_fallback": True, "size": 305}, {"user_symbols": ["<x>", "<y>"]}]
)
def test_without_randomness_lines_are_split_as_usual(make, kind, options):
    model = make(kind, **options)
    usual = sentencepiece.SentencePieceProcessor(model_proto=model)
    lines = [*LINES, *STRANGE]
    assert draw(model, lines, NEVER[kind]) == [usual.encode(line) for line in lines]


@pytest.mark.parametrize(("kind", "alpha"), [("bpe", 0.3), ("unigram", 0.2)])
def test_segmentations_are_as_frequent_as_those_of_sentencepiece(make, kind, alpha):
    """Each of 20 words has 64 draws here; 5 standard deviations are allowed."""
    model = make(kind)
    usual = sentencepiece.SentencePieceProcessor(model_proto=model)
    lines = WORDS[:20]
    own = collections.Counter()
    theirs = collections.Counter()
    for seed in range(200):
        own.update(len(row) for row in draw(model, lines, alpha, (seed,)))
        theirs.update(
            len(row)
            for row in usual.encode(
                lines, enable_sampling=True, alpha=alpha, nbest_size=-1, num_threads=1
            )
        )
    for length in theirs:
        share = theirs[length] / 4000
        assert abs(own[length] / 4000 - share) < 5 * math.sqrt(share * (1 - share) / 1280), length


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_every_segmentation_spells_the_line(make, kind):
    model = make(kind)
    usual = sentencepiece.SentencePieceProcessor(model_proto=model)
    rows = draw(model, LINES, 0.1)
    assert [usual.decode(row) for row in rows] == LINES
    assert rows != [usual.encode(line) for line in LINES]


@pytest.mark.parametrize(("kind", "alpha"), [("bpe", 0.9), ("unigram", 0.1)])
def test_user_symbols_are_never_split(make, kind, alpha):
    """Units could spell this one too. Between symbols, text is still split at random."""
    model = make(kind, user_symbols=["slowest"])
    usual = sentencepiece.SentencePieceProcessor(model_proto=model)
    rows = [
        draw(model, ["walking slowest", "xslowestslowesty"], alpha, (seed,)) for seed in range(100)
    ]
    symbol = usual.piece_to_id("slowest")
    assert {(first.count(symbol), other.count(symbol)) for first, other in rows} == {(1, 2)}
    assert len({tuple(pair[0]) for pair in rows}) > 1


def test_a_segmentation_that_is_too_long_is_the_usual_one(make):
    model = make("bpe")
    usual = sentencepiece.SentencePieceProcessor(model_proto=model)
    limit = len(usual.encode(LINES[0]))
    assert draw(model, [LINES[0]], 0.9, longest=limit) == [usual.encode(LINES[0])]
    assert len(draw(model, [LINES[0]], 0.9)[0]) > limit


PROGRAM = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from nmt.text.segmentation import SubwordSampler
drawing = SubwordSampler(pathlib.Path(sys.argv[2]).read_bytes())
print([row.tolist() for row in drawing([b"slowest walking"] * 9, 0.3, (5, 6), 99)])
assert "tensorflow" not in sys.modules
"""


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_another_process_draws_the_same(make, tmp_path, kind):
    model = make(kind)
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", PROGRAM, str(root), str(tmp_path / "some.model")]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert there.strip() == str(draw(model, ["slowest walking"] * 9, 0.3, (5, 6)))
