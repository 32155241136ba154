"""Exports a system for CTranslate2, an engine for Transformers."""

import dataclasses
import os
import shutil
from pathlib import Path
from typing import Any

from ..decoding.options import DecodingOptions
from ..errors import UserError
from ..storage.files import atomic_directory, write_json
from ..text.batches import LONGEST
from ..text.vocabulary import END, Vocabularies, Vocabulary
from .assets import write_card

OPTIONS = "decoding.json"
VOCABULARIES = ("source.model", "target.model")
_LONGEST_INPUT = 1024  # tokens to which CTranslate2 shortens a source sentence by default


def save_ctranslate2(
    model,
    vocabularies: Vocabularies,
    to: str | os.PathLike,
    options: DecodingOptions,
    card: dict[str, Any],
    directory: Path,
    compute_type: str | None = None,
) -> bool:
    """Writes a directory that `ctranslate2.Translator` loads, and that `serve` serves.

    CTranslate2 maps tokens to tokens; `serve` adds the vocabularies, which it needs as
    SentencePiece models. Returns whether they are.

    Args:
        directory: That of the model, with its vocabularies.
        compute_type: The type of the weights; by default, float32.
    """
    if not hasattr(model, "ctranslate2_spec"):
        raise UserError(
            "CTranslate2 runs one Transformer (--model_type transformer), neither an RNN nor an "
            "ensemble; export this model with --format savedmodel"
        )
    spec = model.ctranslate2_spec(DecodingOptions().limits(max(_LONGEST_INPUT, LONGEST)) + 1)
    source, target = token_names(vocabularies)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.add_source_eos = True
    spec.config.eos_token = target[END]
    spec.config.unk_token = target[vocabularies.target.unknown]
    # CTranslate2 puts zeros in the place of the start, if the decoder starts from them.
    start = target[END if spec.decoder.start_from_zero_embedding else model.first_word]
    spec.config.bos_token = start
    spec.config.decoder_start_token = start
    spec.validate()
    spec.optimize(compute_type)
    files = [directory / name for name in VOCABULARIES]
    is_served = all(file.exists() for file in files)
    with atomic_directory(Path(to)) as folder:
        spec.save(str(folder))
        if is_served:
            write_card(folder, card)
            write_json(folder / OPTIONS, dataclasses.asdict(options))
            for file in files:
                shutil.copyfile(file, folder / file.name)
    return is_served


def token_names(vocabularies: Vocabularies) -> tuple[list[str], list[str]]:
    """Returns the names of the tokens of both sides, by id.

    CTranslate2 takes one name of the end, and one of the unknown word, for both sides.
    """
    source, target = map(_tokens, vocabularies)
    source[END] = target[END]
    source[vocabularies.source.unknown] = target[vocabularies.target.unknown]
    return source, target


def _tokens(vocabulary: Vocabulary) -> list[str]:
    """Returns the tokens of all ids. All are distinct; ids without a word get the names `<id>`."""
    tokens = vocabulary.words
    first = {token: i for i, token in reversed(list(enumerate(tokens)))}
    return [token if first[token] == i else f"<{i}>" for i, token in enumerate(tokens)]
