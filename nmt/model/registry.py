"""The architectures: for each `--model_type`, the function that builds a model from a configuration."""

from . import rnnsearch, transformer

# A new architecture is a module with such a function, and a line here.
ARCHITECTURES = {
    "rnn": rnnsearch.build,
    "transformer": transformer.build,
}


def build_model(config, source_words: int, target_words: int):
    """Builds a `contract.TranslationModel`, with initial weights.

    Args:
        config: A `config.Config`; its `model_type` chooses the architecture.
        source_words: Size of the source vocabulary.
        target_words: Size of the target vocabulary.
    """
    return ARCHITECTURES[config.model_type](config, source_words, target_words)
