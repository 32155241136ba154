"""The recurrent layers support everything that a recurrent layer of Keras does."""

import functools
import json

import keras
import numpy as np
import pytest
from keras import ops
from packaging.version import Version

from rmsnorm_tf import (
    RMSNormGRU,
    RMSNormGRUCell,
    RMSNormLSTM,
    RMSNormLSTMCell,
    RMSNormSimpleRNNCell,
)
from tests import transcription
from tests.backends import WIDEST, compiled, dtype_of, gradients_of_layer, to_array
from tests.cases import assert_close
from tests.parameters import slow
from tests.transcription import (
    BATCH,
    INPUTS,
    TIME,
    UNITS,
    assert_gradients,
    draw,
    with_drawn_weights,
)

LAYERS = {"gru": (RMSNormGRU, RMSNormGRUCell), "lstm": (RMSNormLSTM, RMSNormLSTMCell)}

every_layer = pytest.mark.parametrize(("layer_class", "cell_class"), LAYERS.values(), ids=LAYERS)


@pytest.mark.parametrize("variant", [{}, {"partial": 0.5}, {"normalization": "layer"}], ids=str)
@every_layer
def test_equations_and_gradients(layer_class, cell_class, variant):
    layer = with_drawn_weights(layer_class(UNITS, return_sequences=True, dtype=WIDEST, **variant))
    x = draw(BATCH, TIME, INPUTS, seed=9)
    assert_close(layer(x), transcription.outputs(layer.cell, x), WIDEST, factor=20)
    assert_gradients(layer)


@pytest.mark.parametrize(
    ("layer_class", "keras_class"),
    [(RMSNormGRU, keras.layers.GRU), (RMSNormLSTM, keras.layers.LSTM)],
)
def test_without_normalization_a_layer_is_that_of_keras(layer_class, keras_class):
    """In training too: one mask for the inputs, drawn from the same seed."""
    arguments = {"dropout": 0.5, "seed": 7, "return_sequences": True, "return_state": True}
    theirs = keras_class(UNITS, **arguments)
    ours = layer_class(UNITS, normalization=None, **arguments)
    x = draw(BATCH, TIME, INPUTS, dtype="float32")
    theirs.build(x.shape)
    ours.build(x.shape)
    ours.set_weights(theirs.get_weights())
    for training in (True, False):
        for a, e in zip(ours(x, training=training), theirs(x, training=training), strict=True):
            assert_close(a, e, factor=5)


@pytest.mark.parametrize("layer_class", [RMSNormGRU, RMSNormLSTM])
def test_integers_are_cast(layer_class):
    layer = layer_class(4)
    x = np.arange(24).reshape(2, 3, 4)
    assert layer.units == 4
    assert_close(layer(x), layer(x.astype(np.float32)))


@every_layer
def test_an_input_without_a_time_axis_is_refused(layer_class, cell_class):
    for x in (np.ones((2, 3)), keras.Input((3,))):
        with pytest.raises(ValueError, match="expected ndim=3, found ndim=2"):
            layer_class(UNITS)(x)


def test_arguments_of_keras_that_have_nothing_to_choose():
    assert RMSNormGRU(UNITS, implementation=1).cell.units == UNITS
    with pytest.raises(ValueError, match="use_cudnn"):
        RMSNormLSTM(UNITS, use_cudnn="auto")


OPTIONS = {
    "last": {},
    "sequences": {"return_sequences": True},
    "state": {"return_state": True},
    "backwards": {"return_sequences": True, "return_state": True, "go_backwards": True},
    "zero-output": {"return_sequences": True, "zero_output_for_mask": True},
    "unrolled": {"return_sequences": True, "unroll": True},
}


