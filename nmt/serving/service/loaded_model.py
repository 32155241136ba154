"""Loads a version of a model, as functions of named arrays."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the operations of tokenizers
from google.protobuf import json_format
from tensorflow.core.protobuf import meta_graph_pb2

from ...errors import UserError, sentence_of
from ..assets import read_card, read_warmup

MODEL_FILES = ("saved_model.pb", "model.bin")  # of a SavedModel and of CTranslate2
Arrays = dict[str, np.ndarray]
Specs = Mapping[str, tf.TensorSpec]


class ServedFunction:
    """A function of a model, from named arrays to named arrays.

    Attributes:
        inputs: Shapes and types of the inputs, by name.
        outputs: The same of the outputs.
        run: Returns the outputs for inputs. Blocks, and may be called by several threads.
        has_rows: Whether the first dimension of every input counts rows.
        joinable: Whether rows of several requests can be computed together: no other dimension is
            unknown.
        unusable: Name and type of an input or output that JSON cannot hold, such as a complex
            number; else empty.
    """

    def __init__(self, inputs: Specs, outputs: Specs, run: Callable[[Arrays], Arrays]):
        self.inputs = inputs
        self.outputs = outputs
        self.run = run
        given = [spec.shape for spec in inputs.values()]
        shapes = [*given, *(spec.shape for spec in outputs.values())]
        self.has_rows = bool(given) and all(map(_has_rows, given))
        self.joinable = self.has_rows and all(
            _has_rows(shape) and shape[1:].is_fully_defined() for shape in shapes
        )
        types = {name: spec.dtype for name, spec in (*inputs.items(), *outputs.items())}
        self.unusable = next(
            (
                f"{name} is {dtype.name}"
                for name, dtype in types.items()
                if dtype not in (tf.string, tf.bool) and not (dtype.is_integer or dtype.is_floating)
            ),
            "",
        )


class LoadedModel:
    """A version of a model, loaded and warmed up.

    Args:
        signatures: The functions by name.
        card: Content of `assets.extra/model.json`, if there is one.
    """

    def __init__(self, signatures: dict[str, ServedFunction], card: dict[str, Any] | None):
        self.signatures = signatures
        self.card = card
        tokens = signatures.get("tokens")
        told = tokens and set(tokens.outputs) == {"source_tokens", "translation_tokens"}
        self._tokens = tokens if told else None

    def cost(self, function: ServedFunction, inputs: Arrays) -> int:
        """Returns the tokens of the most expensive sentence: its own and those that its translation
        may have.

        0 if nothing is translated, or the model does not tell.
        """
        if not self._tokens or "translations" not in function.outputs:
            return 0
        found = self._tokens.run({name: inputs[name] for name in self._tokens.inputs})
        return int(max(sum(found.values()), default=0))


def load_export(path: Path, compute_type: str = "default", workers: int = 1) -> LoadedModel:
    """Loads an export.

    Args:
        compute_type: That of CTranslate2.
        workers: Batches that it computes at the same time.
    """
    try:
        if (path / MODEL_FILES[0]).is_file():
            return _load_saved_model(path)
        return _load_ctranslate2(path, compute_type, workers)
    except Exception as error:  # a damaged model fails in many ways
        said = sentence_of(str(error))[:300]
        raise UserError(f"{path} cannot be loaded: {type(error).__name__}: {said}") from None


def _load_saved_model(path: Path) -> LoadedModel:
    """Loads a SavedModel and plays its warm-up requests."""
    functions = tf.saved_model.load(str(path)).signatures
    signatures = {name: _served(function) for name, function in functions.items()}
    if not signatures:
        raise ValueError("it has no signatures")
    for signature, inputs in read_warmup(path):
        signatures[signature].run(inputs)
    return LoadedModel(signatures, read_card(path))


def _load_ctranslate2(path: Path, compute_type: str, workers: int) -> LoadedModel:
    try:
        from ..ctranslate2_engine import Engine
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is missing; run `pip install -e '.[ctranslate2]'`") from None
    functions = Engine(path, compute_type, workers).functions
    signatures = {name: ServedFunction(*function) for name, function in functions.items()}
    return LoadedModel(signatures, read_card(path))


def describe(function: ServedFunction) -> dict[str, Any]:
    """Returns a signature as the REST API describes it."""
    info = meta_graph_pb2.SignatureDef(method_name="tensorflow/serving/predict")
    for side, specs in ((info.inputs, function.inputs), (info.outputs, function.outputs)):
        for name, spec in specs.items():
            side[name].name = name
            side[name].dtype = spec.dtype.as_datatype_enum
            side[name].tensor_shape.CopyFrom(spec.shape.as_proto())
    return json_format.MessageToDict(
        info, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def _served(function: Any) -> ServedFunction:
    """Returns a signature of a SavedModel."""
    inputs: Specs = function.structured_input_signature[1]

    def run(arrays: Arrays) -> Arrays:
        tensors = {name: tf.constant(x, inputs[name].dtype) for name, x in arrays.items()}
        return {name: _array(value) for name, value in function(**tensors).items()}

    return ServedFunction(inputs, function.structured_outputs, run)


def _array(tensor: tf.Tensor) -> np.ndarray:
    # A scalar is not an array.
    return np.asarray(tensor.numpy(), object if tensor.dtype == tf.string else None)


def _has_rows(shape: tf.TensorShape) -> bool:
    return bool(shape.rank) and shape[0] is None
