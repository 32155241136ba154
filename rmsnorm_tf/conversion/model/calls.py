"""Enumerates the calls to compare."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
if ON_TENSORFLOW:
    import tensorflow as tf


def check_model(function: str, model: Any) -> None:
    """Raises an error unless this is a model that was built."""
    if not isinstance(model, keras.Model):
        raise TypeError(
            f"{function} changes a keras.Model, got a {type(model).__name__}. Pass a model."
        )
    if not model.built or not (hasattr(model, "inputs") or model.get_build_config()):
        raise ValueError(
            f"The model {model.name!r} has no input yet. Call it once, or give it a keras.Input."
        )


def inputs_of(model: keras.Model) -> Any:
    """Returns symbolic inputs in the structure that calls of a model take.

    Raises:
        ValueError: A subclassed model runs neither on floats nor on integers of the shapes that it
            was built for.
    """
    if isinstance(model, keras.Sequential):
        return model.inputs[0]
    if hasattr(type(model), "inputs"):  # a functional one
        return model.input
    shapes = (model.get_build_config() or {}).get("input_shape")
    failures = []
    # The config has no dtypes, and most embeddings also take floats.
    for dtype in (model.input_dtype, "int32"):
        try:
            inputs = _symbolic(shapes, dtype)
            # The method of a model may run no layer.
            keras.Operation.compute_output_spec(model, inputs)
        except Exception as error:  # whatever a layer raises
            failures.append(error)
        else:
            return inputs
    raise ValueError(
        f"The model {model.name!r} cannot be traced on inputs of the shapes {shapes}: "
        f"{failures[0]}. Make it functional, or convert a model inside it."
    ) from failures[0]


def _symbolic(shapes, dtype):
    if shapes is None:
        raise ValueError("only the shapes of one argument are known")
    if isinstance(shapes, dict):
        return {name: _symbolic(shape, dtype) for name, shape in shapes.items()}
    if all(size is None or isinstance(size, int) for size in shapes):
        return keras.KerasTensor((None, *shapes[1:]), dtype)
    return type(shapes)(_symbolic(shape, dtype) for shape in shapes)


def on_inputs(function: Callable[[Any], Any], symbolic: Any) -> Any:
    """Returns a function of a model's inputs, on TensorFlow as one graph that is traced once."""
    if not ON_TENSORFLOW:
        return function
    specs = keras.tree.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype, x.name), symbolic)
    return tf.function(function, autograph=False, input_signature=[specs])


def to_numbers(outputs: Any) -> list[np.ndarray]:
    """Returns all tensors in a structure as arrays of float64, strings as hashes."""
    if not ON_TENSORFLOW:
        flat = keras.tree.flatten(outputs)
    else:
        flat = [
            tf.strings.to_hash_bucket_fast(t, 2**20) if t.dtype == tf.string else t
            for t in tf.nest.flatten(outputs, expand_composites=True)
        ]
    return [keras.ops.convert_to_numpy(t).astype(np.float64) for t in flat]


def may_round_factors() -> bool:
    """Returns whether float32 products may round their factors to ten bits, as accelerators do."""
    if not ON_TENSORFLOW:
        return "cpu" not in str(keras.ops.ones(()).device).lower()
    return bool(
        tf.config.experimental.tensor_float_32_execution_enabled()
        and tf.config.list_logical_devices("GPU")
    )
