"""Exports a system for CTranslate2, an engine for Transformers that needs no TensorFlow."""

import os
from pathlib import Path

from ..decoding.options import DecodingOptions
from ..errors import UserError
from ..storage.files import atomic_directory
from ..text.batches import LONGEST
from ..text.vocabulary import END, Vocabularies, Vocabulary

_LONGEST_INPUT = 1024  # tokens to which CTranslate2 shortens a source sentence by default


def save_ctranslate2(model, vocabularies: Vocabularies, to: str | os.PathLike) -> None:
    """Writes a directory that `ctranslate2.Translator` loads, in float32.

    It maps tokens, not texts, to tokens.
    """
    if not hasattr(model, "ctranslate2_spec"):
        raise UserError(
            "CTranslate2 runs one Transformer (--model_type transformer), neither an RNN nor an ensemble; "
            "export this model with --format savedmodel"
        )
    longest = DecodingOptions().limits(max(_LONGEST_INPUT, LONGEST))
    spec = model.ctranslate2_spec(longest + 1)
    source, target = map(_tokens, vocabularies)
    # CTranslate2 takes one name of the end, and one of the unknown word, for both sides.
    source[END] = target[END]
    source[vocabularies.source.unknown] = target[vocabularies.target.unknown]
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.add_source_eos = True
    spec.config.eos_token = target[END]
    spec.config.unk_token = target[vocabularies.target.unknown]
    start = target[
        END if spec.decoder.start_from_zero_embedding else model.first_word
    ]  # which zeros take the place of
    spec.config.bos_token = spec.config.decoder_start_token = start
    spec.validate()
    spec.optimize()
    with atomic_directory(Path(to)) as directory:
        spec.save(str(directory))


def _tokens(vocabulary: Vocabulary) -> list[str]:
    """Returns the tokens of all ids. All are distinct; ids without a word get the names `<id>`."""
    tokens = vocabulary.words
    first = {token: i for i, token in reversed(list(enumerate(tokens)))}
    return [token if first[token] == i else f"<{i}>" for i, token in enumerate(tokens)]
