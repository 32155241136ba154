"""`replace_rms_norm`: RMSNormalization instead of the RMS norms of Keras and of other libraries."""

import contextlib
import inspect
import itertools

import keras
import numpy as np

from rmsnorm_tf.conversion.model.calls import modes_of
from rmsnorm_tf.conversion.model.check import convert_and_check
from rmsnorm_tf.conversion.model.copy import check_copyable, copy_of, why_shared
from rmsnorm_tf.conversion.model.in_place import axes_of, shape_of_input
from rmsnorm_tf.conversion.model.layers import walk
from rmsnorm_tf.conversion.model.report import Conversion, listed
from rmsnorm_tf.conversion.model.saved import Changes
from rmsnorm_tf.norm.arguments import check_epsilon
from rmsnorm_tf.norm.layer import RMSNormalization


def replace_rms_norm(model: keras.Model) -> tuple[keras.Model, list[Conversion]]:
    """Returns a new model with our RMSNormalization instead of other RMS norms, the same outputs, and a report.

    A `keras.layers.RMSNormalization` is replaced by its config. Another layer counts as an RMS norm if it computes one
    over the last axis: it has a gain as its only weight, or no weight and "norm" in the name of its class; an epsilon;
    and the same outputs as `RMSNormalization` for inputs and gains of several magnitudes in the shape that it was
    built for, with the gain g or with 1 + g. So the norms of Llama, Gemma, Mistral, Qwen, T5 and others in KerasHub
    are replaced, wherever the model has them. The gain becomes float32. A norm that drops masks still drops them.

    A norm stays if its call takes `training`, `mask` or another argument, if it computes a mask, or if its gain is
    never trained. The outputs are compared as in `fold_layer_norm`. The given model does not change; the new one is
    not compiled.

    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.RMSNormalization(name="norm")])
    >>> replaced, report = replace_rms_norm(model)
    >>> report
    [Conversion(name='norm', converted=True, reason='the same norm with epsilon=1e-06')]

    Args:
        model: A sequential or functional model with an input, or a subclass of these with a config.

    Returns:
        The new model, and an entry for each layer that is an RMS norm, or has "norm" in the name of its class and at
        most one weight.

    Raises:
        TypeError: The model is subclassed.
        ValueError: As in `fold_layer_norm`.
    """
    check_copyable(model)
    return convert_and_check(model, modes_of(model), lambda left_out: _replace(model, left_out))


def _replace(model, left_out):
    """Returns a copy with all norms replaced but the ones left out, the report, and the names of the replaced ones."""
    copy, shared = copy_of(model), why_shared(model)
    changes, report = Changes(copy), []
    for path, name, layer in walk(copy):
        if not _may_be_norm(layer):
            continue
        found = shared.get(id(layer)) or _counterpart(layer)
        if isinstance(found, RMSNormalization):
            found = _why_it_stays(layer) or left_out.get(name) or found
        elif not _has_norm_in_name(layer):
            continue
        converted = isinstance(found, RMSNormalization)
        report.append(Conversion(name, converted, _in_words(layer, found) if converted else found))
        if converted:
            changes.turn_into(path, found)
    changes.make()
    return copy, report, [entry.name for entry in report if entry.converted]


def _may_be_norm(layer):
    """Whether a layer has a gain as its only weight, or no weight and "norm" in the name of its class."""
    if isinstance(layer, (RMSNormalization, keras.layers.LayerNormalization, keras.layers.Normalization, keras.Model)):
        return False
    return len(layer.weights) == 1 or (not layer.weights and _has_norm_in_name(layer))


def _has_norm_in_name(layer):
    return "norm" in type(layer).__name__.lower()


def _in_words(layer, like):
    gain = ", a gain of 1 + scale" if like.zero_centered_scale else ""
    return f"the same norm with epsilon={like.epsilon}{gain}" + (_overflow(layer, like) or "")


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
    """Returns an RMSNormalization that computes the same as a layer, or why there is none."""
    if not layer.built or "input_shape" not in (layer.get_build_config() or {}):
        return f"the model does not call {layer.name}"
    if type(layer) is keras.layers.RMSNormalization:
        return _counterpart_of_keras(layer)
    candidates = itertools.product(_epsilons(layer), (False, True)[: 1 + len(layer.weights)])
    likes = (_like(layer, epsilon, zero_centered_scale=zero_centered) for epsilon, zero_centered in candidates)
    if all(len(weight.shape) == 1 for weight in layer.weights) and _takes_one_tensor(layer):
        for like in likes:
            if _computes_the_same(layer, like):
                return like
    return (
        f"{layer.name} ({type(layer).__name__}) does not compute an RMS norm over the last axis, with an epsilon "
        "that one of its attributes holds"
    )


