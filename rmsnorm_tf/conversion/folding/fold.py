"""Folds the centring of LayerNorms into the weights before them."""

from collections import defaultdict
from collections.abc import Collection

import keras
import numpy as np

from rmsnorm_tf.conversion.folding.centring import Centring, Plan
from rmsnorm_tf.conversion.folding.trace import trace
from rmsnorm_tf.conversion.model.in_place import (
    centre_kernels,
    centred,
    counterpart,
    is_cell_with_layer_norm,
)
from rmsnorm_tf.conversion.model.layers import walk
from rmsnorm_tf.conversion.model.norms import layer_norms, why_not_folded
from rmsnorm_tf.conversion.model.report import Conversion, Stays, listed
from rmsnorm_tf.conversion.model.saved import make_changes


def fold(
    model: keras.Model, modes: Collection[bool | None], shared: dict[int, str]
) -> list[Conversion]:
    """Folds the norms of a model in place, and returns the entries of the report.

    Outputs stay the same for these values of `training`. `shared` says why layers and weights must
    stay, by id.
    """
    layers = list(walk(model))
    with_layer_norm = layer_norms(model)
    names = {id(layer): name for _, name, layer in layers}
    tied: dict[int, str] = {}
    for _, name, layer in layers:
        own = [id(weight) for weight in layer.weights]
        names |= dict.fromkeys(own, name)
        if getattr(layer, "tie_weights", False):
            tied |= dict.fromkeys(own, f"the weights of {name} make logits too")
    plans: dict[int, Plan | Stays] = {}
    norms = []
    for _, _, layer in with_layer_norm:
        why_not = shared.get(id(layer)) or why_not_folded(layer)
        if why_not is not None:
            plans[id(layer)] = Stays(why_not)
        elif is_cell_with_layer_norm(layer):
            plans[id(layer)] = Plan()
        else:
            norms.append(layer)
    traced = trace(model, modes, norms)
    plans |= Centring(traced, shared | tied, names).plans(norms)
    good = [plan for plan in plans.values() if isinstance(plan, Plan)]
    _centre_weights(traced, good)
    changes: defaultdict = defaultdict(dict)
    for path, _, layer in layers:
        if any(id(layer) in plan.cuts for plan in good):
            changes[path]["centred"] = True
    entries = []
    for path, name, layer in with_layer_norm:
        plan = plans[id(layer)]
        if isinstance(plan, Stays):
            entries.append(Conversion(name, False, plan.reason))
        elif is_cell_with_layer_norm(layer):
            centre_kernels(layer)
            changes[path]["cell"] = True
            entries.append(Conversion(name, True, "centring folded into its kernels"))
        else:
            changes[path]["norm"] = keras.saving.serialize_keras_object(counterpart(layer))
            entries.append(Conversion(name, True, _in_words(plan, traced, names)))
    make_changes(model, changes)
    return entries


def _centre_weights(traced, plans):
    gains = frozenset().union(*(plan.gains for plan in plans))
    for name, axis, gain in gains:
        weight = traced.variables[name]
        factors = traced.variables[gain].numpy()
        weight.assign(weight.numpy() * factors.reshape([-1] + [1] * (-axis - 1)))
    for gain in {gain for _, _, gain in gains}:
        traced.variables[gain].assign(np.ones(traced.variables[gain].shape))
    for name, axis in frozenset().union(*(plan.weights for plan in plans)):
        traced.variables[name].assign(centred(traced.variables[name].numpy(), axis))


def _in_words(plan, traced, names):
    changed = {names[id(traced.variables[resource])] for resource, _ in plan.weights}
    into = listed([name for name in dict.fromkeys(names.values()) if name in changed])
    once = listed([name for key, name in names.items() if key in plan.cuts])
    parts = [f"centring folded into {into}"] if into else []
    parts += [f"the mean of the output of {once} is subtracted once"] if once else []
    return "; ".join(parts) or "its input is centred already"
