"""rmsnorm.py, the file that is added to Nematus: values, gradients and the selection of a kind."""

import argparse
import importlib.util
import logging
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

FILE = Path(__file__).resolve().parents[2] / "patches/nematus-common/rmsnorm.py"
GAINS = {
    "plain_gain": "scope/new_std",
    "rnn_gain": "scope/scale",
    "transformer_gain": "scope/rms_norm/scale",
}
tf1 = tf.compat.v1


@pytest.fixture
def rmsnorm():
    """The module, loaded anew for each test, because it stores the selected kind."""
    spec = importlib.util.spec_from_file_location("rmsnorm_of_nematus", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expected(kind, x, gain):
    first = x[..., : -(-x.shape[-1] // 16)] if kind == "prmsnorm" else x
    return x / np.sqrt(np.mean(np.square(first), -1, keepdims=True) + 1e-5) * gain


@pytest.mark.parametrize("kind", ["rmsnorm", "rmsnorm_fast", "prmsnorm"])
@pytest.mark.parametrize("shape", [(3, 40), (2, 3, 48), (3, 5)])
@pytest.mark.parametrize("make_gain", GAINS)
def test_computes_the_equation(rmsnorm, kind, shape, make_gain):
    random = np.random.default_rng(0)
    x = random.normal(1, 2, shape)
    gain = random.uniform(0.5, 2, shape[-1])
    with tf.Graph().as_default(), tf1.Session() as session:
        scope = tf1.name_scope if make_gain == "plain_gain" else tf1.variable_scope
        with scope("scope"):
            layer = rmsnorm.layer(kind, getattr(rmsnorm, make_gain))(layer_size=shape[-1])
        fed = tf1.placeholder(tf.float32, [None] * len(shape))
        y = layer.forward(fed, input_is_3d=len(shape) == 3)
        assert [variable.op.name for variable in tf1.trainable_variables()] == [GAINS[make_gain]]
        session.run(tf1.global_variables_initializer())
        np.testing.assert_allclose(
            session.run(y, {fed: x}), expected(kind, x, 1), rtol=1e-5, atol=1e-6
        )
        layer.scale.load(gain, session)
        np.testing.assert_allclose(
            session.run(y, {fed: x}), expected(kind, x, gain), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("kind", ["rmsnorm", "prmsnorm"])
def test_gradients_are_those_of_the_equation_also_inside_a_loop(rmsnorm, kind):
    """Nematus runs its recurrent layers in tf.scan."""
    random = np.random.default_rng(0)
    x, gain, weight = (random.normal(size=40) for _ in range(3))
    with tf.Graph().as_default(), tf1.Session() as session:
        layer = rmsnorm.layer(kind, rmsnorm.rnn_gain)(40)
        fed = tf1.placeholder(tf.float32, [1, 40])
        states = tf.scan(lambda state, _: layer.forward(state), tf.zeros([2]), initializer=fed)
        gradients = tf1.gradients(tf.reduce_sum(states[-1] * weight), [fed, layer.scale])
        session.run(tf1.global_variables_initializer())
        layer.scale.load(gain, session)
        found = session.run(gradients, {fed: x[None]})

    def loss(x, gain):
        return expected(kind, expected(kind, x, gain), gain) @ weight

    for i, gradient in enumerate(found):
        for j in range(40):
            step = np.zeros((2, 40))
            step[i, j] = 1e-5
            numeric = (loss(x + step[0], gain + step[1]) - loss(x - step[0], gain - step[1])) / 2e-5
            assert gradient.ravel()[j] == pytest.approx(numeric, rel=2e-3, abs=2e-3)


def test_zero_gives_zero_and_finite_gradients(rmsnorm):
    with tf.Graph().as_default(), tf1.Session() as session:
        layer = rmsnorm.layer("rmsnorm", rmsnorm.rnn_gain)(8)
        x = tf.zeros([1, 8])
        y = layer.forward(x)
        gradient = tf1.gradients(y, x)[0]
        session.run(tf1.global_variables_initializer())
        assert np.all(session.run(y) == 0)
        np.testing.assert_allclose(session.run(gradient), 1e-5**-0.5, rtol=1e-5)


def config(**options):
    return argparse.Namespace(**options)


def test_models_of_several_kinds_are_built_one_after_the_other(rmsnorm):
    build = rmsnorm.instead_of(lambda layer_size: ("layernorm", layer_size), lambda size: "gain")
    for kinds in (
        ["rmsnorm", None, "prmsnorm", "layernorm"],
        ["layernorm", "prmsnorm", None, "rmsnorm"],
    ):
        for kind in kinds:
            rmsnorm.select(
                config(use_layer_norm=True, **({"layer_normalization_type": kind} if kind else {}))
            )
            built = build(layer_size=32)
            if kind in (None, "layernorm"):
                assert built == ("layernorm", 32)
            else:
                assert (built.size, built.count) == (32, 2 if kind == "prmsnorm" else 32)


def test_refuses_an_unknown_kind(rmsnorm):
    with pytest.raises(
        ValueError,
        match=r"'batchnorm'; .* rmsnorm_fast",
    ):
        rmsnorm.select(config(layer_normalization_type="batchnorm"))


@pytest.mark.parametrize(
    ("options", "warns"),
    [
        ({"use_layer_norm": False}, True),
        ({"rnn_layer_normalization": False, "model_type": "rnn"}, True),
        ({"rnn_layer_normalization": True, "model_type": "rnn"}, False),
        ({"rnn_layer_normalization": False, "model_type": "transformer"}, False),
        ({"use_layer_norm": True}, False),
    ],
)
def test_warns_of_a_kind_without_effect(rmsnorm, options, warns, caplog):
    with caplog.at_level(logging.WARNING):
        rmsnorm.select(config(layer_normalization_type="rmsnorm", **options))
    assert ("has no effect" in caplog.text) == warns
