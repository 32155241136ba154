"""The recurrent cells and layers: against the published equations, against Keras, and in all that layers are asked."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import RMSNormGRU, RMSNormGRUCell, RMSNormLSTM, RMSNormLSTMCell, RMSNormSimpleRNNCell
from tests import reference, transcription
from tests.cases import assert_close

UNITS, INPUTS, TIME, BATCH = 4, 3, 5, 2

CELLS = {
    "simple": RMSNormSimpleRNNCell,
    "gru": RMSNormGRUCell,
    "gru-reset-before": functools.partial(RMSNormGRUCell, reset_after=False),
    "lstm": RMSNormLSTMCell,
    "lstm-normalized-carry": functools.partial(RMSNormLSTMCell, normalize_carry=True),
}
VARIANTS = {
    "rms": {},
    "partial": {"partial": 0.5},
    "layer": {"normalization": "layer"},
    "none": {"normalization": None},
    "bias-inside": {"normalize_bias": True},
    "no-bias": {"use_bias": False},
}
LAYERS = {"gru": (RMSNormGRU, RMSNormGRUCell), "lstm": (RMSNormLSTM, RMSNormLSTMCell)}

every_cell = pytest.mark.parametrize("make", CELLS.values(), ids=CELLS)
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
every_layer = pytest.mark.parametrize(("layer_class", "cell_class"), LAYERS.values(), ids=LAYERS)


def draw(*shape, seed=0, dtype="float64"):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def with_drawn_weights(layer):
    """Builds a layer or cell and gives it weights among which no two are alike."""
    is_layer = isinstance(layer, keras.layers.RNN)
    layer.build((None, TIME, INPUTS) if is_layer else (None, INPUTS))
    layer.set_weights([draw(*w.shape, seed=i) for i, w in enumerate(layer.weights)])
    return layer


def over_time(cell, **options):
    return keras.layers.RNN(cell, return_sequences=True, dtype=cell.dtype_policy, **options)


@every_variant
@every_cell
def test_equations(make, variant):
    cell = with_drawn_weights(make(UNITS, dtype="float64", **variant))
    x = draw(BATCH, TIME, INPUTS, seed=9)
    assert_close(over_time(cell)(x), transcription.outputs(cell, x), "float64", factor=20)


@every_variant
@every_cell
def test_gradients(make, variant):
    cell = with_drawn_weights(make(UNITS, dtype="float64", **variant))
    layer = over_time(cell)
    x, dy = draw(1, 3, INPUTS, seed=9), draw(1, 3, UNITS, seed=10)
    with tf.GradientTape() as tape:
        x_tensor = tf.constant(x)
        tape.watch(x_tensor)
        y = layer(x_tensor)
    sources = [x, *(w.numpy() for w in cell.weights)]
    actual = tape.gradient(y, [x_tensor, *cell.trainable_weights], dy)
    for i, gradient in enumerate(actual):

        def loss(source, i=i):
            given, *weights = (*sources[:i], source, *sources[i + 1 :])
            return np.sum(dy * transcription.outputs(cell, given, weights))

        np.testing.assert_allclose(gradient, reference.numerical_gradient(loss, sources[i]), rtol=1e-6, atol=1e-8)


def test_the_lstm_of_ba_et_al_with_all_its_gains_and_offsets():
    u, w = draw(UNITS, 4 * UNITS, seed=1), draw(INPUTS, 4 * UNITS, seed=2)
    b, alpha_1, beta_1, alpha_2, beta_2 = draw(5, 4 * UNITS, seed=3)
    alpha_3, beta_3 = draw(2, UNITS, seed=4)
    norms = [
        functools.partial(reference.layer_norm, scale=alpha, offset=beta)
        for alpha, beta in ((alpha_1, beta_1), (alpha_2, beta_2), (alpha_3, beta_3))
    ]
    step = functools.partial(reference.lstm_step, w=w, u=u, b=b, norms=norms)
    x, zeros = draw(BATCH, TIME, INPUTS, seed=9), np.zeros((BATCH, UNITS))

    cell = RMSNormLSTMCell(UNITS, normalization="layer", dtype="float64")
    cell.build((None, INPUTS))
    # One bias stands for the sum of the three terms that eq. 20 adds.
    cell.set_weights([w, u, b + beta_1 + beta_2, alpha_2, alpha_1, alpha_3, beta_3])
    assert_close(over_time(cell)(x), reference.over_time(step, x, zeros, zeros)[0], "float64", factor=20)


def reference_gru(x, w_gates, u_gates, b_gates, w, u, b, s1, s2, s3, s4):
    """Steps through the GRU in the reference code of the RMSNorm paper: gates in the order r, u; biases inside."""

    def rln(a, gain):
        return reference.rms_norm(a, gain, epsilon=1e-5)

    h = np.zeros((len(x), u.shape[0]))
    for x_t in np.moveaxis(x, 1, 0):
        gates = rln(h @ u_gates, s3) + rln(x_t @ w_gates + b_gates, s1)
        reset, update = np.split(reference.sigmoid(gates), 2, axis=-1)
        proposal = np.tanh(rln(h @ u, s4) * reset + rln(x_t @ w + b, s2))
        h = update * h + (1 - update) * proposal
    return h


def test_the_gru_of_the_reference_code():
    shapes = [(INPUTS, 2 * UNITS), (UNITS, 2 * UNITS), (2 * UNITS,), (INPUTS, UNITS), (UNITS, UNITS), (UNITS,)]
    shapes += [(2 * UNITS,), (UNITS,), (2 * UNITS,), (UNITS,)]
    weights = [draw(*shape, seed=i) for i, shape in enumerate(shapes)]
    x = draw(BATCH, TIME, INPUTS, seed=20)
    w_gates, u_gates, b_gates, w, u, b, s1, s2, s3, s4 = weights

    def update_first(block):
        return np.concatenate(np.split(block, 2, axis=-1)[::-1], axis=-1)

    gru = RMSNormGRU(UNITS, normalize_bias=True, epsilon=1e-5, dtype="float64")
    gru.build(x.shape)
    bias = np.concatenate([update_first(b_gates), b])
    gru.set_weights(
        [
            np.concatenate([update_first(w_gates), w], -1),
            np.concatenate([update_first(u_gates), u], -1),
            np.stack([bias, np.zeros_like(bias)]),
            *(update_first(s1), s2, update_first(s3), s4),
        ]
    )
    assert_close(gru(x), reference_gru(x, *weights), "float64", factor=20)


def reference_lstm(x, w, u, b, s1, s2, s3):
    """Steps through the LSTM in the reference code: gates in the order i, f, o, c; a bias added inside and outside."""

    def rln(a, gain):
        return reference.rms_norm(a, gain, epsilon=1e-5)

    h = c = np.zeros((len(x), u.shape[0]))
    for x_t in np.moveaxis(x, 1, 0):
        i, f, o, g = np.split(rln(h @ u, s2) + rln(x_t @ w + b, s1) + b, 4, axis=-1)
        c = reference.sigmoid(f) * c + reference.sigmoid(i) * np.tanh(g)
        h = reference.sigmoid(o) * np.tanh(rln(c, s3))
    return h


def test_the_lstm_of_the_reference_code():
    shapes = [(INPUTS, 4 * UNITS), (UNITS, 4 * UNITS), (4 * UNITS,), (4 * UNITS,), (4 * UNITS,), (UNITS,)]
    weights = [draw(*shape, seed=i) for i, shape in enumerate(shapes)]
    x = draw(BATCH, TIME, INPUTS, seed=20)

    def output_last(block):
        i, f, o, g = np.split(block, 4, axis=-1)
        return np.concatenate([i, f, g, o], axis=-1)

    w, u, b, s1, s2 = map(output_last, weights[:5])
    lstm = RMSNormLSTM(UNITS, epsilon=1e-5, dtype="float64")
    # The bias inside is here a row of the kernel, for an input that is always one.
    x_and_one = np.concatenate([x, np.ones((BATCH, TIME, 1))], -1)
    lstm.build(x_and_one.shape)
    lstm.set_weights([np.vstack([w, b]), u, b, s1, s2, weights[5], np.zeros(UNITS)])
    assert_close(lstm(x_and_one), reference_lstm(x, *weights), "float64", factor=20)


KERAS = {
    "simple": (RMSNormSimpleRNNCell, keras.layers.SimpleRNNCell, {}),
    "gru": (RMSNormGRUCell, keras.layers.GRUCell, {}),
    "gru-reset-before": (RMSNormGRUCell, keras.layers.GRUCell, {"reset_after": False}),
    "lstm": (RMSNormLSTMCell, keras.layers.LSTMCell, {}),
    "lstm-no-forget-bias": (RMSNormLSTMCell, keras.layers.LSTMCell, {"unit_forget_bias": False}),
}


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("options", [{}, {"activation": "relu"}, {"activation": None}], ids=str)
@pytest.mark.parametrize(("ours", "theirs", "arguments"), KERAS.values(), ids=KERAS)
def test_without_normalization_a_cell_is_that_of_keras(ours, theirs, arguments, options, use_bias):
    arguments = {**arguments, **options, "use_bias": use_bias}
    cells = []
    for make in (theirs, functools.partial(ours, normalization=None)):
        keras.utils.set_random_seed(0)
        cells.append(make(UNITS, **arguments))
        cells[-1].build((None, INPUTS))
    for a, b in zip(*(cell.weights for cell in cells), strict=True):
        assert a.name == b.name
        np.testing.assert_array_equal(a, b)  # as initialized
    weights = [draw(*w.shape, seed=i) / 2 for i, w in enumerate(cells[0].weights)]
    for cell in cells:
        cell.set_weights(weights)
    x = draw(BATCH, TIME, INPUTS, seed=9, dtype="float32")
    expected, actual = (keras.layers.RNN(cell, return_sequences=True, return_state=True)(x) for cell in cells)
    for a, e in zip(actual, expected, strict=True):
        assert_close(a, e, factor=5)


@pytest.mark.parametrize(
    ("layer_class", "keras_class"), [(RMSNormGRU, keras.layers.GRU), (RMSNormLSTM, keras.layers.LSTM)]
)
def test_without_normalization_a_layer_is_that_of_keras(layer_class, keras_class, tmp_path):
    """In training too: one mask for the inputs, drawn from the same seed."""
    arguments = {"dropout": 0.5, "seed": 7, "return_sequences": True, "return_state": True}
    theirs, ours = keras_class(UNITS, **arguments), layer_class(UNITS, normalization=None, **arguments)
    x = draw(BATCH, TIME, INPUTS, dtype="float32")
    theirs.build(x.shape)
    ours.build(x.shape)
    ours.set_weights(theirs.get_weights()[: len(ours.get_weights())])
    for training in (True, False):
        for a, e in zip(ours(x, training=training), theirs(x, training=training), strict=True):
            assert_close(a, e, factor=5)


OPTIONS = {
    "last": {},
    "sequences": {"return_sequences": True},
    "state": {"return_state": True},
    "backwards": {"return_sequences": True, "return_state": True, "go_backwards": True},
    "zero-output": {"return_sequences": True, "zero_output_for_mask": True},
    "unrolled": {"return_sequences": True, "unroll": True},
}


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@every_layer
def test_a_layer_is_its_cell_in_a_loop(layer_class, cell_class, options, masked, jit_compile):
    layer = with_drawn_weights(layer_class(UNITS, **options))
    loop = keras.layers.RNN(cell_class(UNITS), **options)
    loop.build((None, TIME, INPUTS))
    loop.set_weights(layer.get_weights())
    x = draw(BATCH, TIME, INPUTS, seed=9, dtype="float32")
    initial = list(draw(len(layer.state_size), BATCH, UNITS, seed=8, dtype="float32"))
    mask = np.array([[True, False, True, True, False], [False, True, True, False, True]]) if masked else None
    call = tf.function(functools.partial(layer, initial_state=initial, mask=mask), jit_compile=jit_compile)
    for a, e in zip(tf.nest.flatten(call(x)), tf.nest.flatten(loop(x, initial_state=initial, mask=mask)), strict=True):
        assert_close(a, e, factor=5)


@every_layer
def test_the_cell_of_a_layer_steps_on_its_own(layer_class, cell_class):
    layer = with_drawn_weights(layer_class(UNITS, return_sequences=True))
    x = draw(BATCH, TIME, INPUTS, seed=9, dtype="float32")
    states = layer.get_initial_state(BATCH)
    for t, expected in enumerate(tf.unstack(layer(x), axis=1)):
        output, states = layer.cell(x[:, t], states)
        assert_close(output, expected, factor=5)


@every_layer
def test_a_state_as_a_tensor_or_in_a_list(layer_class, cell_class):
    cell = with_drawn_weights(cell_class(UNITS))
    states = cell.get_initial_state(BATCH)
    output, new_states = cell(draw(BATCH, INPUTS, dtype="float32"), states)
    assert len(new_states) == len(states)
    np.testing.assert_array_equal(output, new_states[0])
    if len(states) == 1:
        again, bare = cell(draw(BATCH, INPUTS, dtype="float32"), states[0])
        assert_close(bare, again)


@every_layer
def test_padding_changes_nothing(layer_class, cell_class):
    tokens = np.array([[1, 2, 3, 4], [4, 2, 0, 0]])
    embedding = keras.layers.Embedding(5, INPUTS, mask_zero=True)
    layer = with_drawn_weights(layer_class(UNITS))
    model = keras.Sequential([keras.Input((None,), dtype="int32"), embedding, layer])
    alone = model(tokens[1:, :2])
    assert_close(model(tokens)[1:], alone)
    assert_close(tf.function(model, input_signature=[tf.TensorSpec([None, None], tf.int32)])(tokens)[1:], alone)


@every_layer
def test_stateful_is_one_long_sequence(layer_class, cell_class):
    layer = layer_class(UNITS, stateful=True, return_sequences=True)
    layer.build((BATCH, TIME, INPUTS))
    once = layer_class(UNITS, return_sequences=True)
    once.build((BATCH, TIME, INPUTS))
    once.set_weights(layer.get_weights()[: len(once.get_weights())])
    x = draw(BATCH, 2 * TIME, INPUTS, dtype="float32")
    for _ in range(2):
        halves = [layer(x[:, :TIME]), layer(x[:, TIME:])]
        assert_close(tf.concat(halves, 1), once(x))
        layer.reset_state()


@every_layer
def test_bidirectional_runs_both_ways(layer_class, cell_class):
    bidirectional = keras.layers.Bidirectional(layer_class(UNITS, return_sequences=True, partial=0.5))
    x = draw(BATCH, TIME, INPUTS, dtype="float32")
    y = bidirectional(x)
    assert bidirectional.backward_layer.cell.partial == 0.5
    forward, backward = bidirectional.forward_layer, bidirectional.backward_layer
    assert_close(y, tf.concat([forward(x), backward(x)[:, ::-1]], -1))


@every_layer
def test_stacked_cells_are_layers_in_a_row(layer_class, cell_class):
    stack = keras.layers.RNN([cell_class(UNITS), cell_class(6)], return_sequences=True)
    row = keras.Sequential([layer_class(UNITS, return_sequences=True), layer_class(6, return_sequences=True)])
    x = draw(BATCH, TIME, INPUTS, dtype="float32")
    stack.build(x.shape)
    row.build(x.shape)
    row.set_weights(stack.get_weights())
    assert_close(row(x), stack(x), factor=5)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_mask_on_the_inputs_is_drawn_once_for_each_sequence(wrapped, graph):
    gru = RMSNormGRU(64, normalization=None, dropout=0.25, return_sequences=True)
    if not wrapped:
        gru = keras.layers.RNN(RMSNormGRUCell(64, normalization=None, dropout=0.25), return_sequences=True)
    gru.build((None, TIME, 64))
    # h' = tanh(x): no state, z = 0, one input for each unit.
    bias = np.zeros((2, 192))
    bias[0, :64] = -100
    gru.set_weights([np.hstack([np.zeros((64, 128)), np.eye(64)]), np.zeros((64, 192)), bias])
    call = tf.function(gru) if graph else gru
    x = np.ones((32, TIME, 64), np.float32)
    masks = [np.arctanh(call(x, training=True)) for _ in range(2)]
    for mask in masks:
        np.testing.assert_allclose(mask, np.broadcast_to(mask[:, :1], mask.shape), rtol=1e-5)
        np.testing.assert_allclose(np.unique(mask.round(4)), [0, 1.3333])
        assert 0.2 < np.mean(mask[:, 0] == 0) < 0.3
    assert np.any(masks[0] != masks[1])
    assert np.any(masks[0][0] != masks[0][1])
    np.testing.assert_allclose(call(x, training=False), np.tanh(x), rtol=1e-5)


@pytest.mark.parametrize("graph", [False, True])
def test_a_mask_on_the_state_is_drawn_once_for_each_sequence(graph):
    rnn = keras.layers.RNN(
        RMSNormSimpleRNNCell(64, normalization=None, recurrent_dropout=0.25, activation=None), return_sequences=True
    )
    rnn.build((None, 3, 1))
    rnn.set_weights([np.ones((1, 64)), np.eye(64), np.zeros(64)])
    call = tf.function(rnn) if graph else rnn
    x = np.ones((8, 3, 1), np.float32)
    first, other = (call(x, training=True).numpy() for _ in range(2))
    mask = first[:, 1] - 1  # h_2 = 1 + mask * h_1
    np.testing.assert_allclose(np.unique(mask.round(4)), [0, 1.3333])
    np.testing.assert_allclose(first[:, 2], 1 + mask * (1 + mask), rtol=1e-5)
    assert np.any(first != other)


@every_layer
def test_dropout_of_a_normalized_layer_changes_training_alone(layer_class, cell_class):
    layer = with_drawn_weights(layer_class(UNITS, dropout=0.5, recurrent_dropout=0.5))
    plain = layer_class(UNITS)
    plain.build((None, TIME, INPUTS))
    plain.set_weights(layer.get_weights()[: len(plain.get_weights())])
    x = draw(BATCH, TIME, INPUTS, dtype="float32")
    assert_close(layer(x), plain(x))
    trained = tf.function(functools.partial(layer, training=True), jit_compile=True)
    assert np.max(np.abs(trained(x) - plain(x))) > 0.01


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@every_layer
def test_mixed_precision_trains(layer_class, cell_class, policy):
    """Weights and statistics stay float32, and a gradient reaches every weight."""
    layer = layer_class(UNITS, dtype=policy)
    x = draw(BATCH, TIME, INPUTS, dtype="float32")
    with tf.GradientTape() as tape:
        y = layer(x)
    assert y.dtype == layer.compute_dtype
    assert {w.dtype for w in layer.weights} == {"float32"}
    gradients = tape.gradient(y, layer.trainable_weights)
    assert all(np.isfinite(g).all() and np.any(g) for g in gradients)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"normalization": "batch"}, 'normalization must be "rms", "layer" or None, got \'batch\''),
        ({"normalization": "layer", "partial": 0.5}, "partial=0.5 needs normalization=\"rms\", got 'layer'"),
        ({"normalization": None, "partial": 0.5}, 'partial=0.5 needs normalization="rms", got None'),
        ({"partial": 1.5}, "partial must be None or a number above 0 and at most 1, got 1.5"),
        ({"epsilon": 0.0}, "epsilon must be a finite number"),
        ({"normalize_bias": "no"}, "normalize_bias must be one of True, False, got 'no'"),
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [RMSNormSimpleRNNCell, RMSNormGRUCell, RMSNormLSTMCell, RMSNormGRU, RMSNormLSTM])
def test_arguments_out_of_range(make, arguments, message):
    with pytest.raises(ValueError) as caught:
        make(4, **arguments)
    assert message in str(caught.value)


def test_normalize_carry_is_a_flag():
    with pytest.raises(ValueError, match="normalize_carry must be one of True, False, got 1"):
        RMSNormLSTM(4, normalize_carry=1)
