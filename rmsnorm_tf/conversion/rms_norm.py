"""`replace_rms_norm` puts RMSNormalization in the place of RMS norms of Keras and others."""

import contextlib
import inspect
import itertools
from collections import defaultdict

import keras
import numpy as np

from rmsnorm_tf.conversion.model.calls import check_model
from rmsnorm_tf.conversion.model.check import convert_in_place
from rmsnorm_tf.conversion.model.in_place import shape_of_input
from rmsnorm_tf.conversion.model.layers import walk
from rmsnorm_tf.conversion.model.report import Conversion, ConversionReport, Stays, listed
from rmsnorm_tf.conversion.model.saved import make_changes
from rmsnorm_tf.norm.arguments import check_epsilon
from rmsnorm_tf.norm.layer import RMSNormalization

_HALF = ("float16", "bfloat16")
_NO_RMS_NORM = (
    RMSNormalization,
    keras.layers.LayerNormalization,
    keras.layers.Normalization,
    keras.Model,
)


def replace_rms_norm(model: keras.Model) -> ConversionReport:
    """Replaces other RMS norms in a model by RMSNormalization with the same outputs.

    A layer counts as an RMS norm if it computes one over the last axis, as that of Keras and those
    of Llama, Gemma, Mistral, Qwen, T5 and others in KerasHub do: it has a gain as its only weight,
    or no weight and "norm" in the name of its class; an epsilon; and the same outputs for inputs
    and gains of several magnitudes, with the gain g or with 1 + g. The gain becomes float32.

    In half precision a norm may round in another place. A norm stays if its call takes `training`,
    `mask` or another argument, if it computes a mask, or if another model has it too. The outputs
    are compared as in `fold_layer_norm`.

    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.RMSNormalization(name="norm")])
    >>> print(replace_rms_norm(model))
    norm: converted, the same norm with epsilon=1e-06

    Args:
        model: A built model. A compiled one must be compiled again.

    Returns:
        A report with an entry for each layer that is an RMS norm, or has "norm" in the name of its
        class and at most one weight.

    Raises:
        TypeError: This is no model.
        ValueError: The model has no input yet, or would have other outputs.
    """
    check_model("replace_rms_norm", model)
    return convert_in_place(model, lambda shared: _replace(model, shared))


def _replace(model, shared):
    changes = defaultdict(dict)
    report = []
    for path, name, layer in walk(model):
        is_named = "norm" in type(layer).__name__.lower()
        may_be_norm = len(layer.weights) == 1 or (is_named and not layer.weights)
        if isinstance(layer, _NO_RMS_NORM) or not may_be_norm:
            continue
        found = Stays(shared[id(layer)]) if id(layer) in shared else _counterpart(layer)
        if isinstance(found, RMSNormalization):
            changes[path]["norm"] = keras.saving.serialize_keras_object(found)
            gain = ", a gain of 1 + scale" if found.zero_centered_scale else ""
            why = f"the same norm with epsilon={found.epsilon}{gain}"
            report.append(Conversion(name, True, why))
        elif is_named:
            report.append(Conversion(name, False, found.reason))
    make_changes(model, changes)
    return report


def _counterpart(layer):
    """Returns an RMSNormalization that computes the same as a layer, or why it stays."""
    if not layer.built or "input_shape" not in (layer.get_build_config() or {}):
        return Stays(f"the model does not call {layer.name}")
    name = f"{layer.name} ({type(layer).__name__})"
    found = next(filter(lambda like: _computes_the_same(layer, like), _candidates(layer)), None)
    # Keras passes `training` and `mask` on, whatever the class becomes.
    others = [*inspect.signature(layer.call).parameters][1:]
    if found is None:
        return Stays(
            f"{name} does not compute an RMS norm over the last axis, with an epsilon that one of "
            "its attributes holds"
        )
    if others:
        return Stays(
            f"the call of {name} also takes {listed(others)}, which may change the outputs"
        )
    if type(layer).compute_mask is not keras.layers.Layer.compute_mask:
        return Stays(f"{name} computes a mask")
    return found


