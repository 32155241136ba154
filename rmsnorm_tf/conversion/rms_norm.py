"""`replace_rms_norm`: RMSNormalization instead of the RMS norms of Keras and of other libraries."""

import contextlib
import inspect
import itertools

import keras
import numpy as np

from rmsnorm_tf.conversion.model.calls import check_model, modes_of
from rmsnorm_tf.conversion.model.check import convert_in_place
from rmsnorm_tf.conversion.model.in_place import axes_of, shape_of_input
from rmsnorm_tf.conversion.model.layers import walk
from rmsnorm_tf.conversion.model.report import Conversion, ConversionReport, listed
from rmsnorm_tf.conversion.model.saved import make_changes, new_changes
from rmsnorm_tf.norm.arguments import check_epsilon
from rmsnorm_tf.norm.layer import RMSNormalization

_HALF = ("float16", "bfloat16")


def replace_rms_norm(model: keras.Model) -> ConversionReport:
    """Puts our RMSNormalization into a model instead of other RMS norms, with the same outputs, and
    returns a report.

    A `keras.layers.RMSNormalization` is replaced by its config. Another layer counts as an RMS norm
    if it computes one over the last axis, as those of Llama, Gemma, Mistral, Qwen, T5 and others in
    KerasHub do: it has a gain as its only weight, or no weight and "norm" in the name of its class;
    an epsilon; and the same outputs for inputs and gains of several magnitudes, with the gain g or
    with 1 + g. The gain becomes float32.

    If more than 1% of the outputs differ in half precision, because a norm rounds in another place,
    its entry has their share. A norm stays if its call takes `training`, `mask` or another
    argument, if it computes a mask, or if another model has it too. The outputs are compared as in
    `fold_layer_norm`.

    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.RMSNormalization(name="norm")])
    >>> print(replace_rms_norm(model))
    norm: converted, the same norm with epsilon=1e-06

    Args:
        model: A built model. A compiled one must be compiled again.

    Returns: A report with an entry for each layer that is an RMS norm, or has "norm" in the name of
        its class and at most one weight.

    Raises:
        TypeError: This is no model.
        ValueError: The model has no input yet, or would have other outputs.
    """
    check_model("replace_rms_norm", model)
    return convert_in_place(model, lambda shared: _replace(model, shared), modes_of(model))


def _replace(model, shared):
    changes = new_changes()
    report = []
    others = (
        RMSNormalization,
        keras.layers.LayerNormalization,
        keras.layers.Normalization,
        keras.Model,
    )
    for path, name, layer in walk(model):
        is_named = "norm" in type(layer).__name__.lower()
        if isinstance(layer, others) or len(layer.weights) > 1 or not (layer.weights or is_named):
            continue
        found = shared.get(id(layer)) or _counterpart(layer)
        if isinstance(found, RMSNormalization):
            found = _why_it_stays(layer) or found
        elif not is_named:
            continue
        converted = isinstance(found, RMSNormalization)
        report.append(Conversion(name, converted, _in_words(layer, found) if converted else found))
        if converted:
            changes[path]["norm"] = keras.saving.serialize_keras_object(found)
    make_changes(model, changes)
    return report


def _why_it_stays(layer):
    """Returns why a layer that computes an RMS norm cannot be replaced, or None."""
    name = f"{layer.name} ({type(layer).__name__})"
    others = [*inspect.signature(layer.call).parameters][1:]
    if others:  # Keras passes `training` and `mask` on, whatever the class becomes
        return f"the call of {name} also takes {listed(others)}, which may change the outputs"
    if type(layer).compute_mask is not keras.layers.Layer.compute_mask:
        return f"{name} computes a mask"
    return None


def _counterpart(layer):
    """Returns an RMSNormalization that computes the same as a layer, or why there is none."""
    if not layer.built or "input_shape" not in (layer.get_build_config() or {}):
        return f"the model does not call {layer.name}"
    if type(layer) is keras.layers.RMSNormalization:
        return _counterpart_of_keras(layer)
    shape = layer.get_build_config()["input_shape"]
    required = [
        p for p in inspect.signature(layer.call).parameters.values() if p.default is p.empty
    ]
    takes_one_tensor = len(required) == 1 and all(
        size is None or isinstance(size, int) for size in shape
    )
    if takes_one_tensor and all(len(weight.shape) == 1 for weight in layer.weights):
        for epsilon, zero_centered in itertools.product(
            _epsilons(layer), (False, True)[: 1 + len(layer.weights)]
        ):
            like = _like(layer, epsilon, zero_centered_scale=zero_centered)
            if _computes_the_same(layer, like):
                return like
    return (
        f"{layer.name} ({type(layer).__name__}) does not compute an RMS norm over the last axis, with an epsilon "
        "that one of its attributes holds"
    )


