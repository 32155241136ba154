"""RMSNorm and pRMSNorm for Nematus: layer normalization without its mean and without its bias.

    y = x / sqrt(mean(x^2) + 1e-5) * gain

The mean is taken over the last axis, for pRMSNorm over the first 6.25 % of it, rounded up.
Reference: Zhang and Sennrich 2019, arXiv:1910.07467, equation 4 and section 5.

For Python 2.7 and 3, and for TensorFlow 1 and 2 in graph mode. The gain is stored as `scale`, and
all kinds have the same weights. The kind of a model is in its JSON file, as
`layer_normalization_type`; a model without that entry has layer normalization.
"""

import logging

import tensorflow as tf

# Where TensorFlow 2 keeps the names of TensorFlow 1.
tf1 = getattr(getattr(tf, "compat", tf), "v1", tf)

EPSILON = 1e-5
LAYERNORM = "layernorm"
# One of how many entries gives the statistic. The fast kind is for a Nematus that has a class of
# its own for "rmsnorm"; both compute the same.
DIVISORS = {"rmsnorm": 1, "rmsnorm_fast": 1, "prmsnorm": 16}

_selected = LAYERNORM


def plain_gain(size):
    """Makes a gain where the scopes are name scopes, as in v0.3."""
    return tf1.Variable(tf.ones([size]), name="scale")


def rnn_gain(size):
    """Makes a gain where the scopes are variable scopes, which replicas of a model share."""
    return tf1.get_variable("scale", [size], initializer=tf1.ones_initializer())


def transformer_gain(size):
    """Makes a gain in a scope of its own: a sublayer of the Transformer has none for its norm."""
    with tf1.variable_scope("rms_norm"):
        return rnn_gain(size)


class RMSNorm:
    """Normalizes [..., size] over the last axis by the first of its entries, or by all."""

    def __init__(self, size, divisor, make_gain):
        self.scale = make_gain(size)
        self.size = size
        self.count = -(-size // divisor)

    def forward(self, x, input_is_3d=None):
        """Returns the normalized x. The rank of x does not matter; v0.3 tells it anyway."""
        first = x if self.count == self.size else x[..., : self.count]
        # One entry for each row; older versions of TensorFlow have another name for `keepdims`.
        total = tf.expand_dims(tf.reduce_sum(tf.square(first), axis=-1), -1)
        return x * tf1.rsqrt(total * (1.0 / self.count) + EPSILON) * self.scale


def layer(kind, make_gain):
    """Returns what builds a layer of this kind from its size.

    Raises:
        ValueError: there is no such kind here.
    """
    if kind not in DIVISORS:
        kinds = ", ".join(sorted(DIVISORS))
        raise ValueError("layer_normalization_type is " + repr(kind) + ", not " + LAYERNORM + " or one of " + kinds)
    return lambda layer_size: RMSNorm(layer_size, DIVISORS[kind], make_gain)


def select(config):
    """Makes the layers that are built from here on be of the kind in the config of a model."""
    global _selected
    _selected = getattr(config, "layer_normalization_type", LAYERNORM)
    if _selected != LAYERNORM:
        layer(_selected, None)  # Says so now if there is no such kind.
        normalizes = getattr(config, "use_layer_norm", getattr(config, "rnn_layer_normalization", False))
        if not normalizes and getattr(config, "model_type", "rnn") == "rnn":
            logging.warning("layer normalization is off, so its type, %s, has no effect", _selected)


def instead_of(layernorm, make_gain):
    """Returns what builds a layer of the selected kind, to take the place of a LayerNorm class."""

    def build(layer_size):
        kind = layernorm if _selected == LAYERNORM else layer(_selected, make_gain)
        return kind(layer_size)

    return build
