"""The ways in which a functional model may be called: with which inputs, for training or not, without optional ones."""

import contextlib
import inspect
import itertools
from collections.abc import Collection
from typing import Any

import keras

from rmsnorm_tf.conversion.model.layers import is_plain, walk


def modes_of(model: keras.Model) -> list[bool]:
    """Returns the values of `training` for which a model may compute different things."""
    layers = [layer for _, _, layer in walk(model) if not is_plain(layer)]
    return [True, False] if any("training" in inspect.signature(layer.call).parameters for layer in layers) else [False]


def inputs_of(model: keras.Model) -> Any:
    """Returns the symbolic inputs of a sequential or functional model in the structure that its calls take."""
    return model.inputs[0] if isinstance(model, keras.Sequential) else model.input


def call_in_all_ways(model: keras.Model, inputs: Any, modes: Collection[bool | None]) -> list[Any]:
    """Returns the outputs of all calls of a model, first of those with all inputs.

    Args:
        model: The model.
        inputs: Its inputs, each of them given.
        modes: The values of `training`.
    """
    outputs = [model(inputs, training=training) for training in modes]
    for absent in _subsets_of_optional_inputs(model):
        with contextlib.suppress(Exception):  # the model may need one of two optional inputs
            outputs += [model(_without(inputs, inputs_of(model), absent), training=training) for training in modes]
    return outputs


def _subsets_of_optional_inputs(model):
    """Returns all sets, but the empty one, of ids of symbolic inputs that may be None."""
    inputs = [layer for layer in model.layers if isinstance(layer, keras.layers.InputLayer)]
    optional = [id(layer.output) for layer in inputs if layer.optional]
    sizes = range(1, len(optional) + 1)
    return itertools.chain.from_iterable(itertools.combinations(optional, size) for size in sizes)


def _without(inputs, structure, absent):
    """Returns the inputs, None in place of the absent ones."""
    flat = zip(keras.tree.flatten(inputs), keras.tree.flatten(structure), strict=True)
    return keras.tree.pack_sequence_as(structure, [None if id(symbolic) in absent else x for x, symbolic in flat])
