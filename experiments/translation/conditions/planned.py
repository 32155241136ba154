"""Declares the conditions of PLAN.md, PLAN-pre-norm.md and PLAN-biases.md of experiments/.

Their seeds are those of no earlier training.
"""

import keras

from rmsnorm_tf import RMSNormalization

from ..condition import Condition

_KINDS = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm", "prmsnorm": "pRMSNorm"}
_EPSILON = 1e-5  # of the patched kinds
_BIASES = {"transformer_attention_bias": True, "transformer_output_bias": True}


def _without_offset(name: str) -> keras.layers.Layer:
    return keras.layers.LayerNormalization(epsilon=_EPSILON, center=False, name=name)


def _with_offset(name: str) -> keras.layers.Layer:
    return RMSNormalization(epsilon=_EPSILON, center=True, name=name)


def _centred_positions(name: str) -> keras.layers.Layer:
    """Returns an RMSNorm.

    The model's sinusoids lose their mean, because its norms are built before it is traced.
    """
    from ..inside.changes import centre_positions

    centre_positions()
    return RMSNormalization(epsilon=_EPSILON, name=name)


def _last_offset(name: str) -> keras.layers.Layer:
    """Returns an RMSNorm.

    The last norm of the decoder gets an offset, because the encoder, with its norms, is built
    first.
    """
    from ..inside.changes import add_last_offset

    add_last_offset()
    return RMSNormalization(epsilon=_EPSILON, name=name)


def _row(corpus: str, name: str, label: str, first_seed: int, seeds: int, **given) -> Condition:
    given = {"model_type": "transformer", **given}
    which = {"corpora": (corpus,), "seeds": seeds, "first_seed": first_seed}
    return Condition(f"{corpus}-{name}", label, **which, **given)


def _rows(corpus: str, model: str, model_type: str, **seeds: int) -> list[Condition]:
    return [
        _row(corpus, kind, f"{_KINDS[kind]}, {model}", 101, count, kind=kind, model_type=model_type)
        for kind, count in seeds.items()
    ]


def _pre_norm(name: str, label: str, **given) -> Condition:
    return _row("multi30k_pre_norm", name, label, 301, 4, **given)


def _biases(name: str, label: str, **given) -> Condition:
    return _row("multi30k_biases", name, label, 501, 4, **given)


CONDITIONS = [
    _biases("rmsnorm", "RMSNorm", kind="rmsnorm"),
    _biases("rmsnorm-biases", "RMSNorm with biases", kind="rmsnorm", options=_BIASES),
    _biases("layernorm-biases", "LayerNorm with biases", kind="layernorm", options=_BIASES),
    _biases("rmsnorm-last-offset", "RMSNorm, offset in the last norm", build=_last_offset),
    *_rows("multi30k_rnn", "RNN", "rnn", layernorm=8, rmsnorm=8, prmsnorm=8),
    *_rows("multi30k_post", "post-norm", "transformer", layernorm=6, rmsnorm=6),
    *_rows("multi30k_pre", "pre-norm", "transformer", layernorm=5, rmsnorm=5, prmsnorm=3),
    _row(
        "multi30k_pre",
        "rmsnorm-offset",
        "RMSNorm with an offset, pre-norm",
        101,
        5,
        build=_with_offset,
    ),
    _pre_norm("layernorm", "LayerNorm", kind="layernorm"),
    _pre_norm("rmsnorm", "RMSNorm", kind="rmsnorm"),
    _pre_norm("layernorm-no-offset", "LayerNorm without offset", build=_without_offset),
    _pre_norm("rmsnorm-offset", "RMSNorm with an offset", build=_with_offset),
    _pre_norm("rmsnorm-centred-positions", "RMSNorm, centred sinusoids", build=_centred_positions),
]
