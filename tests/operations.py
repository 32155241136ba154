"""Every kind of TensorFlow operation that a fold may look through, as a layer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

ROWS = 4
CHANNELS = 6


@dataclass(frozen=True)
class Operation:
    """A computation on `[batch, ROWS, CHANNELS]`, whose last axis is normalized afterwards.

    Attributes:
        function: Maps the tensor, and weights, to another tensor.
        weights: The shapes of the weights.
        folds: Whether a LayerNorm behind it is folded.
        ordered: Whether channel i comes from channel i, so that a gain per channel may move through
            it.
    """

    function: Callable[..., Any]
    weights: tuple[tuple[int, ...], ...] = ()
    folds: bool = True
    ordered: bool = True


def image(x, depth=()):
    return tf.reshape(x, [-1, 2, 2, *depth, CHANNELS])


def rows(x):
    return tf.reshape(x, [-1, ROWS, CHANNELS])


def swapped(x):
    return tf.transpose(x, [0, 2, 1])


def repeated(w, x):
    return tf.tile(w[None], [tf.shape(x)[0], 1, 1])


def scaled_and_translated(x):
    return tf.raw_ops.ScaleAndTranslate(
        images=x,
        size=[3, 3],
        scale=[1.5, 1.5],
        translation=[0.0, 0.1],
        kernel_type="triangle",
        antialias=True,
    )


def wider(function):
    """Computes in float32, as not every kind of operation has float64."""
    return lambda x: tf.cast(function(tf.cast(x, tf.float32)), x.dtype)


SQUARE = ((CHANNELS, CHANNELS),)
OVER_ROWS = ((ROWS, 1),)
PER_CHANNEL = ((CHANNELS,),)
GATHERED = [[0, 1, 2, 3, 2, 1]]

OPERATIONS = {
    # elementwise
    "add": Operation(lambda x, w: x + w, PER_CHANNEL),
    "add-raw": Operation(lambda x: tf.raw_ops.Add(x=x, y=2.0 * x)),
    "add-constant": Operation(lambda x: x + tf.cast(tf.range(CHANNELS), x.dtype), folds=False),
    "add-n": Operation(lambda x: tf.add_n([x, 2.0 * x, x])),
    "sub": Operation(lambda x, w: w - x, PER_CHANNEL),
    "neg": Operation(lambda x: -x),
    "identity": Operation(tf.identity),
    "stop": Operation(tf.stop_gradient),
    "prevent": Operation(lambda x: tf.raw_ops.PreventGradient(input=x)),
    "finite": Operation(lambda x: tf.debugging.check_numerics(x, "")),
    "snapshot": Operation(lambda x: tf.raw_ops.Snapshot(input=x)),
    "shape": Operation(lambda x: tf.ensure_shape(x, [None, ROWS, CHANNELS])),
    "bias": Operation(tf.nn.bias_add, PER_CHANNEL),
    "bias-over-rows": Operation(
        lambda x, w: swapped(tf.nn.bias_add(swapped(x), w)), ((ROWS,),), folds=False
    ),
    "cast": Operation(lambda x: tf.cast(tf.cast(x, tf.float64), x.dtype)),
    "cast-to-integers": Operation(
        lambda x: tf.cast(tf.cast(9.0 * x, tf.int32), x.dtype), folds=False
    ),
    "product": Operation(lambda x, w: x * w, OVER_ROWS),
    "product-of-two": Operation(lambda x: x * x, folds=False),
    "quotient": Operation(lambda x, w: x / (3.0 + w), OVER_ROWS),
    "quotient-by-channel": Operation(lambda x, w: x / (9.0 + w), PER_CHANNEL, folds=False),
    "quotient-of-one": Operation(lambda x: 1.0 / (9.0 + x), folds=False),
    "select": Operation(lambda x, w: tf.where(w > 0.3, x, 2.0 * x), OVER_ROWS),
    "select-channels": Operation(
        lambda x, w: tf.where(w > 0.3, x, 2.0 * x), PER_CHANNEL, folds=False
    ),
    # shapes
    "reshape": Operation(lambda x: rows(image(x))),
    "reshape-channels": Operation(lambda x: tf.reshape(x, [-1, 3, 8]), folds=False),
    "reshape-into-two": Operation(lambda x: tf.reshape(x, [-1, ROWS, 2, 3]), folds=False),
    "expand": Operation(lambda x: tf.squeeze(tf.expand_dims(x, 1), 1)),
    "transpose": Operation(lambda x: tf.transpose(image(x), [0, 2, 1, 3])),
    "transpose-channels": Operation(swapped, folds=False),
    "slice": Operation(lambda x: tf.slice(x, [0, 1, 0], [-1, 2, CHANNELS])),
    "slice-channels": Operation(lambda x: tf.slice(x, [0, 0, 1], [-1, ROWS, 4]), folds=False),
    "tile": Operation(lambda x: tf.tile(x, [1, 2, 1])),
    "tile-channels": Operation(lambda x: tf.tile(x, [1, 1, 2]), folds=False),
    "broadcast": Operation(
        lambda x: tf.broadcast_to(x[:, None], [tf.shape(x)[0], 3, ROWS, CHANNELS])
    ),
    "broadcast-channels": Operation(
        lambda x: tf.broadcast_to(x[..., :1], [tf.shape(x)[0], ROWS, CHANNELS]), folds=False
    ),
    "pad": Operation(lambda x: tf.pad(x, [[0, 0], [1, 0], [0, 0]])),
    "pad-value": Operation(
        lambda x: tf.pad(x, [[0, 0], [1, 0], [0, 0]], constant_values=0.5), folds=False
    ),
    "pad-channels": Operation(lambda x: tf.pad(x, [[0, 0], [0, 0], [1, 0]]), folds=False),
    "mirror": Operation(lambda x: tf.pad(x, [[0, 0], [1, 1], [0, 0]], "REFLECT")),
    "mirror-channels": Operation(
        lambda x: tf.pad(x, [[0, 0], [0, 0], [0, 2]], "REFLECT"), folds=False
    ),
    # parts
    "stride": Operation(lambda x: x[:, None, ::2]),
    "stride-shrunk": Operation(lambda x: x[:, 1]),
    "stride-ellipsis": Operation(lambda x: x[..., :]),
    "stride-backwards": Operation(lambda x: x[..., ::-1], ordered=False),
    "stride-rows-backwards": Operation(lambda x: x[:, ::-1]),
    "stride-of-two": Operation(lambda x: x[..., ::2], folds=False),
    "stride-from-one": Operation(lambda x: x[..., 1:], folds=False),
    "stride-to-five": Operation(lambda x: x[..., :5], folds=False),
    "concat": Operation(lambda x: tf.concat([x, 2.0 * x], 1)),
    "concat-channels": Operation(lambda x: tf.concat([x, 2.0 * x], -1), folds=False),
    "split": Operation(lambda x: tf.split(x, 2, 1)[1]),
    "split-channels": Operation(lambda x: tf.split(x, 2, 2)[1], folds=False),
    "split-unequal": Operation(lambda x: tf.split(x, [1, 3], 1)[1]),
    "split-unequal-channels": Operation(lambda x: tf.split(x, [1, 5], -1)[1], folds=False),
    "gather": Operation(lambda x: tf.gather(x, [2, 0], axis=1)),
    "gather-channels": Operation(lambda x: tf.gather(x, [1, 2, 3, 3, 4, 5], axis=2), folds=False),
    "gather-behind-channels": Operation(
        lambda x: tf.transpose(tf.gather(swapped(x), [[2, 0]], axis=2), [0, 2, 3, 1])
    ),
    "gather-in-batches": Operation(
        lambda x: tf.gather(
            swapped(x), tf.tile(GATHERED, [tf.shape(x)[0], 1]), axis=2, batch_dims=2
        ),
        folds=False,
    ),
    "gather-rows": Operation(lambda x, w: x + tf.gather(w, [3, 0, 2, 2]), ((5, CHANNELS),)),
    # order
    "roll": Operation(lambda x: tf.roll(x, 1, -1), ordered=False),
    "roll-rows": Operation(lambda x: tf.roll(x, 1, 1)),
    "reverse": Operation(lambda x: tf.reverse(x, [2]), ordered=False),
    "reverse-rows": Operation(lambda x: tf.reverse(x, [1])),
    # sums
    "mean": Operation(lambda x: tf.reduce_mean(x, 1)),
    "mean-kept": Operation(lambda x: tf.reduce_mean(x, 1, keepdims=True)),
    "mean-of-channels": Operation(lambda x: tf.reduce_mean(x, 2), folds=False),
    "sum": Operation(lambda x: tf.reduce_sum(image(x), [1, 2])),
    "sum-of-channels": Operation(lambda x: tf.reduce_sum(image(x), [2, 3]), folds=False),
    "max": Operation(lambda x: tf.reduce_max(x, 1), folds=False),
    # images
    "average": Operation(lambda x: tf.nn.avg_pool2d(image(x), 2, 1, "SAME")),
    "average-3d": Operation(lambda x: tf.nn.avg_pool3d(image(x, [1]), 2, 1, "SAME")),
    "greatest": Operation(lambda x: tf.nn.max_pool2d(image(x), 2, 1, "SAME"), folds=False),
    "blocks": Operation(lambda x: tf.space_to_batch(image(x), [2, 2], [[0, 0], [0, 0]])),
    "blocks-back": Operation(
        lambda x: tf.raw_ops.BatchToSpaceND(
            input=tf.tile(image(x), [4, 1, 1, 1]), block_shape=[2, 2], crops=[[0, 1], [0, 0]]
        )
    ),
    "blocks-of-channels": Operation(
        lambda x: tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]), folds=False
    ),
    "bilinear": Operation(lambda x: tf.cast(tf.image.resize(image(x), [3, 3]), x.dtype)),
    "bicubic": Operation(lambda x: tf.cast(tf.image.resize(image(x), [3, 3], "bicubic"), x.dtype)),
    "nearest": Operation(lambda x: tf.image.resize(image(x), [3, 3], "nearest")),
    "translate": Operation(wider(lambda x: scaled_and_translated(image(x)))),
    # products
    "matmul": Operation(lambda x, w: tf.matmul(x[:, 0], w), SQUARE),
    "matmul-transposed": Operation(lambda x, w: tf.matmul(x[:, 0], w, transpose_b=True), SQUARE),
    "matmul-first": Operation(
        lambda x, w: tf.transpose(tf.matmul(w, x[:, 0], transpose_b=True)), SQUARE
    ),
    "matmul-first-transposed": Operation(
        lambda x, w: tf.transpose(tf.matmul(w, x[:, 0], transpose_a=True, transpose_b=True)), SQUARE
    ),
    "matmul-of-two": Operation(lambda x: tf.matmul(x, x, transpose_a=True), folds=False),
    "batch-matmul": Operation(lambda x, w: tf.matmul(x, w), SQUARE),
    "batch-matmul-1": Operation(
        lambda x, w: tf.raw_ops.BatchMatMul(x=x, y=repeated(w, x), adj_y=True), SQUARE
    ),
    "batch-matmul-3": Operation(
        lambda x, w: tf.raw_ops.BatchMatMulV3(x=x, y=w, Tout=x.dtype), SQUARE
    ),
    "batch-matmul-first": Operation(
        lambda x, w: swapped(tf.matmul(w, x, transpose_b=True)), SQUARE
    ),
    "einsum": Operation(lambda x, w: tf.einsum("...c,cd->...d", x, w), SQUARE),
    "einsum-diagonal": Operation(lambda x, w: tf.einsum("abc,cc->abc", x, w), SQUARE, folds=False),
    "einsum-product": Operation(
        lambda x, w: tf.einsum("abc,c->abc", x, w), PER_CHANNEL, folds=False
    ),
    "conv": Operation(
        lambda x, w: tf.nn.conv2d(image(x), w, 1, "VALID"), ((1, 2, CHANNELS, CHANNELS),)
    ),
    "conv-3d": Operation(
        lambda x, w: tf.nn.conv3d(image(x, [1]), w, [1] * 5, "VALID"),
        ((1, 1, 1, CHANNELS, CHANNELS),),
    ),
    "conv-in-groups": Operation(
        lambda x, w: tf.nn.conv2d(image(x), w, 1, "VALID"),
        ((1, 1, CHANNELS // 2, CHANNELS),),
        folds=False,
    ),
    "conv-depthwise": Operation(
        lambda x, w: tf.nn.depthwise_conv2d(image(x), w, [1] * 4, "VALID"),
        ((1, 1, CHANNELS, 1),),
        folds=False,
    ),
}


@keras.saving.register_keras_serializable(package="tests")
class Apply(keras.layers.Layer):
    """An entry of `OPERATIONS` as a layer."""

    def __init__(self, operation, **kwargs):
        super().__init__(**kwargs)
        self.operation = operation

    def build(self, shape):
        self.own = [
            self.add_weight(shape=s, name=f"w{i}")
            for i, s in enumerate(OPERATIONS[self.operation].weights)
        ]

    def call(self, x):
        weights = [w.value if w.shape[0] == ROWS + 1 else tf.convert_to_tensor(w) for w in self.own]
        return OPERATIONS[self.operation].function(x, *weights)

    def get_config(self):
        return {**super().get_config(), "operation": self.operation}


@keras.saving.register_keras_serializable(package="tests")
class Scale(keras.layers.Layer):
    """A gain per channel."""

    def build(self, shape):
        self.gain = self.add_weight(shape=(shape[-1],), initializer="ones", name="gain")

    def call(self, x):
        return x * self.gain
