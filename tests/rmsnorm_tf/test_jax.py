"""What JAX users do with the norm: transformations of functions, and several devices."""

import keras
import numpy as np
import pytest

from rmsnorm_tf import RMSNormalization, rms_norm
from tests import reference
from tests.backends import BACKEND
from tests.cases import CASES, assert_close

jax = pytest.importorskip("jax", reason="JAX is not installed")
pytestmark = pytest.mark.skipif(BACKEND != "jax", reason="Keras does not run on JAX")

X = np.random.default_rng(0).normal(size=(4, 6, 8)).astype("float32")
SCALE = np.linspace(0.5, 2, 8, dtype="float32")


def test_jit_and_vmap():
    expected = reference.rms_norm(X, SCALE, k=4)
    for transformed in (jax.jit, jax.vmap, lambda f: jax.vmap(jax.jit(f))):
        assert_close(transformed(lambda x: rms_norm(x, SCALE, partial=0.5))(X), expected)


def test_forward_and_reverse_mode_agree():
    def loss(x):
        return jax.numpy.sum(jax.numpy.sin(rms_norm(x, SCALE)))

    row = X[0, 0]
    tangent = X[0, 1]
    _, forward = jax.jvp(loss, [row], [tangent])
    assert_close(forward, jax.grad(loss)(row) @ tangent, factor=10)
    assert_close(jax.hessian(loss)(row), jax.jacrev(jax.grad(loss))(row), factor=20)


def test_the_backward_pass_keeps_the_input_and_a_number_a_row():
    x = jax.numpy.ones((64, 1024), "bfloat16")
    scale = jax.numpy.ones(1024)
    for transformed in (rms_norm, jax.jit(rms_norm)):
        kept = jax.tree.leaves(jax.vjp(transformed, x, scale)[1])
        assert sum(t.nbytes for t in kept) <= x.nbytes + 4 * (64 + 1024)


ON_TWO_DEVICES = """
import jax, keras, numpy as np
from jax.sharding import Mesh, PartitionSpec as P
from rmsnorm_tf import RMSNormalization, rms_norm
assert jax.device_count() == 2
x = np.random.default_rng(0).normal(size=(4, 8)).astype("float32")
mesh = Mesh(np.array(jax.devices()), ("rows",))
sharded = jax.shard_map(rms_norm, mesh=mesh, in_specs=P("rows"), out_specs=P("rows"))(x)
np.testing.assert_allclose(sharded, rms_norm(x), rtol=1e-6)

def train():
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(16), RMSNormalization(), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((8,)), *layers])
    model.compile(keras.optimizers.SGD(0.05), "mse")
    losses = model.fit(x, x[:, :1] ** 2, batch_size=4, epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0], losses
    return model.get_weights()

one = train()
keras.distribution.set_distribution(keras.distribution.DataParallel())
for a, b in zip(train(), one, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
print("same")
"""


def test_two_devices(run_python):
    flags = "--xla_force_host_platform_device_count=2"
    result = run_python(ON_TWO_DEVICES, KERAS_BACKEND="jax", JAX_PLATFORMS="cpu", XLA_FLAGS=flags)
    assert result.returncode == 0, result.stderr
    assert "same" in result.stdout


def test_a_step_of_training_written_in_jax():
    model = keras.Sequential(
        [keras.Input((6, 8)), keras.layers.Dense(8), RMSNormalization(center=True)]
    )
    trained = [v.value for v in model.trainable_variables]
    others = [v.value for v in model.non_trainable_variables]

    @jax.jit
    def loss(trained):
        y, _ = model.stateless_call(trained, others, X, training=True)
        return jax.numpy.mean(y**3)

    gradients = jax.grad(loss)(trained)
    assert [g.shape for g in gradients] == [(8, 8), (8,), (8,), (8,)]
    assert all(np.any(g) for g in gradients)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exported_programs(case):
    pytest.importorskip(
        "flatbuffers",
        reason="jax.export writes its programs with flatbuffers, which is not installed",
    )
    model = case.model()
    x = case.input()
    symbol = jax.export.symbolic_shape("batch")
    program = jax.export.export(jax.jit(model))(
        jax.ShapeDtypeStruct((*symbol, *case.shape), "float32")
    )
    loaded = jax.export.deserialize(program.serialize())
    assert_close(loaded.call(x), case.expected(x, case.layer()), factor=case.roundings)
