"""A version of a SavedModel in memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the operations of tokenizers
from google.protobuf import json_format
from tensorflow.core.protobuf import saved_model_pb2

from ...errors import UserError, sentence_of
from ..assets import read_card, read_warmup

Arrays = dict[str, np.ndarray]


class ServedFunction:
    """A function of a model, from named arrays to named arrays.

    Attributes: inputs: Shapes and types of the inputs, by name. outputs: Names of the outputs.
        has_rows: Whether the first dimension of every input counts rows. joinable: Whether rows of
        several requests can be computed together: no other dimension is unknown. unusable: Name and
        type of an input or output that JSON cannot hold, such as a complex number; else empty.
    """

    def __init__(self, function: Any):
        self._function = function
        self.inputs: Mapping[str, tf.TensorSpec] = function.structured_input_signature[1]
        self.outputs = frozenset(function.structured_outputs)
        self.has_rows = bool(self.inputs) and all(
            _has_rows(spec.shape) for spec in self.inputs.values()
        )
        specs = self.inputs | function.structured_outputs
        shapes = [
            spec.shape for spec in (*self.inputs.values(), *function.structured_outputs.values())
        ]
        self.joinable = self.has_rows and all(
            _has_rows(x) and x[1:].is_fully_defined() for x in shapes
        )
        self.unusable = next(
            (f"{name} is {x.dtype.name}" for name, x in specs.items() if not _in_json(x.dtype)), ""
        )

    def run(self, inputs: Arrays) -> Arrays:
        """Returns the outputs. Blocks, and may be called by several threads."""
        tensors = {
            name: tf.constant(value, self.inputs[name].dtype) for name, value in inputs.items()
        }
        return {name: _array(value) for name, value in self._function(**tensors).items()}


class LoadedModel:
    """A version of a model, loaded and warmed up.

    Attributes:
        signatures: The functions by name.
        metadata: The signatures as the REST API describes them.
        card: Content of `assets.extra/model.json`, if there is one.
    """

    def __init__(self, path: Path):
        try:
            loaded = tf.saved_model.load(str(path))
            self.signatures = {
                name: ServedFunction(function) for name, function in loaded.signatures.items()
            }
            self.metadata = _metadata(path)
            self.card = read_card(path)
            for signature, inputs in read_warmup(path):
                self.signatures[signature].run(inputs)
        except Exception as error:  # a damaged SavedModel fails in many ways
            said = sentence_of(str(error))[:300]
            raise UserError(f"{path} cannot be loaded: {type(error).__name__}: {said}") from None
        if not self.signatures:
            raise UserError(f"{path} cannot be loaded: it has no signatures")
        tokens = self.signatures.get("tokens")
        self._tokens = (
            tokens if tokens and tokens.outputs == {"source_tokens", "translation_tokens"} else None
        )

    def cost(self, function: ServedFunction, inputs: Arrays) -> int:
        """Returns the tokens of the most expensive sentence: its own and those that its translation
        may have.

        0 if nothing is translated, or the model does not tell.
        """
        if not self._tokens or "translations" not in function.outputs:
            return 0
        found = self._tokens.run({name: inputs[name] for name in self._tokens.inputs})
        return int(max(sum(found.values()), default=0))


def _array(tensor: tf.Tensor) -> np.ndarray:
    return np.asarray(
        tensor.numpy(), object if tensor.dtype == tf.string else None
    )  # a scalar is not an array


def _in_json(dtype: tf.DType) -> bool:
    return dtype in (tf.string, tf.bool) or dtype.is_integer or dtype.is_floating


def _has_rows(shape: tf.TensorShape) -> bool:
    return bool(shape.rank) and shape[0] is None


def _metadata(path: Path) -> dict[str, Any]:
    model = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
    return {
        name: json_format.MessageToDict(
            signature, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        for name, signature in model.meta_graphs[0].signature_def.items()
        if not name.startswith("__")
    }
