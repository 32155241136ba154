"""`fold_layer_norm` and `replace_layer_norm` make RMSNorm models from LayerNorm models."""

from collections import defaultdict

import keras

from rmsnorm_tf.conversion.model.calls import ON_TENSORFLOW, check_model
from rmsnorm_tf.conversion.model.check import MODES, convert_in_place
from rmsnorm_tf.conversion.model.in_place import counterpart, is_cell_with_layer_norm
from rmsnorm_tf.conversion.model.norms import layer_norms, why_no_counterpart
from rmsnorm_tf.conversion.model.report import Conversion, ConversionReport
from rmsnorm_tf.conversion.model.saved import make_changes
from rmsnorm_tf.norm.arguments import check_flag


def fold_layer_norm(model: keras.Model, for_inference: bool = False) -> ConversionReport:
    """Changes a model from LayerNorm to RMSNorm with the same outputs, and returns a report.

    LayerNorm(x) = RMSNorm(x - mean(x)). So a norm is folded if its input is made by affine maps and
    their sums, and only LayerNorms see the mean of that input: the weights of these maps are
    centred, and the norm becomes an `RMSNormalization` with the same gain, offset and epsilon. If
    no weights can centre a residual stream, its mean is subtracted once, if that serves several
    norms. Outputs are equal up to rounding: they are compared on random inputs.

    >>> dense = keras.layers.Dense(4, name="dense")
    >>> norm = keras.layers.LayerNormalization(name="norm")
    >>> model = keras.Sequential([keras.Input((3,)), dense, norm])
    >>> x = keras.random.normal((2, 3))
    >>> before = model(x)
    >>> print(fold_layer_norm(model))
    norm: converted, centring folded into dense
    >>> bool(keras.ops.all(abs(model(x) - before) < 1e-5))
    True

    Norms inside nested models and inside any layer are found, those of KerasHub included. Recurrent
    layers with `normalization="layer"` are folded by themselves. A layer that another model has too
    stays.

    Args:
        model: A built model. A compiled one must be compiled again. A subclassed one is called on
            the shapes that it was built for.
        for_inference: Whether outputs need to be the same at inference only, so that dropout does
            not matter unless the graph itself switches it on. Default: False, in training too.

    Returns:
        A report with an entry for each layer with LayerNorm.

    Raises:
        TypeError: This is no model.
        RuntimeError: Keras does not run on TensorFlow, whose operations this reads.
        ValueError: The model has no input yet, cannot be traced, or would have other outputs.

    Reference:
        Jiang et al. 2023, arXiv 2305.14858, section 3.
    """
    if not ON_TENSORFLOW:
        raise RuntimeError(
            "fold_layer_norm needs the TensorFlow backend, and Keras runs on "
            f"{keras.backend.backend()}. Fold where KERAS_BACKEND=tensorflow, save the model as a "
            ".keras file, and load that file here."
        )
    from rmsnorm_tf.conversion.folding.fold import fold  # it reads TensorFlow's operations

    check_flag("for_inference", for_inference)
    check_model("fold_layer_norm", model)
    if any(getattr(layer, "optional", False) for layer in model.layers):
        raise ValueError(
            f"The model {model.name!r} has optional inputs, without which it may compute something "
            "else. Build it without them to fold it."
        )
    # None: calls without `training`, where a graph may switch a dropout on by itself.
    modes = [None, False] if for_inference else MODES
    return convert_in_place(model, lambda shared: fold(model, modes, shared), modes)


def replace_layer_norm(model: keras.Model) -> ConversionReport:
    """Changes a model from LayerNorm to RMSNorm with the same weights, and returns a report.

    Gains, offsets and epsilon stay, but the mean is no longer subtracted. So the outputs differ:
    this is a start for further training. Recurrent layers with `normalization="layer"` get "rms". A
    layer that another model has too stays. A function that was traced before, such as a
    `tf.function`, still computes LayerNorm until it is traced again.

    >>> norm = keras.layers.LayerNormalization(name="norm")
    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.ReLU(), norm])
    >>> print(replace_layer_norm(model))
    norm: converted, the mean is no longer subtracted
    What was traced before (a tf.function, a jax.jit) still computes LayerNorm: trace it again.
    >>> [type(layer).__name__ for layer in model.layers]
    ['ReLU', 'RMSNormalization']

    Args:
        model: A built model. A compiled one must be compiled again.

    Returns:
        A report with an entry for each layer with LayerNorm. A LayerNormalization stays if it is a
        subclass, has an epsilon below 1e-34, axes counted from both ends, as `(1, -1)`, or
        `rms_scaling=True`.

    Raises:
        TypeError: This is no model.
        ValueError: The model has no input yet, or would fail with RMSNorm, which refuses integers
            and a mean over an axis of which a mask leaves entries out.
    """
    check_model("replace_layer_norm", model)
    return convert_in_place(model, lambda shared: _replace(model, shared), same=False)


def _replace(model, shared):
    changes = defaultdict(dict)
    report = []
    for path, name, layer in layer_norms(model):
        is_cell = is_cell_with_layer_norm(layer)
        why = shared.get(id(layer)) or (None if is_cell else why_no_counterpart(layer))
        report.append(Conversion(name, why is None, why or "the mean is no longer subtracted"))
        if why is None and is_cell:
            changes[path]["cell"] = True
        elif why is None:
            changes[path]["norm"] = keras.saving.serialize_keras_object(counterpart(layer))
    make_changes(model, changes)
    return report