def _counterpart_of_keras(layer):
    """Reads the config. Keras computes the mean over any axes, but always multiplies the gain along the last ones."""
    axes = axes_of(layer)
    shape = tuple(layer.get_build_config()["input_shape"])
    if [axis % len(shape) for axis in axes] != list(range(len(shape) - len(axes), len(shape))):
        return (
            f"{layer.name} normalizes over axis {listed(list(map(str, axes)))} of an input of shape {shape}, but "
            "multiplies its gain along the last axes"
        )
    try:
        return _like(layer, check_epsilon(layer.epsilon), axis=axes[0] if len(axes) == 1 else axes)
    except ValueError:
        return f"{layer.name} has epsilon={layer.epsilon}, which RMSNormalization does not accept"


def _takes_one_tensor(layer):
    shape = layer.get_build_config()["input_shape"]
    required = [p for p in inspect.signature(layer.call).parameters.values() if p.default is p.empty]
    return len(required) == 1 and all(size is None or isinstance(size, int) for size in shape)


def _epsilons(layer):
    """Returns the attributes that may be the epsilon, as Python floats."""
    found = set()
    for value in vars(layer).values():
        with contextlib.suppress(ValueError):
            found.add(check_epsilon(value))
    return sorted(found)


def _like(layer, epsilon, **arguments):
    [weight] = layer.weights or [None]
    return RMSNormalization(
        epsilon=epsilon,
        scale=weight is not None,
        scale_regularizer=getattr(weight, "regularizer", None),
        scale_constraint=getattr(weight, "constraint", None),
        supports_masking=layer.supports_masking,
        name=layer.name,
        dtype=layer.dtype_policy,
        **arguments,
    )


def _computes_the_same(layer, like):
    """Whether two norms agree: in float32 for all magnitudes, and in their own dtype for ordinary ones."""
    magnitudes = (like.epsilon**0.5, 1.0, 1e3, 1e6, 1e12)  # epsilon counts for small inputs
    with _in_float32(layer):
        if not all(_agree(layer, like, magnitude) for magnitude in magnitudes):
            return False
        if not _agree(layer, like, 1.0, largest_gain=2.0**20):
            return False
    return _agree(layer, like, 1.0)


def _overflow(layer, like):
    """Returns what to say of a norm that squares in float16, or None."""
    if layer.compute_dtype != "float16" or _agree(layer, like, 1e3):
        return None
    return "; in float16 it overflowed for large inputs, and no longer does"


@contextlib.contextmanager
def _in_float32(layer):
    """Makes a layer compute in float32, unless its policy is shared with other layers or is wider."""
    policy = layer.dtype_policy
    if layer.compute_dtype not in ("float16", "bfloat16") or isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        yield
        return
    layer.dtype_policy = "float32"
    try:
        yield
    finally:
        layer.dtype_policy = policy


def _agree(layer, like, magnitude, largest_gain=128.0):
    """Whether two norms have the same outputs for random inputs and gains, some of them far from the others."""
    rng = np.random.default_rng(0)
    shape = [(3 if axis else 8) if n is None else n for axis, n in enumerate(shape_of_input(layer))]
    half = layer.compute_dtype in ("float16", "bfloat16")
    x = (magnitude * rng.normal(0.5, 1.0, shape) ** (1 if half else 3)).astype("float32")
    x.reshape(-1, shape[-1])[0, 1:] *= 1e-3  # one entry stands out, as far as it can
    kept = layer.get_weights()
    powers = [rng.permutation(np.resize(np.arange(0, -11, -1), w.size)) for w in kept]  # 1 + gain is exact in bfloat16
    signs = [rng.choice([-1, 1], w.shape) for w in kept]
    gains = [sign * largest_gain * 2.0**k for sign, k in zip(signs, powers, strict=True)]
    tolerance = 5e-2 if half else 1e-5
    try:
        layer.set_weights(gains)
        other = RMSNormalization.from_config({**like.get_config(), "dtype": "float32", "fused": False})
        other.build(shape)
        other.set_weights(layer.get_weights())
        expected, actual = (keras.ops.convert_to_numpy(keras.ops.cast(n(x), "float64")) for n in (layer, other))
    except Exception:  # a layer that takes other inputs than a norm raises anything
        return False
    finally:
        layer.set_weights(kept)
    return actual.shape == expected.shape and np.max(abs(actual - expected)) <= tolerance * np.max(abs(expected))
