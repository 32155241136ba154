"""Folds the centring of LayerNorms into the weights before them."""

from collections.abc import Collection
from dataclasses import replace

import keras
import numpy as np

from rmsnorm_tf.conversion.folding.centring import Centring, Plan
from rmsnorm_tf.conversion.folding.gains import fold_gains as fold_gains_of
from rmsnorm_tf.conversion.folding.gains import multiply
from rmsnorm_tf.conversion.folding.reasons import why_fixed
from rmsnorm_tf.conversion.folding.trace import trace
from rmsnorm_tf.conversion.model.in_place import centre_kernels, centred, counterpart, is_cell_with_layer_norm
from rmsnorm_tf.conversion.model.norms import Parts, why_cell_stays
from rmsnorm_tf.conversion.model.report import Conversion, listed
from rmsnorm_tf.conversion.model.saved import Changes


def fold(
    model: keras.Model, modes: Collection[bool | None], fold_gains: bool, shared: dict[int, str]
) -> list[Conversion]:
    """Folds the norms of a model in place, and returns the entries of the report.

    Args:
        model: The model.
        modes: The values of `training` for which outputs must stay the same.
        fold_gains: Whether to fold gains of norms into the maps behind them.
        shared: Why layers and weights must stay as they are, by id.
    """
    parts = Parts(model, shared)
    traced = trace(model, modes, parts.foldable)
    names = {id(layer): name for _, name, layer in parts.layers}
    names |= {id(weight): name for _, name, layer in parts.layers for weight in layer.weights}
    fixed = parts.shared | _tied(parts)
    plans = Centring(traced, fixed, names).plans(parts.foldable)
    good = {key: plan for key, plan in plans.items() if isinstance(plan, Plan)}
    _centre_weights(traced, good.values())
    changes = Changes(model)
    entries = {}
    for path, name, layer in parts.layers:
        if any(id(layer) in plan.cuts for plan in good.values()):
            changes.subtract_mean(path)
        if is_cell_with_layer_norm(layer):
            why = parts.shared.get(id(layer)) or why_cell_stays(layer)
            entries[path] = Conversion(name, why is None, why or "centring folded into its kernels")
            if why is None:
                changes.turn_cell(path)
                centre_kernels(layer)
        elif id(layer) in parts.norms:
            plan = parts.norms[id(layer)] or plans[id(layer)]
            entries[path] = Conversion(name, not isinstance(plan, str), _in_words(plan, traced, names))
            if not isinstance(plan, str):
                changes.turn_into(path, counterpart(layer))
    changes.make()
    if fold_gains:
        gains = fold_gains_of(model, modes, lambda variable: why_fixed(variable, fixed, names))
        for path, gain in gains.items():
            if path in entries:
                entries[path] = replace(entries[path], reason=f"{entries[path].reason}; {gain.reason}")
            else:  # ours already
                entries[path] = gain
    return _in_order(entries.values(), traced, names)


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
