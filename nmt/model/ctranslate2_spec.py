"""Converts a Transformer to a model specification of CTranslate2, with its weights.

Reference: https://opennmt.net/CTranslate2/python/ctranslate2.specs.TransformerSpec.html
"""

from typing import Any

import keras
import numpy as np
from ctranslate2.specs import Activation, TransformerSpec, attention_spec, common_spec, model_spec

from ..errors import UserError
from .multi_head_attention import MultiHeadAttention
from .transformer_layers import TransformerLayer, sinusoids

_ACTIVATIONS = {
    "relu": Activation.RELU,
    "swish": Activation.SWISH,
    "gelu": Activation.GELU,
    "gelu_tanh": Activation.GELUTanh,
}


def build_spec(model, longest: int) -> TransformerSpec:
    """Returns the specification of a `transformer.Transformer`, without vocabularies.

    Padding is left out, as CTranslate2's own converters do, so the costs of words lack its part.
    """
    attention = model.encoder.stack[0].attention
    padding = model.decoder.padding
    spec = TransformerSpec.from_config(
        (len(model.encoder.stack), len(model.decoder.stack)),
        attention.heads,
        pre_norm=model.encoder.stack[0].attention_residual.is_pre,
        activation=_ACTIVATIONS[model.encoder.stack[0].feed_forward.activation],
        rms_norm=_is_rms(model.encoder.stack[0].attention_residual.norm, attention.units),
    )
    if padding and np.any(model.decoder.embedding.table[-1]):
        raise UserError(
            "CTranslate2 begins with an embedding of zeros, and that of this model's padding has "
            "others; export it with --format savedmodel"
        )
    spec.decoder.start_from_zero_embedding = padding > 0
    spec.config.layer_norm_epsilon = model.encoder.stack[0].attention_residual.norm.epsilon
    positions = sinusoids(0, longest, attention.units, model.encoder.positions).numpy()
    for side, part, embeddings in (
        (spec.encoder, model.encoder, spec.encoder.embeddings[0]),
        (spec.decoder, model.decoder, spec.decoder.embeddings),
    ):
        is_of_target = part.embedding is model.decoder.embedding  # the table that has padding
        embeddings.weight = _without_padding(part.embedding.table, padding * is_of_target)
        side.position_encodings.encodings = positions
        if side.pre_norm:
            _set_norm(side.layer_norm, part.final_norm)
        for layer_spec, layer in zip(side.layer, part.stack, strict=True):
            _set_layer(layer_spec, layer)
    projection = spec.decoder.projection
    projection.weight, *bias = (
        _without_padding(each, padding) for each in model.decoder.output_layer
    )
    if bias:
        (projection.bias,) = bias
    return spec


def _without_padding(table: Any, padding: int) -> np.ndarray:
    return table.numpy()[: table.shape[0] - padding]


def _is_rms(norm: keras.layers.Layer, units: int) -> bool:
    """Returns whether a layer is RMSNorm, and not LayerNorm, by what it computes."""
    x = np.random.default_rng(0).normal(1, 1, [8, units]).astype(np.float32)
    gain, *bias = _weights(norm) or [None]
    if gain is not None:
        centred = x - x.mean(-1, keepdims=True) if bias else x
        expected = centred / np.sqrt(
            np.square(centred).mean(-1, keepdims=True) + norm.epsilon
        ) * gain + sum(bias)
        if np.allclose(norm(x), expected, rtol=1e-4, atol=1e-5):
            return not bias
    raise UserError(
        "CTranslate2 has LayerNorm and RMSNorm over all entries, and this model normalizes in "
        "another way; export it with --format savedmodel"
    )


def _set_layer(spec: model_spec.LayerSpec, layer: TransformerLayer) -> None:
    _set_attention(spec.self_attention, layer.attention)
    _set_norm(spec.self_attention.layer_norm, layer.attention_residual.norm)
    if layer.cross_attention is not None:
        _set_attention(spec.attention, layer.cross_attention)
        _set_norm(spec.attention.layer_norm, layer.cross_residual.norm)
    inner = spec.ffn.linear_0
    outer = spec.ffn.linear_1
    feed = layer.feed_forward
    inner.weight = _transposed(feed.inner_kernel)
    inner.bias = feed.inner_bias.numpy()
    outer.weight = _transposed(feed.outer_kernel)
    outer.bias = feed.outer_bias.numpy()
    _set_norm(spec.ffn.layer_norm, layer.feed_forward_residual.norm)


def _set_attention(
    spec: attention_spec.MultiHeadAttentionSpec, attention: MultiHeadAttention
) -> None:
    """Sets the projections, fused: all three in self-attention, keys and values in the other."""
    *inputs, output = spec.linear
    each = attention.projections
    parts = [each] if len(inputs) == 1 else [each[:1], each[1:]]
    for linear, projections in zip(
        [*inputs, output], [*parts, [attention.output_projection]], strict=True
    ):
        kernels, *biases = zip(*projections, strict=True)
        linear.weight = _transposed(*kernels)
        for bias in biases:
            linear.bias = np.concatenate([part.numpy() for part in bias])


def _set_norm(spec: common_spec.LayerNormSpec, norm: keras.layers.Layer) -> None:
    spec.gamma, *bias = _weights(norm)
    if bias:
        (spec.beta,) = bias


def _transposed(*kernels: keras.Variable) -> np.ndarray:
    """Returns matrices side by side, `[outputs, inputs]`."""
    return np.ascontiguousarray(np.concatenate([kernel.numpy() for kernel in kernels], 1).T)


def _weights(layer: keras.layers.Layer) -> list[np.ndarray]:
    return [weight.numpy() for weight in layer.weights]
