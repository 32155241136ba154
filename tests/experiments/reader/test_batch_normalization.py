import itertools

import keras
import numpy as np
import pytest

from experiments.reader.model import GAIN, BatchNormLSTMCell, StepNormalization

NORMS = ("input_norm", "state_norm", "carry_norm")


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def words_of(lengths, time):
    """Returns 1 where there is a word and 0 at padding, `[batch, time, 1]`."""
    return (np.arange(time) < np.array(lengths)[:, None]).astype(np.float32)[..., None]


def network(time=6):
    """A bidirectional LSTM over vectors of 3 units, with a mask."""
    vectors = keras.Input((time, 3))
    seen = keras.Input((time, 1))
    joined = keras.ops.concatenate([vectors, seen], -1)
    lstm = keras.layers.RNN(BatchNormLSTMCell(4), return_sequences=True)
    states = keras.layers.Bidirectional(lstm, name="lstm")(joined, mask=seen[..., 0] > 0)
    return keras.Model([vectors, seen], states)


def averages(norm):
    return [np.asarray(value) / np.asarray(norm.weight) for value in (norm.mean, norm.variance)]


def test_inference_uses_averages_weighted_by_words_and_decaying():
    norm = StepNormalization(epsilon=1e-3, momentum=0.9)
    steps = [
        (random(4, 2, seed=seed), words_of([count] + [1] * 3, 1)[:, 0])
        for seed, count in enumerate((1, 0, 1))
    ]
    untrained = norm(*steps[0])
    np.testing.assert_allclose(untrained, GAIN * steps[0][0] / np.sqrt(1 + 1e-3), rtol=1e-5)
    weight = 0
    mean = 0
    variance = 0
    for inputs, seen in steps:
        norm(inputs, seen, training=True)
        words = inputs[seen[:, 0] > 0]
        rate = 0.1 * seen.mean()
        weight, mean, variance = (
            old + rate * (new - old)
            for old, new in ((weight, 1), (mean, words.mean(0)), (variance, words.var(0)))
        )
    inputs, seen = steps[0]
    expected = GAIN * (inputs - mean / weight) / np.sqrt(variance / weight + 1e-3)
    np.testing.assert_allclose(norm(inputs, seen), expected, rtol=1e-4, atol=1e-5)


def test_a_time_step_of_padding_changes_no_average():
    norm = StepNormalization()
    norm(random(4, 2), np.ones((4, 1), np.float32), training=True)
    before = [*norm.get_weights()]
    padding = np.zeros((4, 1), np.float32)
    assert np.isfinite(norm(random(4, 2, seed=1), padding, training=True)).all()
    for was, now in zip(before, norm.get_weights(), strict=True):
        np.testing.assert_array_equal(was, now)


def test_one_step_of_training_follows_the_equations():
    cell = BatchNormLSTMCell(4)
    x = random(6, 3)
    h = random(6, 4, seed=1)
    c = random(6, 4, seed=2)
    seen = words_of([1, 1, 0, 1, 1, 1], 1)[:, 0]
    output, states = cell(np.concatenate([x, seen], -1), [h, c], training=True)

    def normalized(a):
        words = a[seen[:, 0] > 0]
        return GAIN * (a - words.mean(0)) / np.sqrt(words.var(0) + 1e-5)

    def sigmoid(a):
        return 1 / (1 + np.exp(-a))

    kernels = [np.asarray(kernel, np.float64) for kernel in (cell.kernel, cell.recurrent_kernel)]
    sums = normalized(x @ kernels[0]) + normalized(h @ kernels[1]) + cell.bias.numpy()
    i, f, proposal, o = np.split(sums, 4, -1)
    carry = sigmoid(f) * c + sigmoid(i) * np.tanh(proposal)
    np.testing.assert_allclose(states[1], carry, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        output, sigmoid(o) * np.tanh(normalized(carry)), rtol=1e-4, atol=1e-5
    )


def test_with_trivial_statistics_it_is_an_lstm():
    lstm = keras.layers.LSTM(4, return_sequences=True)
    mine = keras.layers.RNN(BatchNormLSTMCell(4), return_sequences=True)
    inputs = random(2, 5, 3)
    seen = words_of([5, 3], 5)
    mine(np.concatenate([inputs, seen], -1))
    expected = np.asarray(lstm(inputs, mask=seen[..., 0] > 0))
    for name in ("kernel", "recurrent_kernel", "bias"):
        getattr(mine.cell, name).assign(getattr(lstm.cell, name))
    for name in NORMS:
        norm = getattr(mine.cell, name)
        norm.weight.assign(1.0)
        norm.variance.assign(np.full(norm.variance.shape, 1 - norm.epsilon))
        norm.gamma.assign(np.ones(norm.gamma.shape))
    found = mine(np.concatenate([inputs, seen], -1), mask=seen[..., 0] > 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_padding_changes_neither_states_nor_averages():
    seen = words_of([6, 4, 2], 6)
    vectors = random(3, 6, 3)
    found = []
    for padding in (0, 100):
        keras.utils.set_random_seed(1)
        model = network()
        states = np.asarray(model([np.where(seen > 0, vectors, padding), seen], training=True))
        cells = [
            getattr(model.get_layer("lstm"), f"{way}_layer").cell for way in ("forward", "backward")
        ]
        values = [states * seen]
        for cell, name in itertools.product(cells, NORMS):
            values += averages(getattr(cell, name))
        found.append(values)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


LENGTHS = (6, 5, 3, 1)


def test_all_steps_count_for_the_averages_and_those_of_padding_less():
    model = network()
    for _ in range(2):
        model([random(4, 6, 3), words_of(LENGTHS, 6)], training=True)
    norm = model.get_layer("lstm").backward_layer.cell.carry_norm
    words = 2 * sum(LENGTHS) / 4  # of a sentence; Keras makes the first step once more
    assert 0.99 * words < float(norm.weight.numpy()) / 0.001 < 2 * 6


@pytest.mark.slow
def test_compiled_training_moves_the_averages_as_plain_training_does():
    found = []
    for compiled in (False, True):
        keras.utils.set_random_seed(1)
        model = network()
        model.compile("sgd", "mse", jit_compile=compiled)
        model.fit([random(4, 6, 3), words_of(LENGTHS, 6)], random(4, 6, 8), epochs=2, verbose=0)
        found.append(model.get_weights())
    for plain, compiled in zip(*found, strict=True):
        np.testing.assert_allclose(plain, compiled, rtol=1e-4, atol=1e-7)
