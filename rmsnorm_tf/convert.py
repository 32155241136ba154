"""LayerNorm models made RMSNorm models: exactly by `fold_layer_norm`, by a plain swap by `replace_layer_norm`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rmsnorm_tf import centring
from rmsnorm_tf.recurrent import RMSNormGRUCell, RMSNormLSTMCell, RMSNormSimpleRNNCell
from rmsnorm_tf.recurrent_layers import RMSNormGRU, RMSNormLSTM
from rmsnorm_tf.rms_normalization import RMSNormalization

_CELLS = (RMSNormSimpleRNNCell, RMSNormGRUCell, RMSNormLSTMCell)
_WITH_NORMALIZATION = {made.__name__ for made in (*_CELLS, RMSNormGRU, RMSNormLSTM)}

Weights = list[np.ndarray]


@dataclass(frozen=True)
class Folding:
    """What became of one LayerNormalization, or of one recurrent cell with LayerNorm inside.

    Attributes:
        name: The layer's, preceded by those of the models and layers that it is in.
        folded: Whether it is RMSNorm now.
        reason: Where the centring went, or why the layer stays.
    """

    name: str
    folded: bool
    reason: str


def fold_layer_norm(model: keras.Model) -> tuple[keras.Model, list[Folding]]:
    """Returns a new model with the same outputs, in which RMSNorm is in the place of LayerNorm.

    LayerNorm is RMSNorm of its centred input. Where the input is provably made by affine maps and their sums, and goes
    nowhere else but into LayerNorms, the maps' weights are centred once and for all, and the LayerNormalization becomes
    a `RMSNormalization` with the same gain, offset and epsilon. Where that is not so, the layer stays as it is, and the
    report says why. Outputs are equal up to rounding, with `training=True` too. The given model is not changed, the new
    one not compiled.

    >>> dense, norm = keras.layers.Dense(4, name="dense"), keras.layers.LayerNormalization(name="norm")
    >>> model = keras.Sequential([keras.Input((3,)), dense, norm])
    >>> folded, report = fold_layer_norm(model)
    >>> report
    [Folding(name='norm', folded=True, reason='centring folded into dense')]
    >>> x = keras.random.normal((2, 3))
    >>> bool(np.allclose(folded(x), model(x), atol=1e-5))
    True

    Maps are Dense, EinsumDense, Conv1D to Conv3D, Embedding and the output projection of MultiHeadAttention and
    GroupQueryAttention. Models inside the model are folded too, each by itself, and so are recurrent layers with
    `normalization="layer"`.

    Args:
        model: A sequential or functional model with an input.

    Returns:
        The new model, and an entry for each layer with LayerNorm.

    Raises:
        TypeError: The model is subclassed, so that its calls are not known.
        ValueError: The model has no input yet, or a layer with weights that its config does not tell of.

    Reference:
        Jiang et al. 2023, arXiv 2305.14858, section 3.
    """
    _check_model(model)
    report: list[Folding] = []
    return _fold(model, "", report), report


def replace_layer_norm(model: keras.Model) -> keras.Model:
    """Returns a new model with RMSNorm in the place of every LayerNorm, and with the same weights.

    Gains, offsets and epsilon are kept, the mean is no longer subtracted. So the outputs differ: this is where further
    training begins. Recurrent layers with `normalization="layer"` get "rms". The given model is not changed.

    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.ReLU(), keras.layers.LayerNormalization()])
    >>> [type(layer).__name__ for layer in replace_layer_norm(model).layers]
    ['ReLU', 'RMSNormalization']

    Args:
        model: A sequential or functional model with an input. LayerNorm inside layers other than models and recurrent
            layers stays.

    Raises:
        TypeError: The model is subclassed, or normalizes integers.
        ValueError: The model has no input yet, a layer with weights that its config does not tell of, or a
            LayerNormalization that has no counterpart, such as a subclass or one with an epsilon of 0.
    """
    _check_model(model)

    def convert(layer):
        if isinstance(layer, keras.layers.LayerNormalization):
            if why := centring.why_no_counterpart(layer):
                raise ValueError(f"{why}. Put a plain LayerNormalization in its place, or make the new model by hand.")
            return _as_rms_normalization(layer), layer.get_weights()
        if _is_plain(layer):
            return replace_layer_norm(layer), None
        return _with_rms_cells(layer, lambda *_: None), layer.get_weights()

    return _rebuilt(model, convert)


def _fold(model, prefix, report):
    """Returns the folded model, and adds to the report, with `prefix` before the names."""
    graph = centring.Graph(model)
    reasons = centring.why_not_centred(graph)
    folded: set[str] = set()
    centred: set[str] = set()
    models: dict[str, keras.Model] = {}
    for layer in model.layers:
        if isinstance(layer, keras.layers.LayerNormalization):
            why, maps = centring.why_not_folded(graph, reasons, layer), centring.maps_before(graph, layer)
            if why is None:
                folded.add(layer.name)
                centred.update(maps)
            report.append(Folding(prefix + layer.name, why is None, why or _where(maps)))
        elif _is_plain(layer):
            models[layer.name] = _fold(layer, f"{prefix}{layer.name}/", report)
        else:
            report.extend(_report_inside(layer, f"{prefix}{layer.name}/"))

    def convert(layer):
        if layer.name in models:
            return models[layer.name], None
        weights = layer.get_weights()
        if layer.name in centred:
            for position, axis in centring.weights_to_centre(layer).items():
                weights[position] = _centred(weights[position], axis)
        if layer.name in folded:
            return _as_rms_normalization(layer), weights
        return _with_rms_cells(layer, _why_cell_stays), _with_centred_cells(layer, weights)

    return _rebuilt(model, convert)


def _where(maps):
    return f"centring folded into {', '.join(maps)}" if maps else "its input is centred already"


def _report_inside(layer, prefix):
    """Yields the report on what is inside a layer that is neither a model nor a LayerNormalization."""
    known = set()
    for name, cell in _cells_with_layer_norm(layer):
        known |= {id(norm) for norm in _norms_inside(cell)}
        why = _why_cell_stays(type(cell).__name__, cell.get_config())
        yield Folding(prefix + name, why is None, why or "centring folded into its kernels")
    for norm in _norms_inside(layer):
        if id(norm) not in known:
            why = f"it is inside a {type(layer).__name__}, whose calls are not known"
            yield Folding(prefix + norm.name, False, why)


def _norms_inside(layer):
    inside = tf.train.TrackableView(layer).descendants()
    return [norm for norm in inside if isinstance(norm, keras.layers.LayerNormalization)]


def _rebuilt(model, convert: Callable[[keras.Layer], tuple[keras.Layer, Weights | None]]):
    """Returns a copy of the model, with the layers that `convert` returns, and the weights that it returns for them."""
    made = []

    def clone(layer):
        # What such a layer learned by `adapt`, or its function, is not in its config, and it is never trained.
        if not isinstance(layer, keras.Layer) or hasattr(layer, "adapt") or isinstance(layer, keras.layers.Lambda):
            return layer
        made.append((layer, *convert(layer)))
        return made[-1][1]

    if isinstance(model, keras.Sequential):
        [x] = _inputs_like(keras.Model(model.inputs, model.outputs))
        copy = keras.Sequential([x, *map(clone, model.layers)], name=model.name)
    else:
        # Of a model that was not compiled: the copy is not either.
        plain = keras.Model(model.input, model.output, name=model.name)
        copy = keras.models.clone_model(plain, input_tensors=_inputs_like(plain), clone_function=clone)
    for original, layer, weights in made:
        if weights is not None:
            _set_weights(layer, weights)
            for own, theirs in zip(layer.weights, original.weights, strict=True):
                own.trainable = theirs.trainable  # the config does not say what is frozen inside a layer
    return copy


def _inputs_like(model):
    """Returns new inputs in the structure of a functional model's, also optional or sparse where these are."""
    inputs = [layer for layer in model.layers if isinstance(layer, keras.layers.InputLayer)]
    made = {id(layer.output): keras.layers.InputLayer.from_config(layer.get_config()).output for layer in inputs}
    return keras.tree.map_structure(lambda x: made[id(x)], model.input)


