"""Recurrent cells with LayerNorm inside: which may become RMSNorm cells, and how."""

from typing import Any

import keras
import numpy as np

from rmsnorm_tf.conversion.in_place import become, counterpart
from rmsnorm_tf.recurrent.cells import RMSNormGRUCell, RMSNormLSTMCell, RMSNormSimpleRNNCell


def is_cell_with_layer_norm(layer: keras.Layer) -> bool:
    """Whether a layer is one of our cells with LayerNorm inside."""
    return type(layer) in (RMSNormSimpleRNNCell, RMSNormGRUCell, RMSNormLSTMCell) and layer.normalization == "layer"


def norms_of(cell: Any) -> list[keras.Layer]:
    """Returns the norms of one of our cells."""
    return [getattr(cell, name) for name in cell.norm_sizes]


def why_cell_stays(cell: Any) -> str | None:
    """Returns why a cell with LayerNorm cannot have RMSNorm and the same outputs, or None."""
    if isinstance(cell, RMSNormLSTMCell):
        return "its last norm reads the cell state, which is not linear in any weights"
    weights = ("kernel", "recurrent", "bias") if cell.normalize_bias else ("kernel", "recurrent")
    constrained = [name for name in weights if getattr(cell, f"{name}_constraint") is not None]
    return f"it has a {constrained[0]}_constraint, which centring might break" if constrained else None


def cell_to_rms(cell: Any) -> None:
    """Turns a built cell with LayerNorm inside into one with RMSNorm."""
    cell.normalization = "rms"
    for norm in norms_of(cell):
        become(norm, counterpart(norm))


def centre_kernels(cell: Any) -> None:
    """Centres the kernels of a cell, block by block."""
    bias = [cell.bias] if cell.normalize_bias and cell.use_bias else []
    for weight in (cell.kernel, cell.recurrent_kernel, *bias):
        ends = np.cumsum(cell.kernel_blocks)[:-1] * cell.units
        blocks = np.split(keras.ops.convert_to_numpy(weight), ends, axis=-1)
        weight.assign(np.concatenate([centred(block, -1) for block in blocks], -1))


def centred(weight: np.ndarray, axis: int) -> np.ndarray:
    """Returns the weight minus its mean over `axis`."""
    wide = weight.astype(np.float64)
    return (wide - wide.mean(axis, keepdims=True)).astype(weight.dtype)
