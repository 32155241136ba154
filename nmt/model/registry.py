"""The architectures: for each `--model_type`, the class of the model."""

from .rnnsearch import RNNSearch
from .transformer import Transformer

# A new architecture is a module with such a class, and a line here.
ARCHITECTURES = {"rnn": RNNSearch, "transformer": Transformer}


def build_model(config, source_words: int, target_words: int):
    """Builds the `contract.TranslationModel` that a `config.Config` describes, with initial weights."""
    return ARCHITECTURES[config.model_type](config, source_words, target_words)
