"""The architectures: for each `--model_type`, what builds the model."""

from collections.abc import Callable
from typing import Any


def _rnn(*arguments) -> Any:
    from .rnnsearch import RNNSearch

    return RNNSearch(*arguments)


def _transformer(*arguments) -> Any:
    from .transformer import Transformer

    return Transformer(*arguments)


# A new architecture is a module with such a class, and a line here. The command line knows the names before TensorFlow
# is loaded.
ARCHITECTURES: dict[str, Callable[..., Any]] = {"rnn": _rnn, "transformer": _transformer}


def build_model(config, source_words: int, target_words: int):
    """Builds the `contract.TranslationModel` that a `config.Config` describes, with initial weights."""
    return ARCHITECTURES[config.model_type](config, source_words, target_words)
