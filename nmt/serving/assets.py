"""Writes and reads the model card of an export, and the requests that warm a server up."""

import functools
import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

CARD = "assets.extra/model.json"
_log = logging.getLogger("serve")
WARMUP = "assets.extra/tf_serving_warmup_requests"  # TensorFlow Serving looks for this name


def write_card(export: Path, card: dict[str, Any]) -> None:
    (export / CARD).parent.mkdir(exist_ok=True)
    (export / CARD).write_text(
        f"{json.dumps(card, indent=2, ensure_ascii=False)}\n", encoding="utf-8"
    )


def read_card(export: Path) -> dict[str, Any] | None:
    """Returns the model card, or `None` if there is none or it cannot be shown as JSON."""
    file = export / CARD
    if not file.exists():
        return None
    try:
        # NaN, which JSON does not have, is null.
        card = json.loads(file.read_text(encoding="utf-8"), parse_constant=lambda _: None)
        # The service writes it within other objects, where less of the stack is left.
        deeper = functools.reduce(lambda inner, _: [inner], range(300), card)
        json.dumps(deeper, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        _log.error("%s is left out: %s", file, error)
        return None
    return card


def write_warmup(export: Path, functions: dict[str, Any], sentences: Sequence) -> bool:
    """Writes requests that a server runs before it serves a model, so that the first caller does
    not wait.

    Returns `False` where the package `tensorflow-serving-api` is missing.

    Args:
        sentences: Texts, or rows of ids. Each signature gets one request with the first sentence
            and one with all.
    """
    try:
        from tensorflow_serving.apis import predict_pb2, prediction_log_pb2
    except ImportError:
        return False
    with tf.io.TFRecordWriter(str(export / WARMUP)) as file:
        for name, function in functions.items():
            for texts in (sentences[:1], sentences):
                request = predict_pb2.PredictRequest()
                request.model_spec.signature_name = name
                for spec in function.input_signature:
                    request.inputs[spec.name].CopyFrom(tf.make_tensor_proto(texts, spec.dtype))
                log = prediction_log_pb2.PredictionLog()
                log.predict_log.request.CopyFrom(request)
                file.write(log.SerializeToString())
    return True


def read_warmup(export: Path) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Yields signature and inputs of every warm-up request to predict."""
    from tensorflow_serving.apis import prediction_log_pb2

    file = export / WARMUP
    if not file.exists():
        return
    for record in tf.data.TFRecordDataset(str(file)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        if not log.HasField("predict_log"):  # the service does not answer others
            continue
        request = log.predict_log.request
        inputs = {name: tf.make_ndarray(value) for name, value in request.inputs.items()}
        yield request.model_spec.signature_name or "serving_default", inputs
