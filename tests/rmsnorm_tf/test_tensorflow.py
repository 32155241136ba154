"""Every case of the table works in graphs, SavedModels, TFLite, ONNX and replicas."""

import operator

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import CASES, assert_close
from tests.parameters import quick_one_of, slow

by_name = operator.attrgetter("name")
every_case = pytest.mark.parametrize("case", CASES, ids=by_name)
some_cases = pytest.mark.parametrize("case", quick_one_of(6, CASES, by_name))
PORTABLE = [case for case in CASES if case.portable]
portable_cases = pytest.mark.parametrize("case", PORTABLE, ids=by_name)
some_portable_cases = pytest.mark.parametrize("case", quick_one_of(6, PORTABLE, by_name))

WITHOUT_THE_PACKAGE = """
import sys
sys.modules["rmsnorm_tf"] = sys.modules["keras"] = None
import numpy as np, tensorflow as tf
for directory in sys.argv[1:]:
    model = tf.saved_model.load(directory)
    data = np.load(directory + "/data.npz")
    x = tf.constant(data["x"])
    np.testing.assert_allclose(model.serve(x), data["y"], rtol=1e-5, atol=1e-5)
    if "dx" in data:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = model.serve(x)
            dx = tape.gradient(y, x, tf.constant(data["dy"]))
        np.testing.assert_allclose(dx, data["dx"], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(outer.gradient(dx, x), data["ddx"], rtol=1e-4, atol=1e-4)
    assert np.isfinite(model.serve(x * 1e30)).all()
    print("same", directory)
"""

TWO_VIRTUAL_CPUS = """
import keras, numpy as np, tensorflow as tf
from rmsnorm_tf import RMSNormalization
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

def train(strategy, fused):
    keras.utils.set_random_seed(0)
    with strategy.scope():
        norm = RMSNormalization(center=True, fused=fused)
        layers = [keras.layers.Dense(16), norm, keras.layers.Dense(1)]
        model = keras.Sequential([keras.Input((8,)), *layers])
        model.compile(keras.optimizers.SGD(0.05), "mse")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 8)).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((x, x[:, :1] ** 2)).batch(16)
    losses = model.fit(data, epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0], losses
    return model.get_weights()

for fused in (None, True):
    mirrored = train(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), fused)
    single = train(tf.distribute.get_strategy(), fused)
    for m, s in zip(mirrored, single, strict=True):
        np.testing.assert_allclose(m, s, rtol=1e-4, atol=1e-5)
print("same")
"""


@every_case
@pytest.mark.slow
def test_value_in_a_graph(case):
    layer = case.layer()
    assert_close(
        tf.function(layer)(case.input()), case.expected(case.input(), layer), factor=case.roundings
    )


@every_case
def test_unknown_dimensions(case):
    layer = case.layer()
    shape = [None if a in case.free else size for a, size in enumerate((2, *case.shape))]
    call = tf.function(layer, input_signature=[tf.TensorSpec(shape)])
    for batch in (1, 3, 0) if 0 in case.free else (2,):
        x = case.input(batch)
        assert_close(call(x), case.expected(x, layer), factor=case.roundings)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("partial-channels-first", "gru"), id="some"),
        pytest.param([case.name for case in CASES], id="all", marks=pytest.mark.slow),
    ],
)
def test_saved_model_in_a_process_without_the_package(run_python, tmp_path, names):
    cases = [case for case in CASES if case.name in names]
    for case in cases:
        x = tf.constant(case.input())
        dy = tf.constant(np.random.default_rng(3).normal(size=x.shape), tf.float32)
        model = case.model()
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = model(x)
            dx = tape.gradient(y, x, dy)
        directory = tmp_path / case.name
        model.export(directory, verbose=False)
        derivatives = (
            {"dx": dx, "ddx": outer.gradient(dx, x)} if case.differentiable_when_loaded else {}
        )
        np.savez(directory / "data.npz", x=x, dy=dy, y=y, **derivatives)
    result = run_python(WITHOUT_THE_PACKAGE, *(tmp_path / case.name for case in cases))
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("same") == len(cases) == len(names)


@some_portable_cases
@pytest.mark.parametrize("batch", [None, *slow(2)])
@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated:UserWarning")
def test_tflite(case, batch):
    converter = tf.lite.TFLiteConverter.from_keras_model(case.model(batch_size=batch))
    interpreter = tf.lite.Interpreter(model_content=converter.convert())
    x = case.input()
    [given] = interpreter.get_input_details()
    [result] = interpreter.get_output_details()
    interpreter.resize_tensor_input(given["index"], x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(given["index"], x)
    interpreter.invoke()
    assert_close(interpreter.get_tensor(result["index"]), case.expected(x, case.layer()))


def as_onnx(case, layer, batch):
    tf2onnx = pytest.importorskip("tf2onnx", reason="tf2onnx is not installed")
    signature = [tf.TensorSpec((batch, *case.shape), name="x")]
    proto, _ = tf2onnx.convert.from_function(
        tf.function(layer, input_signature=signature), signature, opset=17
    )
    return proto.SerializeToString()


@portable_cases
@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_onnx(case, batch):
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    layer = case.layer()
    x = case.input()
    session = onnxruntime.InferenceSession(as_onnx(case, layer, batch))
    assert_close(session.run(None, {"x": x})[0], case.expected(x, layer))


@portable_cases
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_openvino(case):
    """On CPUs with bfloat16, OpenVINO computes in it unless it is told not to."""
    openvino = pytest.importorskip("openvino", reason="openvino is not installed")
    layer = case.layer()
    x = case.input()
    model = openvino.Core().read_model(as_onnx(case, layer, None))
    compiled = openvino.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    assert_close(compiled(x)[0], case.expected(x, layer))


@pytest.mark.slow
def test_mirrored_strategy_trains_as_one_device_does(run_python):
    result = run_python(TWO_VIRTUAL_CPUS)
    assert result.returncode == 0, result.stderr
    assert "same" in result.stdout
