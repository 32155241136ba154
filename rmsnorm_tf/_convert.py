"""`fold_layer_norm` and `replace_layer_norm`: RMSNorm models made from LayerNorm models, by a plan and a rebuild."""

from collections import defaultdict
from dataclasses import dataclass, field

import keras
import tensorflow as tf

from rmsnorm_tf._centring import Centring
from rmsnorm_tf._centring_rules import rule_for, why_no_counterpart
from rmsnorm_tf._convert_cells import (
    cells_with_layer_norm,
    config_with_rms_cells,
    never_stays,
    stays_if_inexact,
    with_centred_kernels,
)
from rmsnorm_tf._rebuild import Weights, as_rms_normalization, centred, check_model, copied, rebuilt, walk

_NOT_CENTRED = "the mean is no longer subtracted"


@dataclass(frozen=True)
class Conversion:
    """What happened to one LayerNormalization, or to one recurrent cell with LayerNorm inside.

    >>> Conversion("norm", True, "centring folded into dense").converted
    True

    Attributes:
        name: Of the layer, after the names of the models and layers that contain it.
        converted: Whether it is RMSNorm now.
        reason: Where the centring went, or why the layer stays.
    """

    name: str
    converted: bool
    reason: str


def fold_layer_norm(model: keras.Model) -> tuple[keras.Model, list[Conversion]]:
    """Returns a new model with RMSNorm instead of LayerNorm and the same outputs, and a report.

    LayerNorm is RMSNorm of its centred input. Where affine maps and their sums provably make that input, and only
    LayerNorms consume it, the weights of the maps are centred once, and the LayerNormalization becomes an
    `RMSNormalization` with the same gain, offset and epsilon. Elsewhere the layer stays, and the report says why.
    Outputs are equal up to rounding, with `training=True` too. The given model does not change; the new one is not
    compiled.

    >>> dense, norm = keras.layers.Dense(4, name="dense"), keras.layers.LayerNormalization(name="norm")
    >>> model = keras.Sequential([keras.Input((3,)), dense, norm])
    >>> folded, report = fold_layer_norm(model)
    >>> report
    [Conversion(name='norm', converted=True, reason='centring folded into dense')]
    >>> x = keras.random.normal((2, 3))
    >>> bool(keras.ops.all(abs(folded(x) - model(x)) < 1e-5))
    True

    Maps are Dense, EinsumDense, Conv1D to Conv3D, Embedding and the output projection of MultiHeadAttention and
    GroupQueryAttention. Models inside the model are folded too, each by itself, and so are recurrent layers with
    `normalization="layer"`.

    Args:
        model: A sequential or functional model with an input.

    Returns:
        The new model, and an entry for each layer with LayerNorm.

    Raises:
        TypeError: The model is subclassed, so its calls are unknown.
        ValueError: The model has no input yet; a layer cannot be copied from its config, or not with all its weights;
            or two layers share a weight.

    Reference:
        Jiang et al. 2023, arXiv 2305.14858, section 3.
    """
    check_model(model)
    plan = _plan_folding(model)
    return rebuilt(model, plan.convert), plan.report


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
        model: A sequential or functional model with an input.

    Returns:
        The new model, and an entry for each layer with LayerNorm. A LayerNormalization stays if it is inside a layer
        that is neither a model nor a recurrent layer, is a subclass, or has an epsilon that is too small.

    Raises:
        TypeError: The model is subclassed, or normalizes integers.
        ValueError: As in `fold_layer_norm`.
    """
    check_model(model)
    plan = _plan_replacement(model)
    return rebuilt(model, plan.convert), plan.report


@dataclass
class _Plan:
    """What becomes of every layer.

    Attributes:
        exact: Whether outputs must stay the same.
        report: An entry for each layer with LayerNorm.
        norms: Ids of the LayerNormalizations to convert.
        maps: Ids of the layers to centre.
    """

    exact: bool
    report: list[Conversion] = field(default_factory=list)
    norms: set[int] = field(default_factory=set)
    maps: set[int] = field(default_factory=set)

    def add_norm(self, prefix: str, layer: keras.Layer, why_stays: str | None, otherwise: str) -> None:
        """Plans to convert a LayerNormalization, unless there is a reason why it stays."""
        self.report.append(Conversion(prefix + layer.name, why_stays is None, why_stays or otherwise))
        if why_stays is None:
            self.norms.add(id(layer))

    def add_inside(self, prefix: str, layer: keras.Layer, otherwise: str) -> None:
        """Reports on what is inside a layer that is neither a model nor a LayerNormalization."""
        known = set()
        for name, cell in cells_with_layer_norm(layer):
            known |= {id(norm) for norm in _norms_inside(cell)}
            why = self._why_cell_stays(type(cell).__name__, cell.get_config())
            self.report.append(Conversion(f"{prefix}{layer.name}/{name}", why is None, why or otherwise))
        for norm in _norms_inside(layer):
            if id(norm) not in known:
                why = f"it is inside a {type(layer).__name__}, whose calls are not known"
                self.report.append(Conversion(f"{prefix}{layer.name}/{norm.name}", False, why))

    def convert(self, layer: keras.Layer) -> tuple[keras.Layer, Weights]:
        """Returns a layer's successor and its weights."""
        weights = layer.get_weights()
        if id(layer) in self.norms:
            successor = as_rms_normalization(layer)
        else:
            successor = copied(layer, lambda: config_with_rms_cells(layer, self._why_cell_stays))
        if id(layer) in self.maps:
            for position, axis in rule_for(layer).positions(layer).items():
                weights[position] = centred(weights[position], axis)
        return successor, with_centred_kernels(layer, weights) if self.exact else weights

    @property
    def _why_cell_stays(self):
        return stays_if_inexact if self.exact else never_stays


def _plan_folding(model):
    plan = _Plan(exact=True)
    callers = defaultdict(set)
    for _, caller, layer in walk(model):
        callers[id(layer)].add(id(caller))
    pinned = {layer for layer, models in callers.items() if len(models) > 1}
    centrings: dict[int, Centring] = {}
    for prefix, caller, layer in walk(model):
        if not isinstance(layer, keras.layers.LayerNormalization):
            plan.add_inside(prefix, layer, "centring folded into its kernels")
            continue
        if id(caller) not in centrings:
            centrings[id(caller)] = Centring(caller, pinned)
        centring = centrings[id(caller)]
        why, maps = centring.why_not_folded(layer), centring.maps_before(layer)
        names = ", ".join(map_.name for map_ in maps)
        plan.add_norm(prefix, layer, why, f"centring folded into {names}" if maps else "its input is centred already")
        if why is None:
            plan.maps.update(map(id, maps))
    return plan


def _plan_replacement(model):
    plan = _Plan(exact=False)
    for prefix, _, layer in walk(model):
        if isinstance(layer, keras.layers.LayerNormalization):
            plan.add_norm(prefix, layer, why_no_counterpart(layer), _NOT_CENTRED)
        else:
            plan.add_inside(prefix, layer, _NOT_CENTRED)
    return plan


def _norms_inside(layer):
    inside = tf.train.TrackableView(layer).descendants()
    return [norm for norm in inside if isinstance(norm, keras.layers.LayerNormalization)]
