"""The norms of a model: which are LayerNorms, and which of these may become RMSNorms."""

from typing import Any

import keras

from rmsnorm_tf.conversion.model.in_place import axes_of, is_cell_with_layer_norm, norms_of_cell
from rmsnorm_tf.conversion.model.layers import Path, walk
from rmsnorm_tf.norm.arguments import check_epsilon
from rmsnorm_tf.recurrent.cells import RMSNormLSTMCell


def layer_norms(model: keras.Model) -> list[tuple[Path, str, Any]]:
    """Returns path, name and object of each LayerNormalization outside our cells, and of each cell that has them."""
    layers = list(walk(model))
    inside = {
        id(norm)
        for _, _, layer in layers
        if is_cell_with_layer_norm(layer)
        for norm in norms_of_cell(layer)
    }
    return [
        (path, name, layer)
        for path, name, layer in layers
        if is_cell_with_layer_norm(layer)
        or (isinstance(layer, keras.layers.LayerNormalization) and id(layer) not in inside)
    ]


def _why_cell_stays(cell):
    """Returns why a cell with LayerNorm cannot have RMSNorm and the same outputs, or None."""
    if isinstance(cell, RMSNormLSTMCell):
        return "its last norm reads the cell state, which is not linear in any weights"
    weights = ("kernel", "recurrent", "bias") if cell.normalize_bias else ("kernel", "recurrent")
    constrained = [name for name in weights if getattr(cell, f"{name}_constraint") is not None]
    return (
        f"it has a {constrained[0]}_constraint, which centring might break" if constrained else None
    )


def why_not_folded(layer: keras.Layer) -> str | None:
    """Returns why RMSNorm on centred inputs does not equal a LayerNormalization, or those of a cell, or None."""
    if is_cell_with_layer_norm(layer):
        return _why_cell_stays(layer)
    if not layer.built:
        return f"the model does not call {layer.name}"
    if [axis % _rank(layer) for axis in axes_of(layer)] != [_rank(layer) - 1]:
        return f"{layer.name} normalizes over axis {layer.axis}, and only the last one is folded"
    return why_no_counterpart(layer)


def why_no_counterpart(layer: keras.layers.LayerNormalization) -> str | None:
    """Returns why no RMSNormalization computes the same as a LayerNormalization except for the centring, or None."""
    if type(layer) is not keras.layers.LayerNormalization:
        return f"{layer.name} ({type(layer).__name__}) may compute something else than LayerNormalization"
    axes = [axis % _rank(layer) for axis in axes_of(layer)] if layer.built else []
    if axes != sorted(axes):
        return f"{layer.name} counts its axes from both ends, {layer.axis}, and has its gain in that order"
    if getattr(layer, "rms_scaling", False):  # deprecated
        return f"{layer.name} has rms_scaling=True, which is neither LayerNorm nor RMSNorm"
    try:
        check_epsilon(layer.epsilon)
    except ValueError:
        return f"{layer.name} has epsilon={layer.epsilon}, which RMSNormalization does not accept"
    return None


def _rank(layer):
    """Returns the rank of a built layer's input."""
    return len(layer.get_build_config()["input_shape"])
