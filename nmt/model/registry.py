"""The architectures: for each `--model_type`, the class of the model."""

from .rnnsearch import RNNSearch
from .transformer import Transformer

# A new architecture is a module with such a class, and a line here.
ARCHITECTURES = {"rnn": RNNSearch, "transformer": Transformer}


def build_model(config, source_words: int, target_words: int):
    """Builds a `contract.TranslationModel`, with initial weights.

    Args:
        config: A `config.Config`; its `model_type` chooses the architecture.
        source_words: Size of the source vocabulary.
        target_words: Size of the target vocabulary.
    """
    return ARCHITECTURES[config.model_type](config, source_words, target_words)
