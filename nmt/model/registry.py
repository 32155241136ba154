"""The architectures: what builds a model from a configuration, by `--model_type`."""

from . import rnnsearch

_BUILDERS = {
    "rnn": rnnsearch.build,
}

MODEL_TYPES = tuple(_BUILDERS)


def build_model(config, source_words: int, target_words: int):
    """Builds a `contract.TranslationModel`, with weights as they are initialised.

    Args:
        config: A `config.Config`; its `model_type` chooses the architecture.
        source_words: Size of the source vocabulary.
        target_words: Size of the target vocabulary.
    """
    return _BUILDERS[config.model_type](config, source_words, target_words)