def _set_weights(layer, weights):
    if isinstance(layer, RMSNormalization):
        # For axis=(-1, 1) a LayerNormalization holds its gain in that order, and reads it in the order of the axes.
        weights = [np.reshape(w, own.shape) for w, own in zip(weights, layer.weights, strict=True)]
    if [w.shape for w in weights] != [tuple(own.shape) for own in layer.weights]:
        raise ValueError(
            f"The copy that the config of {layer.name!r} ({type(layer).__name__}) makes has other weights than the "
            "layer: it may be quantized, or have LoRA weights, inside. Convert the model before that is done to it."
        )
    layer.set_weights(weights)


def _as_rms_normalization(layer):
    """Returns a RMSNormalization that has the weights of a LayerNormalization, and all else that it says of them."""
    axis = layer.axis if isinstance(layer.axis, (list, tuple)) else [layer.axis]
    return RMSNormalization(
        axis=axis[0] if len(axis) == 1 else tuple(axis),
        epsilon=layer.epsilon,
        scale=layer.gamma is not None,
        center=layer.beta is not None,
        scale_initializer=layer.gamma_initializer,
        offset_initializer=layer.beta_initializer,
        scale_regularizer=layer.gamma_regularizer,
        offset_regularizer=layer.beta_regularizer,
        scale_constraint=layer.gamma_constraint,
        offset_constraint=layer.beta_constraint,
        activity_regularizer=layer.activity_regularizer,
        name=layer.name,
        dtype=layer.dtype_policy,
        trainable=layer.trainable,
    )


