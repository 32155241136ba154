"""Writes changes inside a layer into its config, which does not mention the norms inside."""

import functools
from collections.abc import Mapping
from typing import Any

import keras

from rmsnorm_tf.conversion.model.in_place import (
    counterpart,
    is_cell_with_layer_norm,
    norms_of_cell,
    turn_into_rms_norm,
    without_mean,
)
from rmsnorm_tf.conversion.model.layers import Path, follow, is_plain
from rmsnorm_tf.recurrent.layers import RMSNormGRU, RMSNormLSTM

# Layers whose config holds the configs of the layers inside.
_TRANSPARENT = (
    keras.layers.Bidirectional,
    keras.layers.RNN,
    keras.layers.StackedRNNCells,
    keras.layers.TimeDistributed,
    RMSNormGRU,
    RMSNormLSTM,
)


def make_changes(model: keras.Model, made: Mapping[Path, dict[str, Any]]) -> None:
    """Changes the layers at some paths of a model, so that the model's config has the changes.

    `made[path]["norm"]` is the serialized `RMSNormalization` that the norm becomes,
    `made[path]["cell"] = True` turns a cell with LayerNorm inside into one with RMSNorm, and
    `made[path]["centred"] = True` makes a layer subtract the mean from its output.
    """
    for path, change in made.items():
        _change(follow(model, path), change)
        depth = _depth_of_owner(model, path, change)
        if depth is None:
            continue
        owner = follow(model, path[:depth])
        layers = [follow(model, path[:end]) for end in range(depth + 1, len(path) + 1)]
        build = [layer.get_build_config() for layer in layers]
        key = "/".join(path[depth:])
        before = getattr(owner, "changes_inside", {})
        owner.changes_inside = before | {key: {**before.get(key, {}), **change, "build": build}}
        if not hasattr(type(owner), "unchanged_class"):
            owner.__class__ = _changed(owner.__class__)


def _depth_of_owner(model, path, change):
    """Returns the length of the path to the outermost layer whose config lacks the change, or None.

    No config tells that the layer itself subtracts its mean.
    """
    for depth in range(len(path) + ("centred" in change)):
        layer = follow(model, path[:depth])
        if depth == len(path) or not (is_plain(layer) or type(layer) in _TRANSPARENT):
            return depth
    return None


def _build(layer, path, configs):
    """Builds the layers along a path that no layer around them has built."""
    for key, config in zip(path, configs, strict=False):
        layer = follow(layer, (key,))
        if config and not layer.built:
            layer.build_from_config(config)


def _change(layer, change):
    if "norm" in change:
        turn_into_rms_norm(layer, keras.saving.deserialize_keras_object(change["norm"]))
    # The config of a wrapper may have changed a cell already.
    if "cell" in change and is_cell_with_layer_norm(layer):
        layer.normalization = "rms"
        for norm in norms_of_cell(layer):
            turn_into_rms_norm(norm, counterpart(norm))
    if "centred" in change:
        layer.call = without_mean(layer, "call")
        layer.quantized_call = without_mean(layer, "quantized_call")


@functools.cache
def _changed(base: type) -> type:
    """Returns a subclass of a layer's class whose config holds the changes inside the layer.

    A file tells the class of a layer and nothing else that runs when the layer is loaded. So the
    class must be another one, and still be a subclass for `isinstance`: it is made when needed.
    """

    class Changed(base):
        unchanged_class = base

        def get_config(self):
            own = type(self)
            self.__class__ = base
            try:
                layer = keras.saving.serialize_keras_object(self)
            finally:
                self.__class__ = own
            return {**layer.pop("config"), "unchanged": layer, "changes": dict(self.changes_inside)}

        @classmethod
        def from_config(cls, config, custom_objects=None):
            config = dict(config)
            changes = config.pop("changes")
            layer = {**config.pop("unchanged"), "config": config}
            layer = keras.saving.deserialize_keras_object(layer, custom_objects)
            if not layer.built:
                raise ValueError(
                    f"The layer {layer.name!r} does not say in its config how it was built."
                )
            for joined, change in changes.items():
                path = tuple(joined.split("/")) if joined else ()
                _build(layer, path, change["build"])
                _change(follow(layer, path), change)
            layer.changes_inside = changes
            layer.__class__ = _changed(type(layer))
            return layer

        def __reduce__(self):
            """Pickles the layer as Keras does, without the class that other processes lack."""
            load, arguments = keras.layers.Layer.__reduce__(self)
            return _unpickle, (base, load.__name__, *arguments)

    Changed.__name__ = Changed.__qualname__ = base.__name__
    return keras.saving.register_keras_serializable(package="rmsnorm_tf", name="Changed")(Changed)


def _unpickle(base, load, *arguments):
    with keras.saving.custom_object_scope({keras.saving.get_registered_name(base): base}):
        return getattr(base, load)(*arguments)


_changed(keras.layers.Layer)  # so that a saved model can be loaded
