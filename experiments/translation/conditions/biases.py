"""The conditions of experiments/PLAN-biases.md: biases of the model in the place of offsets of the norms."""

import keras

from rmsnorm_tf import RMSNormalization

from ..condition import Condition

CORPUS = "multi30k_biases"
_EPSILON = 1e-5  # of the patched kinds
_BIASES = {"transformer_attention_bias": True, "transformer_output_bias": True}


def _last_offset(name: str) -> keras.layers.Layer:
    """Returns an RMSNorm.

    The last norm of the decoder gets an offset, because the encoder, with its norms, is built
    first.
    """
    from ..inside.last_offset import add_last_offset

    add_last_offset()
    return RMSNormalization(epsilon=_EPSILON, name=name)


def _row(name: str, label: str, **given) -> Condition:
    which = {"corpora": (CORPUS,), "seeds": 4, "first_seed": 501}
    return Condition(f"{CORPUS}-{name}", label, model_type="transformer", **which, **given)


CONDITIONS = [
    _row("rmsnorm", "RMSNorm", kind="rmsnorm"),
    _row("rmsnorm-biases", "RMSNorm with biases", kind="rmsnorm", options=_BIASES),
    _row("layernorm-biases", "LayerNorm with biases", kind="layernorm", options=_BIASES),
    _row("rmsnorm-last-offset", "RMSNorm, offset in the last norm", build=_last_offset),
]