@pytest.mark.parametrize("jit_compile", [False, *slow(True)])
@pytest.mark.parametrize("masked", [True, *slow(False)])
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(
            options, id=name, marks=[pytest.mark.slow] * (name not in ("backwards", "zero-output"))
        )
        for name, options in OPTIONS.items()
    ],
)
@every_layer
def test_a_layer_is_its_cell_in_a_loop(layer_class, cell_class, options, masked, jit_compile):
    layer = with_drawn_weights(layer_class(UNITS, **options))
    loop = keras.layers.RNN(cell_class(UNITS), **options)
    loop.build((None, TIME, INPUTS))
    loop.set_weights(layer.get_weights())
    x = draw(BATCH, TIME, INPUTS, seed=9, dtype="float32")
    initial = list(draw(len(layer.state_size), BATCH, UNITS, seed=8, dtype="float32"))
    mask = (
        np.array([[True, False, True, True, False], [False, True, True, False, True]])
        if masked
        else None
    )
    call = functools.partial(layer, initial_state=initial, mask=mask)
    call = compiled(call) if jit_compile else call
    for a, e in zip(
        keras.tree.flatten(call(x)),
        keras.tree.flatten(loop(x, initial_state=initial, mask=mask)),
        strict=True,
    ):
        assert_close(a, e, factor=5)


@every_layer
def test_the_cell_of_a_layer_steps_on_its_own(layer_class, cell_class):
    layer = with_drawn_weights(layer_class(UNITS, return_sequences=True))
    x = draw(BATCH, TIME, INPUTS, seed=9, dtype="float32")
    states = layer.get_initial_state(BATCH)
    for t, expected in enumerate(ops.unstack(layer(x), axis=1)):
        output, states = layer.cell(x[:, t], states)
        assert_close(output, expected, factor=5)


@every_layer
def test_a_state_as_a_tensor_or_in_a_list(layer_class, cell_class):
    cell = with_drawn_weights(cell_class(UNITS))
    states = cell.get_initial_state(BATCH)
    output, new_states = cell(draw(BATCH, INPUTS, dtype="float32"), states)
    assert (type(new_states), len(new_states)) == (type(states), len(states))
    np.testing.assert_array_equal(to_array(output), to_array(new_states[0]))
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
    assert_close(model.predict(tokens, verbose=0)[1:], alone)


@every_layer
def test_the_layer_behind_gets_the_mask(layer_class, cell_class):
    """Keras before 3.16 also passes it on in Bidirectional, and behind a cell in its own RNN."""
    tokens = np.array([[1, 2, 3, 4], [4, 2, 0, 0]])
    embedding = keras.layers.Embedding(5, INPUTS, mask_zero=True)
    layers = [with_drawn_weights(layer_class(UNITS, return_sequences=True))]
    if Version(keras.__version__) < Version("3.16.dev0"):
        layers.append(keras.layers.Bidirectional(layer_class(UNITS, return_sequences=True)))
        layers.append(keras.layers.RNN(cell_class(UNITS), return_sequences=True))
    for layer in layers:
        model = keras.Sequential(
            [keras.Input((None,), dtype="int32"), embedding, layer, keras.layers.GRU(UNITS)]
        )
        assert_close(model(tokens)[1:], model(tokens[1:, :2]), factor=5)


@every_layer
def test_stateful_is_one_long_sequence(layer_class, cell_class):
    layer = layer_class(UNITS, stateful=True, return_sequences=True)
    layer.build((BATCH, TIME, INPUTS))
    once = layer_class(UNITS, return_sequences=True)
    once.build((BATCH, TIME, INPUTS))
    once.set_weights(layer.get_weights())
    x = draw(BATCH, 2 * TIME, INPUTS, dtype="float32")
    for _ in range(2):
        halves = [layer(x[:, :TIME]), layer(x[:, TIME:])]
        assert_close(ops.concatenate(halves, 1), once(x))
        layer.reset_state()


@every_layer
def test_bidirectional_runs_both_ways(layer_class, cell_class):
    bidirectional = keras.layers.Bidirectional(
        layer_class(UNITS, return_sequences=True, partial=0.5)
    )
    x = draw(BATCH, TIME, INPUTS, dtype="float32")
    y = bidirectional(x)
    assert bidirectional.backward_layer.cell.partial == 0.5
    forward = bidirectional.forward_layer
    backward = bidirectional.backward_layer
    assert_close(y, ops.concatenate([forward(x), ops.flip(backward(x), 1)], -1), factor=5)


@every_layer
def test_stacked_cells_are_layers_in_a_row(layer_class, cell_class):
    stack = keras.layers.RNN([cell_class(UNITS), cell_class(6)], return_sequences=True)
    row = keras.Sequential(
        [layer_class(UNITS, return_sequences=True), layer_class(6, return_sequences=True)]
    )
    x = draw(BATCH, TIME, INPUTS, dtype="float32")
    stack.build(x.shape)
    row.build(x.shape)
    row.set_weights(stack.get_weights())
    assert_close(row(x), stack(x), factor=5)