def _cells_with_layer_norm(layer) -> Iterator[tuple[str, Any]]:
    """Yields name and cell of what is one of our cells in a recurrent layer."""
    if type(layer) is keras.layers.Bidirectional:
        for inner in (layer.forward_layer, layer.backward_layer):
            yield from ((f"{inner.name}/{name}", cell) for name, cell in _cells_with_layer_norm(inner))
    elif type(layer) in (RMSNormGRU, RMSNormLSTM, keras.layers.RNN):
        cells = layer.cell.cells if type(layer.cell) is keras.layers.StackedRNNCells else [layer.cell]
        yield from ((c.name, c) for c in cells if type(c) in _CELLS and c.normalization == "layer")


def _why_cell_stays(class_name: str, config: dict[str, Any]) -> str | None:
    """Returns why a cell with LayerNorm, or a layer made of one, cannot have RMSNorm and the same outputs."""
    if class_name in (RMSNormLSTMCell.__name__, RMSNormLSTM.__name__):
        return "what it normalizes last is its cell state, which no linear map makes"
    weights = ("kernel", "recurrent", "bias") if config["normalize_bias"] else ("kernel", "recurrent")
    constrained = [name for name in weights if config[f"{name}_constraint"] is not None]
    if constrained:
        return f"it has a {constrained[0]}_constraint, which centring might break"
    return None


def _with_rms_cells(layer, why_stays):
    """Returns a copy of the layer, in which cells have "rms" for "layer" unless there is a reason why they stay."""

    def converted(structure):
        if isinstance(structure, (list, tuple)):
            return [converted(element) for element in structure]
        if not isinstance(structure, dict):
            return structure
        structure = {key: converted(value) for key, value in structure.items()}
        name, config = structure.get("class_name"), structure.get("config")
        if name in _WITH_NORMALIZATION and config["normalization"] == "layer" and not why_stays(name, config):
            config["normalization"] = "rms"
        return structure

    config = layer.get_config()
    if any(_cells_with_layer_norm(layer)):
        config = converted({"class_name": type(layer).__name__, "config": config})["config"]
    return type(layer).from_config(config)


def _with_centred_cells(layer, weights):
    """Returns the weights of a recurrent layer with the kernels centred of all cells that get "rms"."""
    positions = {id(weight): i for i, weight in enumerate(layer.weights)}
    for _, cell in _cells_with_layer_norm(layer):
        if _why_cell_stays(type(cell).__name__, cell.get_config()):
            continue
        bias = [cell.bias] if cell.normalize_bias and cell.use_bias else []
        for weight in (cell.kernel, cell.recurrent_kernel, *bias):
            position = positions[id(weight)]
            ends = np.cumsum(cell.kernel_blocks)[:-1] * cell.units
            blocks = np.split(weights[position], ends, axis=-1)
            weights[position] = np.concatenate([_centred(block, -1) for block in blocks], -1)
    return weights


def _centred(weight, axis):
    wide = weight.astype(np.float64)
    return (wide - wide.mean(axis, keepdims=True)).astype(weight.dtype)


def _check_model(model):
    if not _is_plain(model):
        raise TypeError(
            f"Only sequential and functional models show which layer takes what, got a {type(model).__name__}. Make it "
            "functional: keras.Model(inputs, outputs) of its layers called on keras.Input."
        )
    if not model.built:
        raise ValueError(f"The model {model.name!r} has no input yet. Give it a keras.Input as its first layer.")


def _is_plain(layer):
    """Whether the layer is a model that does nothing but call its layers in the order of its graph."""
    return type(layer) in (keras.Sequential, centring.functional_class())
