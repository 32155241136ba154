"""Exports a system as a SavedModel, which runs with TensorFlow alone, and tensorflow-text if it
reads strings."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from ..errors import UserError, sentence_of
from ..storage.files import atomic_directory
from .assets import write_card, write_warmup
from .signatures import IdSignatures, Signatures


def save_signatures(
    signatures: Signatures | IdSignatures,
    to: str | os.PathLike,
    card: dict[str, Any],
    warmup: Sequence,
) -> bool:
    """Writes a SavedModel with a model card and requests that warm it up; returns whether those
    could be written.

    The graph does not mention custom gradients: a served model needs none, TensorFlow warns of them
    when it loads a model, and it does not save a loaded model that has them.

    Args:
        card: What `assets.extra/model.json` says, besides the signatures.
        warmup: Sentences, as texts or rows of ids, of the requests in
            `assets.extra/tf_serving_warmup_requests`.
    """
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    with atomic_directory(Path(to)) as directory:
        try:
            tf.saved_model.save(
                signatures, str(directory), signatures=signatures.functions, options=options
            )
        except tf.errors.OpError as error:
            reason = sentence_of(error.message).rpartition(";")[2].strip()  # after a file's name
            raise UserError(f"{to} cannot be written: {reason}") from None
        _forget_gradients(directory / "saved_model.pb")
        write_card(directory, {**card, "signatures": list(signatures.functions)})
        return write_warmup(directory, signatures.functions, warmup)


def _forget_gradients(path: Path) -> None:
    """Removes the references to custom gradients, which `SaveOptions` leaves in the graph."""
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    for meta_graph in model.meta_graphs:
        functions = meta_graph.graph_def.library.function
        for nodes in (meta_graph.graph_def.node, *(function.node_def for function in functions)):
            for node in nodes:
                node.attr.pop("_gradient_op_type", None)
    path.write_bytes(model.SerializeToString(deterministic=True))