@every_layer
def test_a_layer_regularizes_its_output_and_can_be_frozen(layer_class, cell_class):
    layer = layer_class(UNITS, activity_regularizer=keras.regularizers.L2(0.5), trainable=False)
    x = draw(BATCH, TIME, INPUTS, dtype="float32")
    for same in (layer, layer_class.from_config(layer.get_config())):
        peer = keras.layers.Identity(activity_regularizer=keras.regularizers.L2(0.5))
        peer(same(x))
        losses = map(to_array, (*same.losses, *peer.losses))
        np.testing.assert_allclose(*losses, rtol=1e-5)  # Keras 3.12 does not divide by the batch
        assert not same.trainable
        assert not same.cell.trainable
        assert not same.trainable_weights


@every_layer
def test_every_option_of_a_layer_is_in_its_config(layer_class, cell_class):
    options = {
        "epsilon": 1e-3,
        "normalize_bias": True,
        "partial": 0.5,
        "return_sequences": True,
        "return_state": True,
        "go_backwards": True,
        "stateful": True,
        "unroll": True,
        "zero_output_for_mask": True,
        "dropout": 0.1,
        "recurrent_dropout": 0.2,
        "use_bias": False,
    }
    options |= (
        {"normalize_carry": True} if cell_class is RMSNormLSTMCell else {"reset_after": False}
    )
    layer = layer_class.from_config(
        layer_class(UNITS, name="own", dtype=WIDEST, **options).get_config()
    )
    assert {
        name: getattr(layer, name, getattr(layer.cell, name, None)) for name in options
    } == options
    assert (layer.name, layer.compute_dtype, layer.cell.compute_dtype) == ("own", WIDEST, WIDEST)


@pytest.mark.parametrize("cell_class", [RMSNormSimpleRNNCell, RMSNormGRUCell, RMSNormLSTMCell])
def test_every_option_of_a_cell_is_in_its_config(cell_class):
    options = {"epsilon": 0.125, "normalize_bias": True, "partial": 0.5, "normalization": "rms"}
    options |= {"normalize_carry": True} if cell_class is RMSNormLSTMCell else {}
    numbers = {"epsilon": np.float32(0.125), "partial": np.float32(0.5)}  # which JSON does not know
    config = cell_class(UNITS, **{**options, **numbers}).get_config()
    cell = cell_class.from_config(json.loads(json.dumps(config)))
    assert {name: getattr(cell, name) for name in options} == options
    cell = with_drawn_weights(cell)
    assert all(getattr(cell, name).epsilon == 0.125 for name in cell.norm_sizes)
    assert (
        cell_class.from_config(cell_class(UNITS, normalization=None).get_config()).normalization
        is None
    )


@pytest.mark.parametrize("rates", [{"dropout": 0.5}, {"recurrent_dropout": 0.5}], ids=str)
@every_layer
def test_dropout_of_a_normalized_layer_changes_training_alone(layer_class, cell_class, rates):
    # A norm takes out the factor of a mask that drops nothing, so the seed is one that drops.
    layer = with_drawn_weights(layer_class(UNITS, seed=1, **rates))
    plain = layer_class(UNITS)
    plain.build((None, TIME, INPUTS))
    plain.set_weights(layer.get_weights())
    x = draw(BATCH, TIME, INPUTS, dtype="float32")
    assert_close(layer(x), plain(x))
    assert np.max(np.abs(to_array(layer(x, training=True)) - to_array(plain(x)))) > 0.01


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("normalization", ["rms", "layer"])
@every_layer
def test_mixed_precision_trains(layer_class, cell_class, normalization, policy):
    """Weights and statistics stay float32, and a gradient reaches every weight."""
    layer = layer_class(UNITS, normalization=normalization, dtype=policy)
    x = draw(BATCH, TIME, INPUTS, dtype="float32")
    y = layer(x)
    assert dtype_of(y) == layer.compute_dtype
    assert {w.dtype for w in layer.weights} == {"float32"}
    _, *gradients = map(to_array, gradients_of_layer(layer, x, np.ones(y.shape)))
    assert all(np.isfinite(g).all() and np.any(g) for g in gradients)
