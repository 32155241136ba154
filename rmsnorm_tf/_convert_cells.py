"""Recurrent cells with LayerNorm inside: which may become RMSNorm cells, and how."""

from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

from rmsnorm_tf._cells import RMSNormGRUCell, RMSNormLSTMCell, RMSNormSimpleRNNCell
from rmsnorm_tf._rebuild import Weights, centred
from rmsnorm_tf._recurrent import RMSNormGRU, RMSNormLSTM

_CELLS = (RMSNormSimpleRNNCell, RMSNormGRUCell, RMSNormLSTMCell)
_WITH_NORMALIZATION = {made.__name__ for made in (*_CELLS, RMSNormGRU, RMSNormLSTM)}

# Given the class name and the config of a cell, or of a layer made of one: why it keeps LayerNorm, or None.
WhyStays = Callable[[str, dict[str, Any]], str | None]


def cells_with_layer_norm(layer: keras.Layer) -> Iterator[tuple[str, Any]]:
    """Yields name and cell of our cells with LayerNorm in a recurrent layer."""
    if type(layer) is keras.layers.Bidirectional:
        for inner in (layer.forward_layer, layer.backward_layer):
            yield from ((f"{inner.name}/{name}", cell) for name, cell in cells_with_layer_norm(inner))
    elif type(layer) in (RMSNormGRU, RMSNormLSTM, keras.layers.RNN):
        cells = layer.cell.cells if type(layer.cell) is keras.layers.StackedRNNCells else [layer.cell]
        yield from ((c.name, c) for c in cells if type(c) in _CELLS and c.normalization == "layer")


def never_stays(class_name: str, config: dict[str, Any]) -> None:
    """Every cell may get RMSNorm if its outputs may change."""


def stays_if_inexact(class_name: str, config: dict[str, Any]) -> str | None:
    """Returns why a cell with LayerNorm cannot have RMSNorm and the same outputs, or None."""
    if class_name in (RMSNormLSTMCell.__name__, RMSNormLSTM.__name__):
        return "what it normalizes last is its cell state, which no linear map makes"
    weights = ("kernel", "recurrent", "bias") if config["normalize_bias"] else ("kernel", "recurrent")
    constrained = [name for name in weights if config[f"{name}_constraint"] is not None]
    if constrained:
        return f"it has a {constrained[0]}_constraint, which centring might break"
    return None


def config_with_rms_cells(layer: keras.Layer, why_stays: WhyStays) -> dict[str, Any]:
    """Returns the layer's config with normalization "rms" instead of "layer" in cells that do not stay."""

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
    if any(cells_with_layer_norm(layer)):
        config = converted({"class_name": type(layer).__name__, "config": config})["config"]
    return config


def with_centred_kernels(layer: keras.Layer, weights: Weights) -> Weights:
    """Returns a recurrent layer's weights, after centring the kernels of the cells that convert exactly."""
    positions = {id(weight): i for i, weight in enumerate(layer.weights)}
    for _, cell in cells_with_layer_norm(layer):
        if stays_if_inexact(type(cell).__name__, cell.get_config()):
            continue
        bias = [cell.bias] if cell.normalize_bias and cell.use_bias else []
        for weight in (cell.kernel, cell.recurrent_kernel, *bias):
            position = positions[id(weight)]
            ends = np.cumsum(cell.kernel_blocks)[:-1] * cell.units
            blocks = np.split(weights[position], ends, axis=-1)
            weights[position] = np.concatenate([centred(block, -1) for block in blocks], -1)
    return weights
