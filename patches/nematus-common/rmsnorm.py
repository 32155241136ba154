"""RMSNorm and pRMSNorm for Nematus: layer normalization without its mean and without its bias.

    y = x / sqrt(mean(x^2) + 1e-5) * gain

The mean runs over the last axis; for pRMSNorm, over its first 6.25 %, rounded up.
Reference: Zhang and Sennrich 2019, arXiv:1910.07467, equation 4 and section 5.

Runs on Python 2.7 and 3, and on TensorFlow 1 and 2 in graph mode. All kinds store one weight, the
gain: in v0.3 as `new_std`, like the authors' own change of v0.3; in other versions as `scale`, like
master. The JSON file of a model stores its kind as `layer_normalization_type`. A model without this
entry has layer normalization, or RMSNorm if its checkpoint has gains and no biases of a norm.
"""

import logging

import tensorflow as tf

# TensorFlow 2 keeps the names of TensorFlow 1 here.
tf1 = getattr(getattr(tf, "compat", tf), "v1", tf)

EPSILON = 1e-5
LAYERNORM = "layernorm"
# The first size / divisor entries give the statistic. "rmsnorm_fast" is for Nematus master, whose
# own class for "rmsnorm" computes the same more slowly.
DIVISORS = {"rmsnorm": 1, "rmsnorm_fast": 1, "prmsnorm": 16}

_selected = LAYERNORM


def plain_gain(size):
    """Creates the gain in v0.3, whose scopes are name scopes."""
    return tf1.Variable(tf.ones([size]), name="new_std")


def rnn_gain(size):
    """Creates the gain in a variable scope, so that replicas of a model share it."""
    return tf1.get_variable("scale", [size], initializer=tf1.ones_initializer())


def transformer_gain(size):
    """Creates the gain in a scope of its own: a Transformer's sublayer opens none for its norm."""
    with tf1.variable_scope("rms_norm"):
        return rnn_gain(size)


class RMSNorm:
    """Divides the last axis by the root mean square of its first size / divisor entries."""

    def __init__(self, size, divisor, make_gain):
        self.scale = make_gain(size)
        self.size = size
        self.count = -(-size // divisor)

    def forward(self, x, input_is_3d=None):
        """Returns the normalized x. v0.3 passes `input_is_3d`; any rank works without it."""
        first = x if self.count == self.size else x[..., : self.count]
        # Older versions of TensorFlow have another name for `keepdims`, so add the axis afterwards.
        total = tf.expand_dims(tf.reduce_sum(tf.square(first), axis=-1), -1)
        return x * tf1.rsqrt(total * (1.0 / self.count) + EPSILON) * self.scale


def layer(kind, make_gain):
    """Returns a function that builds a layer of this kind from its size.

    Raises:
        ValueError: the kind is unknown.
    """
    if kind not in DIVISORS:
        kinds = LAYERNORM + ", " + ", ".join(sorted(DIVISORS))
        raise ValueError(
            "layer_normalization_type is " + repr(kind) + "; it must be one of " + kinds
        )
    return lambda layer_size: RMSNorm(layer_size, DIVISORS[kind], make_gain)


def select(config):
    """Selects the kind in a model's configuration for all layers built from now on."""
    global _selected
    _selected = getattr(config, "layer_normalization_type", None) or _kind_in(
        getattr(config, "reload", None)
    )
    if _selected != LAYERNORM:
        layer(_selected, None)  # Raises now if the kind is unknown.
        normalizes = getattr(
            config, "use_layer_norm", getattr(config, "rnn_layer_normalization", False)
        )
        if not normalizes and getattr(config, "model_type", "rnn") == "rnn":
            logging.warning(
                "layer normalization is off, so layer_normalization_type %s has no effect",
                _selected,
            )


def _kind_in(checkpoint):
    """Returns the kind of a model that does not name it, from its checkpoint, or LayerNorm."""
    if not checkpoint or not tf1.train.checkpoint_exists(checkpoint):
        return LAYERNORM
    names = tf1.train.NewCheckpointReader(checkpoint).get_variable_to_shape_map()
    weights = set(name.split("/")[-1] for name in names)
    return "rmsnorm" if "new_std" in weights and "new_mean" not in weights else LAYERNORM


def instead_of(layernorm, make_gain):
    """Returns a function that replaces a LayerNorm class and builds layers of the selected kind."""

    def build(layer_size):
        kind = layernorm if _selected == LAYERNORM else layer(_selected, make_gain)
        return kind(layer_size)

    return build
