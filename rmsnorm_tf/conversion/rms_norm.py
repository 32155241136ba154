"""`replace_rms_norm`: RMSNormalization instead of the RMS norms of Keras and of other libraries."""

import contextlib
import inspect

import keras
import numpy as np

from rmsnorm_tf.conversion.copy import copy_of, walk, why_shared
from rmsnorm_tf.conversion.layer_norm import Conversion
from rmsnorm_tf.conversion.reasons import listed
from rmsnorm_tf.conversion.saved import Changes
from rmsnorm_tf.norm.arguments import check_epsilon
from rmsnorm_tf.norm.layer import RMSNormalization


def replace_rms_norm(model: keras.Model) -> tuple[keras.Model, list[Conversion]]:
    """Returns a new model with our RMSNormalization instead of other RMS norms, the same outputs, and a report.

    A layer counts as an RMS norm if it computes one: it has a gain as its only weight, or no weight and "norm" in the
    name of its class; an epsilon; and on random inputs and gains the same outputs as `RMSNormalization`, with the gain
    g or with 1 + g. So `keras.layers.RMSNormalization` is replaced, and so are the norms of Llama, Gemma, Mistral,
    Qwen, T5 and others in KerasHub, wherever the model has them. A norm that drops masks still drops them. A norm stays
    if its call takes `training`, `mask` or another argument, if it computes a mask, or if its gain is never trained.
    The given model does not change; the new one is not compiled.

    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.RMSNormalization(name="norm")])
    >>> replaced, report = replace_rms_norm(model)
    >>> report
    [Conversion(name='norm', converted=True, reason='the same norm with epsilon=1e-06')]

    Args:
        model: A sequential or functional model with an input, or a subclass of these with a config.

    Returns:
        The new model, and an entry for each layer that is an RMS norm or has "norm" in the name of its class and a
        single weight.

    Raises:
        TypeError: The model is subclassed.
        ValueError: As in `fold_layer_norm`.
    """
    copy = copy_of(model)
    shared = why_shared(model)
    changes, report = Changes(copy), []
    for path, name, layer in walk(copy):
        if not _may_be_norm(layer):
            continue
        like = None if id(layer) in shared else _counterpart(layer)
        if like is None and not _looks_like_norm(layer):
            continue
        why = shared.get(id(layer)) or (_why_different(layer) if like is None else _why_it_stays(layer))
        gain = ", a gain of 1 + scale" if like is not None and like.zero_centered_scale else ""
        report.append(Conversion(name, why is None, why or f"the same norm with epsilon={like.epsilon}{gain}"))
        if why is None:
            changes.turn_into(path, like)
    changes.make()
    return copy, report


def _may_be_norm(layer):
    """Whether a layer has a gain as its only weight, or no weight and "norm" in the name of its class."""
    if isinstance(layer, (RMSNormalization, keras.layers.LayerNormalization, keras.Model)):
        return False
    if isinstance(layer, keras.layers.RMSNormalization):
        return True
    return layer.built and (len(layer.weights) == 1 or (not layer.weights and _has_norm_in_name(layer)))


def _looks_like_norm(layer):
    """Whether to report a layer that computes something else."""
    return isinstance(layer, keras.layers.RMSNormalization) or (bool(layer.weights) and _has_norm_in_name(layer))


def _has_norm_in_name(layer):
    return "norm" in type(layer).__name__.lower()


def _why_different(layer):
    """Returns why no RMSNormalization computes the same as a layer."""
    if isinstance(layer, keras.layers.RMSNormalization) and (not layer.built or len(layer.scale.shape) > 1):
        return f"{layer.name} normalizes several axes, or is not built"
    return f"{layer.name} ({type(layer).__name__}) computes something else than an RMS norm over the last axis"


def _why_it_stays(layer):
    """Returns why a layer that computes an RMS norm cannot be replaced, or None."""
    name = f"{layer.name} ({type(layer).__name__})"
    others = [*inspect.signature(layer.call).parameters][1:]
    if others:  # Keras passes `training` and `mask` on, whatever the class becomes
        return f"the call of {name} also takes {listed(others)}, which may change the outputs"
    if type(layer).compute_mask is not keras.layers.Layer.compute_mask:
        return f"{name} computes a mask"
    if any(_is_never_trained(layer, weight) for weight in layer.weights):
        return f"{name} has a gain that is never trained, which the config of an RMSNormalization does not say"
    return None


def _is_never_trained(layer, weight):
    """Whether a weight stays frozen when its layer is trained."""
    kept = layer.trainable, weight.trainable
    layer.trainable = True
    frozen = not weight.trainable
    layer.trainable, weight.trainable = kept
    return frozen


def _counterpart(layer):
    """Returns an RMSNormalization that computes the same as a layer, or None."""
    if not layer.built or any(len(weight.shape) != 1 for weight in layer.weights):
        return None
    required = [p for p in inspect.signature(layer.call).parameters.values() if p.default is p.empty]
    if len(required) != 1:
        return None
    kept = layer.get_weights()
    rng = np.random.default_rng(0)
    try:
        layer.set_weights([rng.normal(size=weight.shape) for weight in layer.weights])
        for epsilon in _epsilons(layer):
            for zero_centered in (False, True)[: 1 + len(kept)]:
                if _same_outputs(layer, _like(layer, epsilon, zero_centered), rng):
                    return _like(layer, epsilon, zero_centered)
    finally:
        layer.set_weights(kept)
    return None


def _epsilons(layer):
    """Returns the attributes that may be the epsilon, as Python floats."""
    found = set()
    for value in vars(layer).values():
        with contextlib.suppress(ValueError):
            found.add(check_epsilon(value))
    return sorted(found)


def _like(layer, epsilon, zero_centered):
    [weight] = layer.weights or [None]
    return RMSNormalization(
        epsilon=epsilon,
        scale=weight is not None,
        zero_centered_scale=zero_centered,
        scale_regularizer=getattr(weight, "regularizer", None),
        scale_constraint=getattr(weight, "constraint", None),
        supports_masking=layer.supports_masking,
        name=layer.name,
        dtype=layer.dtype_policy,
    )


def _same_outputs(layer, like, rng):
    """Whether two norms agree on ordinary inputs, and on small ones, where epsilon counts."""
    size = layer.weights[0].shape[0] if layer.weights else 8
    tolerance = {"float16": 3e-3, "bfloat16": 2e-2}.get(layer.compute_dtype, 1e-5)
    for scale in (1.0, like.epsilon**0.5):
        x = (scale * rng.normal(0.5, 1.0, (2, 3, size))).astype("float32")
        try:
            expected = keras.ops.convert_to_numpy(keras.ops.cast(layer(x), "float32"))
        except Exception:  # a layer that takes other inputs than a norm raises anything
            return False
        if not like.built:
            like.build(x.shape)
            like.set_weights(layer.get_weights())
        actual = keras.ops.convert_to_numpy(keras.ops.cast(like(x), "float32"))
        if actual.shape != expected.shape or np.max(abs(actual - expected)) > tolerance * np.max(abs(expected)):
            return False
    return True
