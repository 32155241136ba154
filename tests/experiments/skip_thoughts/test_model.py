import keras
import numpy as np
import pytest

from experiments.runs.kinds import CELL_CONDITIONS
from experiments.skip_thoughts.data import END, LONGEST, PADDING, WORDS
from experiments.skip_thoughts.model import build_model, nats_per_word

RMSNORM = next(condition for condition in CELL_CONDITIONS if condition.name == "rmsnorm")


def small():
    return build_model(RMSNORM, 1e-3, 1, units=4, word_units=3)


def triples(count=3):
    generator = np.random.default_rng(0)
    sentences, neighbours = (
        np.full((count, *shape, LONGEST + 1), PADDING, np.int32) for shape in ((), (2,))
    )
    sentences[:, :6] = generator.integers(3, 20, (count, 6))
    neighbours[..., :5] = generator.integers(3, 20, (count, 2, 5))
    neighbours[..., 5] = END
    return [sentences, neighbours]


def test_the_loss_is_the_mean_over_words_without_padding():
    _, neighbours = triples()
    logits = np.random.default_rng(1).normal(size=(*neighbours.shape, WORDS)).astype(np.float32)
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    chosen = np.take_along_axis(log_probabilities, neighbours[..., None], -1)[..., 0]
    assert float(nats_per_word(neighbours, logits)) == pytest.approx(
        -chosen[..., :6].mean(), rel=1e-5
    )


def test_a_word_is_predicted_from_the_sentence_and_the_words_before_it():
    model = small()
    (sentences, neighbours) = triples(1)
    before = np.asarray(model([sentences, neighbours]))
    changed = neighbours.copy()
    changed[0, 0, 3] = 25  # word 3 of the sentence before
    after = np.asarray(model([sentences, changed]))
    np.testing.assert_allclose(before[0, 0, :4], after[0, 0, :4], rtol=1e-5, atol=1e-6)
    assert np.abs(before[0, 0, 4:6] - after[0, 0, 4:6]).max() > 1e-4
    np.testing.assert_allclose(
        before[0, 1], after[0, 1], rtol=1e-5, atol=1e-6
    )  # the sentence after
    other = sentences.copy()
    other[0, 0] = 25
    assert np.abs(before[0, :, 0] - np.asarray(model([other, neighbours]))[0, :, 0]).max() > 1e-5


def test_padding_does_not_change_a_vector():
    model = small()
    sentences, _ = triples()
    read = keras.Model(model.input[0], model.get_layer("thought").output)
    table = model.get_layer("words").embeddings.numpy()
    before = np.asarray(read(sentences))
    assert before.shape == (3, 4)
    table[PADDING] += 5
    model.get_layer("words").embeddings.assign(table)
    np.testing.assert_allclose(before, read(sentences), rtol=1e-5)
