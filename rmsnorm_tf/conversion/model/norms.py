"""Finds the LayerNorms of a model, and says which of them cannot become RMSNorms."""

import itertools
from typing import Any

import keras

from rmsnorm_tf.conversion.model.in_place import axes_of, is_cell_with_layer_norm, norms_of_cell
from rmsnorm_tf.conversion.model.layers import Path, walk
from rmsnorm_tf.norm.arguments import check_epsilon
from rmsnorm_tf.recurrent.cells import RMSNormLSTMCell


def layer_norms(model: keras.Model) -> list[tuple[Path, str, Any]]:
    """Returns path, name and object of each of our cells with LayerNorm and of each other one."""
    found = [
        (path, name, layer)
        for path, name, layer in walk(model)
        if isinstance(layer, keras.layers.LayerNormalization) or is_cell_with_layer_norm(layer)
    ]
    cells = filter(is_cell_with_layer_norm, (layer for *_, layer in found))
    inside = set(map(id, itertools.chain.from_iterable(map(norms_of_cell, cells))))
    return [entry for entry in found if id(entry[2]) not in inside]


def why_not_folded(layer: keras.Layer) -> str | None:
    """Returns why RMSNorm on centred inputs is no LayerNormalization, or not those of a cell."""
    if is_cell_with_layer_norm(layer):
        return _why_cell_stays(layer)
    if not layer.built:
        return f"the model does not call {layer.name}"
    if _negative_axes(layer) != [-1]:
        return f"{layer.name} normalizes over axis {layer.axis}, and only the last one is folded"
    return why_no_counterpart(layer)


def _why_cell_stays(cell):
    if isinstance(cell, RMSNormLSTMCell):
        return "its last norm reads the cell state, which is not linear in any weights"
    for name in ("kernel", "recurrent", *(["bias"] if cell.normalize_bias else [])):
        if getattr(cell, f"{name}_constraint") is not None:
            return f"it has a {name}_constraint, which centring might break"
    return None


def why_no_counterpart(layer: keras.layers.LayerNormalization) -> str | None:
    """Returns why no RMSNormalization is a LayerNormalization without the centring, or None."""
    name = layer.name
    if type(layer) is not keras.layers.LayerNormalization:
        return f"{name} ({type(layer).__name__}) may compute something else than LayerNormalization"
    axes = _negative_axes(layer) if layer.built else []
    if axes != sorted(axes):
        return (
            f"{name} counts its axes from both ends, {layer.axis}, and has its gain in that order"
        )
    if getattr(layer, "rms_scaling", False):  # deprecated
        return f"{name} has rms_scaling=True, which is neither LayerNorm nor RMSNorm"
    try:
        check_epsilon(layer.epsilon)
    except ValueError:
        return f"{name} has epsilon={layer.epsilon}, which RMSNormalization does not accept"
    return None


def _negative_axes(layer):
    rank = len(layer.get_build_config()["input_shape"])
    return [axis % rank - rank for axis in axes_of(layer)]
