"""`fold_layer_norm` and `replace_layer_norm`: RMSNorm models made from LayerNorm models."""

from dataclasses import replace
from typing import Any

import keras
import numpy as np

from rmsnorm_tf.conversion.centring import Centring, Plan
from rmsnorm_tf.conversion.check import Conversion, convert_and_check
from rmsnorm_tf.conversion.copy import copy_of, why_shared
from rmsnorm_tf.conversion.gains import fold_gains as fold_gains_of
from rmsnorm_tf.conversion.gains import multiply
from rmsnorm_tf.conversion.graph.calls import modes_of
from rmsnorm_tf.conversion.graph.layers import walk
from rmsnorm_tf.conversion.graph.trace import trace
from rmsnorm_tf.conversion.in_place import centre_kernels, centred, counterpart, is_cell_with_layer_norm, norms_of_cell
from rmsnorm_tf.conversion.reasons import listed, why_fixed
from rmsnorm_tf.conversion.saved import Changes
from rmsnorm_tf.norm.arguments import check_epsilon
from rmsnorm_tf.recurrent.cells import RMSNormLSTMCell

_NOT_CENTRED = "the mean is no longer subtracted"


def fold_layer_norm(
    model: keras.Model, for_inference: bool = False, fold_gains: bool = False
) -> tuple[keras.Model, list[Conversion]]:
    """Returns a new model with RMSNorm instead of LayerNorm and the same outputs, and a report.

    LayerNorm is RMSNorm of its centred input, and does not see a constant that is added to all channels. A norm is
    folded if its input is made by affine maps and their sums, and only LayerNorms see the mean of that input. The
    weights of these maps are then centred once, and the LayerNormalization becomes an `RMSNormalization` with the same
    gain, offset and epsilon. If no weights can centre a residual stream, its mean is subtracted once, if that serves
    several norms. Otherwise the layer stays, and the report says why. Outputs are equal up to rounding. The given model
    does not change; the new one is not compiled.

    >>> dense, norm = keras.layers.Dense(4, name="dense"), keras.layers.LayerNormalization(name="norm")
    >>> model = keras.Sequential([keras.Input((3,)), dense, norm])
    >>> folded, report = fold_layer_norm(model)
    >>> report
    [Conversion(name='norm', converted=True, reason='centring folded into dense')]
    >>> x = keras.random.normal((2, 3))
    >>> bool(keras.ops.all(abs(folded(x) - model(x)) < 1e-5))
    True

    The computation is traced, so norms inside nested models and inside any layer are found, those of KerasHub included.
    Recurrent layers with `normalization="layer"` are folded by themselves.

    Args:
        model: A sequential or functional model with an input, or a subclass of these with a config.
        for_inference: Whether outputs need to be the same at inference only, so that dropout does not matter. Default:
            False, in training too.
        fold_gains: Whether to multiply the gain of a norm into the maps behind it, where nothing but linear maps reads
            the norm. The norm then has no gain. Default: False.

    Returns:
        The new model, and an entry for each layer with LayerNorm; with `fold_gains`, also for each `RMSNormalization`
        with a gain that the model had before, converted if the gain was folded.

    Raises:
        TypeError: The model is subclassed, so its calls are unknown.
        ValueError: The model has no input yet; a layer cannot be copied from its config, or not with all its weights;
            or two layers share a weight.

    Reference:
        Jiang et al. 2023, arXiv 2305.14858, section 3; Graef et al. 2024, arXiv 2407.09577 (gains).
    """
    modes = [False] if for_inference else modes_of(model)
    return convert_and_check(model, modes, lambda left_out: _fold(model, modes, fold_gains, left_out))


