"""The warm-up requests in a SavedModel, as TensorFlow Serving reads them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from ..extra_files import WARMUP


def warmup_requests(path: Path) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Yields signature and inputs of every warm-up request in a SavedModel, if it has any."""
    file = path / WARMUP
    if not file.exists():
        return
    for record in tf.data.TFRecordDataset(str(file)):
        request = prediction_log_pb2.PredictionLog.FromString(record.numpy()).predict_log.request
        inputs = {name: tf.make_ndarray(value) for name, value in request.inputs.items()}
        yield request.model_spec.signature_name or "serving_default", inputs
