"""Batches of randomly split lines: what decides them, and how they fit their width."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from nmt.text.parallel_text import ParallelText
from nmt.text.sentencepiece_training import train_sentencepiece
from nmt.text.vocabulary import load_vocabulary
from tests.nmt.text.data import take, training_data

STEMS = ("low", "new", "wid", "slow", "talk", "walk", "jump")
WORDS = list(map("".join, itertools.product(STEMS, ("er", "est", "ing", "ed"))))


SENTENCES = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))]


@pytest.mark.parametrize(("kind", "alpha"), [("bpe", 0.1), ("unigram", 0.02)])
def test_random_segmentations_depend_on_seed_and_batch_alone(write_lines, tmp_path, kind, alpha):
    """They differ from epoch to epoch, fit their batch and spell the same text."""
    (tmp_path / "some.model").write_bytes(
        train_sentencepiece(write_lines("sentences", SENTENCES), 40, kind=kind)
    )
    vocabulary = load_vocabulary(tmp_path / "some.model")
    path = write_lines("one", SENTENCES[:1])
    text = ParallelText(path, path)

    def batches(first, count, seed=1, subword_sampling=alpha):
        options = {
            "batch_size": 1,
            "maxlen": 300,
            "seed": seed,
            "subword_sampling": subword_sampling,
        }
        return [
            batch[0] for batch in take(training_data(text, vocabulary, **options), count, first)
        ]

    found = batches(0, 4)
    later = batches(2, 2)
    other = batches(0, 4, seed=2)
    for here, again in zip(found[2:], later, strict=True):
        np.testing.assert_array_equal(here, again)
    for ids in found:
        (spelled,) = vocabulary.decode(tf.RaggedTensor.from_tensor(ids, padding=0)).numpy()
        assert spelled.decode() == SENTENCES[0]
    # Those that did not fit are split as usual.
    assert len({ids.tobytes() for ids in [*found, *other]}) >= 6
    assert len({ids.tobytes() for ids in batches(0, 4, subword_sampling=0.0)}) == 1


def test_prefixes_count_in_the_width_of_random_segmentations(write_lines, tmp_path):
    """Else a segmentation that is longer than the usual one would not fit behind its prefix."""
    (tmp_path / "some.model").write_bytes(
        train_sentencepiece(write_lines("sentences", SENTENCES), 60)
    )
    vocabulary = load_vocabulary(tmp_path / "some.model")
    path = write_lines("one", [" ".join(WORDS[:6])])
    options = {"batch_size": 1, "maxlen": 300, "seed": 1, "subword_sampling": 0.3}
    prefix = " ".join(WORDS[6:])
    data = training_data(ParallelText(path, path), vocabulary, target_prefixes=[prefix], **options)
    begin = vocabulary.encode([prefix]).to_list()[0]
    targets = [target[0].tolist() for _, _, target, _ in take(data, 20)]
    assert all(target[: len(begin)] == begin for target in targets)
    assert len(set(map(tuple, targets))) > 15


def test_randomly_split_targets_begin_with_the_prefix_as_it_is_usually_split(write_lines, tmp_path):
    (tmp_path / "some.model").write_bytes(
        train_sentencepiece(write_lines("sentences", SENTENCES), 40, user_symbols=["<bt>"])
    )
    vocabulary = load_vocabulary(tmp_path / "some.model")
    path = write_lines("one", SENTENCES[:1])
    options = {
        "batch_size": 1,
        "maxlen": 150,
        "seed": 1,
        "subword_sampling": 0.2,
        "target_prefixes": ["<bt>"],
    }
    prefix = vocabulary.encode(["<bt>"]).to_list()[0]
    batches = take(training_data(ParallelText(path, path), vocabulary, **options), 5)
    for source, _, target, _ in batches:
        assert target[0, : len(prefix)].tolist() == prefix
        for ids, begin in ((source[0], 0), (target[0], len(prefix))):
            spelled = vocabulary.decode(
                tf.RaggedTensor.from_tensor(ids[np.newaxis, begin:], padding=0)
            ).numpy()[0]
            assert spelled.decode() == SENTENCES[0]
