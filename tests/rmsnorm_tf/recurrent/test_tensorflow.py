"""The recurrent layers in graphs of TensorFlow: unknown sizes, XLA, TFLite, ONNX."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import RMSNormGRU, RMSNormLSTM
from tests.cases import assert_close
from tests.transcription import BATCH, INPUTS, TIME, UNITS, draw, with_drawn_weights

every_layer = pytest.mark.parametrize("layer_class", [RMSNormGRU, RMSNormLSTM])


@every_layer
def test_padding_changes_nothing_in_a_graph_of_unknown_sizes(layer_class):
    tokens = np.array([[1, 2, 3, 4], [4, 2, 0, 0]])
    embedding = keras.layers.Embedding(5, INPUTS, mask_zero=True)
    model = keras.Sequential(
        [keras.Input((None,), dtype="int32"), embedding, with_drawn_weights(layer_class(UNITS))]
    )
    call = tf.function(model, input_signature=[tf.TensorSpec([None, None], tf.int32)])
    assert_close(call(tokens)[1:], model(tokens[1:, :2]))


@pytest.mark.parametrize("unroll", [False, True])
@every_layer
def test_an_unrolled_layer_has_no_loop(layer_class, unroll):
    call = tf.function(layer_class(UNITS, unroll=unroll), autograph=False)
    graph = call.get_concrete_function(tf.TensorSpec((BATCH, 2, INPUTS))).graph
    assert any("While" in operation.type for operation in graph.get_operations()) != unroll


@pytest.mark.parametrize("jit_compile", [False, True])
@every_layer
def test_dropout_is_drawn_anew_by_each_call_of_a_graph(layer_class, jit_compile):
    layer = with_drawn_weights(layer_class(UNITS, dropout=0.5, recurrent_dropout=0.5))
    x = draw(BATCH, TIME, INPUTS, dtype="float32")
    call = tf.function(functools.partial(layer, training=True), jit_compile=jit_compile)
    first = call(x)
    second = call(x)
    assert np.max(np.abs(first - layer(x))) > 0.01
    assert np.max(np.abs(first - second)) > 0.01


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@every_layer
def test_an_unrolled_layer_runs_in_tflite(layer_class):
    layer = with_drawn_weights(layer_class(UNITS, unroll=True))
    model = keras.Sequential([keras.Input((TIME, INPUTS)), layer])
    interpreter = tf.lite.Interpreter(
        model_content=tf.lite.TFLiteConverter.from_keras_model(model).convert()
    )
    x = draw(1, TIME, INPUTS, dtype="float32")
    interpreter.allocate_tensors()
    [given] = interpreter.get_input_details()
    [result] = interpreter.get_output_details()
    interpreter.set_tensor(given["index"], x)
    interpreter.invoke()
    assert_close(interpreter.get_tensor(result["index"]), layer(x), factor=5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@every_layer
def test_a_layer_runs_in_onnx(layer_class):
    tf2onnx = pytest.importorskip("tf2onnx", reason="tf2onnx is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    layer = with_drawn_weights(layer_class(UNITS))
    signature = [tf.TensorSpec((None, TIME, INPUTS), name="x")]
    proto, _ = tf2onnx.convert.from_function(
        tf.function(layer, input_signature=signature), signature, opset=17
    )
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    x = draw(BATCH, TIME, INPUTS, dtype="float32")
    assert_close(session.run(None, {"x": x})[0], layer(x), factor=5)
