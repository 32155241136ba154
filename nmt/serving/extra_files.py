"""The files in an export besides those of TensorFlow, relative to its folder."""

CARD = "assets.extra/model.json"
WARMUP = "assets.extra/tf_serving_warmup_requests"  # TensorFlow Serving looks for this name