def _counterpart_of_keras(layer):
    """Reads the config.

    Keras computes the mean over any axes, but always multiplies the gain along the last ones.
    """
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
    alone = not isinstance(layer.dtype_policy, keras.dtype_policies.DTypePolicyMap)
    with _in_float32(layer) if alone and layer.compute_dtype in _HALF else contextlib.nullcontext():
        ways = [(magnitude, 128.0) for magnitude in magnitudes] + [(1.0, 2.0**20)]
        if not all(_differences(layer, like, *way)[1] <= _tolerance(layer) for way in ways):
            return False
    return _differences(layer, like, 1.0)[1] <= _tolerance(layer)


def _in_words(layer, like):
    gain = ", a gain of 1 + scale" if like.zero_centered_scale else ""
    words = f"the same norm with epsilon={like.epsilon}{gain}"
    dtype = layer.compute_dtype
    if dtype not in _HALF:
        return words
    share, largest = _differences(layer, like, 1.0, largest_gain=None)
    if share > 0.01:  # fewer is the order of a sum
        words += f"; in {dtype} {share:.0%} of the outputs differ, by at most {largest:.1%} of the largest"
    if dtype == "float16" and _differences(layer, like, 1e3)[1] > _tolerance(layer):
        words += "; in float16 it overflowed for large inputs, and no longer does"
    return words


def _tolerance(layer):
    """Returns how far outputs may be apart, relative to the largest."""
    return 5e-2 if layer.compute_dtype in _HALF else 1e-5


@contextlib.contextmanager
def _in_float32(layer):
    """Makes a layer compute in float32. Its policy must be no map, which would keep that for it."""
    policy = layer.dtype_policy
    layer.dtype_policy = "float32"
    try:
        yield
    finally:
        layer.dtype_policy = policy


def _differences(layer, like, magnitude, largest_gain=128.0):
    """Compares two norms in the compute dtype of the first, on random inputs and gains, some far
    from the others.

    Gains are powers of two, which hide where a norm rounds, or with None ordinary numbers.

    Returns: The share of the outputs that differ, and the largest difference relative to the
        largest output, or infinity.
    """
    rng = np.random.default_rng(0)
    shape = [(3 if axis else 8) if n is None else n for axis, n in enumerate(shape_of_input(layer))]
    dtype = layer.compute_dtype
    x = (magnitude * rng.normal(0.5, 1.0, shape) ** (1 if dtype in _HALF else 3)).astype("float32")
    x.reshape(-1, shape[-1])[0, 1:] *= 1e-3  # one entry stands out, as far as it can
    x = keras.ops.cast(x, dtype)
    kept = layer.get_weights()
    powers = [
        rng.permutation(np.resize(np.arange(0, -11, -1), w.size)) for w in kept
    ]  # 1 + gain is exact in bfloat16
    signs = [rng.choice([-1, 1], w.shape) for w in kept]
    gains = [sign * (largest_gain or 1) * 2.0**k for sign, k in zip(signs, powers, strict=True)]
    if largest_gain is None:
        gains = [rng.uniform(0.5, 2.0, w.shape) for w in kept]
    try:
        layer.set_weights(gains)
        other = RMSNormalization.from_config({**like.get_config(), "dtype": dtype, "fused": False})
        other.build(shape)
        other.set_weights(layer.get_weights())
        expected, actual = (
            keras.ops.convert_to_numpy(keras.ops.cast(n(x), "float64")) for n in (layer, other)
        )
    except Exception:  # a layer that takes other inputs than a norm raises anything
        return 1.0, np.inf
    finally:
        layer.set_weights(kept)
    if actual.shape != expected.shape or not np.isfinite(expected).all() or not expected.any():
        return 1.0, np.inf
    return np.mean(actual != expected), np.max(abs(actual - expected)) / np.max(abs(expected))