def _candidates(layer):
    """Yields the norms that a layer may be, with each attribute that may be the epsilon."""
    parameters = inspect.signature(layer.call).parameters.values()
    shapes = [layer.get_build_config()["input_shape"], *(weight.shape for weight in layer.weights)]
    takes_one_tensor = sum(p.default is p.empty for p in parameters) == 1
    are_plain = all(size is None or isinstance(size, int) for size in shapes[0])
    if not takes_one_tensor or not are_plain or any(len(shape) != 1 for shape in shapes[1:]):
        return
    epsilons = set()
    for value in vars(layer).values():
        with contextlib.suppress(ValueError):
            epsilons.add(check_epsilon(value))
    [weight] = layer.weights or [None]
    gains = (False,) if weight is None else (False, True)
    for epsilon, zero_centered in itertools.product(sorted(epsilons), gains):
        yield RMSNormalization(
            epsilon=epsilon,
            scale=weight is not None,
            zero_centered_scale=zero_centered,
            scale_regularizer=getattr(weight, "regularizer", None),
            scale_constraint=getattr(weight, "constraint", None),
            supports_masking=layer.supports_masking,
            name=layer.name,
            dtype=layer.dtype_policy,
        )


def _computes_the_same(layer, like):
    """Returns whether two norms agree: in float32 for all magnitudes, else for ordinary ones."""
    magnitudes = (like.epsilon**0.5, 1.0, 1e3, 1e6, 1e12)  # epsilon counts for small inputs
    ways = [(magnitude, 128.0) for magnitude in magnitudes] + [(1.0, 2.0**20)]
    policy = layer.dtype_policy
    is_map = isinstance(policy, keras.dtype_policies.DTypePolicyMap)  # would keep another policy
    try:
        if layer.compute_dtype in _HALF and not is_map:
            layer.dtype_policy = "float32"
        agrees = all(_agree(layer, like, *way) for way in ways)
    finally:
        if not is_map:
            layer.dtype_policy = policy
    return agrees and _agree(layer, like, 1.0, 128.0)


def _agree(layer, like, magnitude, largest_gain):
    """Compares two norms in the compute dtype of the first, with some entries far from the others.

    Gains are powers of two, with which it does not matter where a norm rounds.
    """
    rng = np.random.default_rng(0)
    batch, *sizes = shape_of_input(layer)
    shape = [batch or 8, *(size or 3 for size in sizes)]
    dtype = layer.compute_dtype
    x = (magnitude * rng.normal(0.5, 1.0, shape) ** (1 if dtype in _HALF else 3)).astype("float32")
    x.reshape(-1, shape[-1])[0, 1:] *= 1e-3  # one entry stands out, as far as it can
    x = keras.ops.cast(x, dtype)
    kept = layer.get_weights()
    # 1 + gain is exact in bfloat16.
    powers = [rng.permutation(np.resize(np.arange(0, -11, -1), w.size)) for w in kept]
    signs = [rng.choice([-1, 1], w.shape) for w in kept]
    other = RMSNormalization.from_config({**like.get_config(), "dtype": dtype, "fused": False})
    try:
        layer.set_weights(
            [sign * largest_gain * 2.0**k for sign, k in zip(signs, powers, strict=True)]
        )
        other.build(shape)
        other.set_weights(layer.get_weights())
        expected, actual = (
            keras.ops.convert_to_numpy(keras.ops.cast(n(x), "float64")) for n in (layer, other)
        )
    except Exception:  # a layer that takes other inputs than a norm raises anything
        return False
    finally:
        layer.set_weights(kept)
    if actual.shape != expected.shape or not np.isfinite(expected).all() or not expected.any():
        return False
    tolerance = 5e-2 if dtype in _HALF else 1e-5
    return np.max(abs(actual - expected)) <= tolerance * np.max(abs(expected))
