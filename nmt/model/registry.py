"""Maps each `--model_type` to its module and class, without loading TensorFlow."""

import importlib

ARCHITECTURES = {"rnn": (".rnnsearch", "RNNSearch"), "transformer": (".transformer", "Transformer")}


def build_model(config, source_words: int, target_words: int):
    """Builds the model that a `config.Config` describes, with initial weights."""
    module, name = ARCHITECTURES[config.model_type]
    return getattr(importlib.import_module(module, __package__), name)(
        config, source_words, target_words
    )