def replace_layer_norm(model: keras.Model) -> tuple[keras.Model, list[Conversion]]:
    """Returns a new model with RMSNorm instead of LayerNorm and the same weights, and a report.

    Gains, offsets and epsilon stay, but the mean is no longer subtracted. So the outputs differ: this is a start for
    further training. Recurrent layers with `normalization="layer"` get "rms". The given model does not change.

    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.ReLU(), keras.layers.LayerNormalization(name="norm")])
    >>> replaced, report = replace_layer_norm(model)
    >>> [type(layer).__name__ for layer in replaced.layers]
    ['ReLU', 'RMSNormalization']
    >>> report
    [Conversion(name='norm', converted=True, reason='the mean is no longer subtracted')]

    Args:
        model: A sequential or functional model with an input, or a subclass of these with a config.

    Returns:
        The new model, and an entry for each layer with LayerNorm. A LayerNormalization stays if it is a subclass, has
        an epsilon below 1e-36, several axes in descending order, or `rms_scaling=True`.

    Raises:
        TypeError: The model is subclassed.
        ValueError: As in `fold_layer_norm`.
    """
    copy = copy_of(model)
    parts = _Parts(copy, why_shared(model))
    changes, report = Changes(copy), []
    for path, name, layer in parts.layers:
        is_cell = is_cell_with_layer_norm(layer)
        if not is_cell and id(layer) not in parts.norms:
            continue
        why = parts.shared.get(id(layer)) or (None if is_cell else why_no_counterpart(layer))
        report.append(Conversion(name, why is None, why or _NOT_CENTRED))
        if why is None and is_cell:
            changes.turn_cell(path)
        elif why is None:
            changes.turn_into(path, counterpart(layer))
    changes.make()
    return copy, report


def _fold(model, modes, fold_gains, left_out):
    """Returns a copy with all folds but the ones left out, the report, and what these folds are called."""
    copy = copy_of(model)
    parts = _Parts(copy, why_shared(model))
    traced = trace(copy, modes, parts.foldable)
    names = {id(layer): name for _, name, layer in parts.layers}
    names |= {id(weight): name for _, name, layer in parts.layers for weight in layer.weights}
    fixed = parts.shared | _tied(parts)
    plans = Centring(traced, fixed, names).plans([norm for norm in parts.foldable if names[id(norm)] not in left_out])
    good = {key: plan for key, plan in plans.items() if isinstance(plan, Plan)}
    _centre_weights(traced, good.values())
    changes = Changes(copy)
    entries = []
    for path, name, layer in parts.layers:
        if any(id(layer) in plan.cuts for plan in good.values()):
            changes.subtract_mean(path)
        if is_cell_with_layer_norm(layer):
            why = parts.shared.get(id(layer)) or why_cell_stays(layer) or left_out.get(name)
            entries.append(Conversion(name, why is None, why or "centring folded into its kernels"))
            if why is None:
                changes.turn_cell(path)
                centre_kernels(layer)
        elif id(layer) in parts.norms:
            plan = parts.norms[id(layer)] or left_out.get(name) or plans[id(layer)]
            entries.append(Conversion(name, not isinstance(plan, str), _in_words(plan, traced, names)))
            if not isinstance(plan, str):
                changes.turn_into(path, counterpart(layer))
    changes.make()
    folds = [entry.name for entry in entries if entry.converted]
    if fold_gains:
        gains = fold_gains_of(copy, modes, lambda variable: why_fixed(variable, fixed, names), left_out)
        folds += [gain.change for gain in gains.values() if gain.folded]
        for i, entry in enumerate(entries):
            if entry.name in gains:
                entries[i] = replace(entry, reason=f"{entry.reason}; {gains.pop(entry.name).reason}")
        entries += [Conversion(name, gain.folded, gain.reason) for name, gain in gains.items()]  # ours already
    return copy, _in_order(entries, traced, names), folds


class _Parts:
    """The layers of a model that a conversion reads or changes.

    Attributes:
        layers: Path, name and object of every layer.
        norms: For each LayerNormalization outside our cells by id, why it cannot be folded whatever it reads, or None.
        foldable: The LayerNormalizations that may be folded.
        shared: Why layers and variables of the given model must stay as they are, by id.
    """

    def __init__(self, model, shared):
        self.shared = shared
        self.layers = list(walk(model))
        cells = [layer for _, _, layer in self.layers if is_cell_with_layer_norm(layer)]
        inside = {id(norm) for cell in cells for norm in norms_of_cell(cell)}
        norms = [layer for _, _, layer in self.layers if isinstance(layer, keras.layers.LayerNormalization)]
        self.norms = {
            id(norm): shared.get(id(norm)) or why_not_folded(norm) for norm in norms if id(norm) not in inside
        }
        self.foldable = [norm for norm in norms if self.norms.get(id(norm), "") is None]


