"""Requests that a server runs before it serves a model, so that the first caller does not wait."""

from pathlib import Path

import tensorflow as tf

from .signatures import Signatures


def write_warmup(signatures: Signatures, sentences: list[bytes], to: Path) -> bool:
    """Writes requests to every signature, as TensorFlow Serving reads them.

    Args:
        signatures: What the model computes.
        sentences: Each signature gets one request with the first sentence and one with all.
        to: The file.

    Returns:
        Whether the package `tensorflow-serving-api` is there to write them.
    """
    try:
        from tensorflow_serving.apis import predict_pb2, prediction_log_pb2
    except ImportError:
        return False
    with tf.io.TFRecordWriter(str(to)) as file:
        for name, function in signatures.functions.items():
            for texts in (sentences[:1], sentences):
                request = predict_pb2.PredictRequest()
                request.model_spec.signature_name = name
                for spec in function.input_signature:
                    request.inputs[spec.name].CopyFrom(tf.make_tensor_proto(texts, tf.string))
                log = prediction_log_pb2.PredictionLog(predict_log=prediction_log_pb2.PredictLog(request=request))
                file.write(log.SerializeToString())
    return True