def _tied(parts):
    """Returns why weights of embeddings must stay as they are, by id."""
    return {
        id(weight): f"the weights of {name} make logits too"
        for _, name, layer in parts.layers
        if getattr(layer, "tie_weights", False)
        for weight in layer.weights
    }


def _centre_weights(traced, plans):
    gains = frozenset().union(*(plan.gains for plan in plans))
    for name, axis, gain in gains:
        multiply(traced.variables[name], axis, np.ravel(traced.variables[gain].numpy()))
    for gain in {gain for _, _, gain in gains}:
        traced.variables[gain].assign(np.ones(traced.variables[gain].shape))
    for name, axis in frozenset().union(*(plan.weights for plan in plans)):
        traced.variables[name].assign(centred(traced.variables[name].numpy(), axis))


def _in_words(plan, traced, names):
    if isinstance(plan, str):
        return plan
    changed = {names[id(traced.variables[resource])] for resource, _ in plan.weights}
    into = listed([name for name in dict.fromkeys(names.values()) if name in changed])
    once = listed([names[cut] for cut in names if cut in plan.cuts])
    parts = [f"centring folded into {into}"] if into else []
    parts += [f"the mean of the output of {once} is subtracted once"] if once else []
    return "; ".join(parts) or "its input is centred already"


def _in_order(entries, traced, names):
    """Returns the report in the order in which the model calls the layers, or else the layers that contain them."""
    numbers: dict[str, int] = {}
    for number, call in enumerate(traced.calls):
        numbers.setdefault(names[id(call.layer)], number)

    def first_call(entry):
        name = entry.name
        while name and name not in numbers:
            name = name.rpartition("/")[0]
        return numbers.get(name, len(traced.calls))

    return sorted(entries, key=first_call)


def why_cell_stays(cell: Any) -> str | None:
    """Returns why a cell with LayerNorm cannot have RMSNorm and the same outputs, or None."""
    if isinstance(cell, RMSNormLSTMCell):
        return "its last norm reads the cell state, which is not linear in any weights"
    weights = ("kernel", "recurrent", "bias") if cell.normalize_bias else ("kernel", "recurrent")
    constrained = [name for name in weights if getattr(cell, f"{name}_constraint") is not None]
    return f"it has a {constrained[0]}_constraint, which centring might break" if constrained else None


def why_not_folded(layer: keras.layers.LayerNormalization) -> str | None:
    """Returns why no RMSNormalization equals a LayerNormalization on centred inputs, or None."""
    if not layer.built:
        return f"the model does not call {layer.name}"
    if [axis % _rank(layer) for axis in _axes(layer)] != [_rank(layer) - 1]:
        return f"{layer.name} normalizes over axis {layer.axis}, and only the last one is folded"
    return why_no_counterpart(layer)


def why_no_counterpart(layer: keras.layers.LayerNormalization) -> str | None:
    """Returns why no RMSNormalization computes the same as a LayerNormalization except for the centring, or None."""
    if type(layer) is not keras.layers.LayerNormalization:
        return f"{layer.name} ({type(layer).__name__}) may compute something else than LayerNormalization"
    axes = [axis % _rank(layer) for axis in _axes(layer)] if layer.built else []
    if axes != sorted(axes):
        return f"{layer.name} has its axes in descending order, {layer.axis}, and its gain in that order"
    if getattr(layer, "rms_scaling", False):  # deprecated
        return f"{layer.name} has rms_scaling=True, which is neither LayerNorm nor RMSNorm"
    try:
        check_epsilon(layer.epsilon)
    except ValueError:
        return f"{layer.name} has epsilon={layer.epsilon}, which RMSNormalization does not accept"
    return None


def _axes(layer):
    return layer.axis if isinstance(layer.axis, (list, tuple)) else [layer.axis]


def _rank(layer):
    """Returns the rank of a built layer's input."""
    return len(layer.get_build_config()["input_shape"])
