"""The texts of a configuration, for `train`."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from ..config import Config
from ..decoding.metrics import cannot_split, validation_metrics
from ..errors import UserError
from ..messages import log
from ..storage.cache import Cache
from ..text.batches import LONGEST
from ..text.datasets import TrainingData, ValidationData
from ..text.parallel_text import ParallelText
from ..text.vocabulary import Vocabularies, Vocabulary

_MANY_UNKNOWN = 0.3  # share of unknown words that no fitting vocabulary has


def _read_training_text(config: Config, vocabularies: Vocabularies, cache: Cache) -> tuple[ParallelText, TrainingData]:
    """Reads the training text and prints how many pairs are left out."""
    text = ParallelText(config.source_dataset, config.target_dataset)
    data = TrainingData(text, vocabularies, config, cache)
    log.info(
        f"{data.used} of {data.pairs} sentence pairs are used; {data.empty} have an empty side, "
        f"{data.too_long} have more than {config.maxlen} tokens on a side"
        + (f", {data.unlike} have lengths outside of --max_length_ratio" if config.max_length_ratio else "")
    )
    if config.dataset_weights:
        log.info(f"an epoch takes {data.pairs_per_epoch} pairs, by --dataset_weights")
    return text, data


def read_texts(config: Config, vocabularies: Vocabularies, cache: Cache) -> tuple[TrainingData, ValidationData]:
    """Reads the training and validation texts, and warns of what spoils a training or its validations."""
    validation_metrics(config.valid_tokenizer)
    target, most = vocabularies.target, config.translation_maxlen
    _check_prefixes("target_prefixes", config.target_prefixes or (), target, None)
    _check_prefixes("valid_target_prefixes", config.valid_target_prefixes or (), target, most)
    valid_text = ParallelText(config.valid_source_dataset, config.valid_target_dataset)
    valid = ValidationData(valid_text, vocabularies, config)  # first: it is soon read, and may have a fault
    text, data = _read_training_text(config, vocabularies, cache)
    if shared := valid_text.shared_with(text, cache):
        log.warning(f"{shared} of the {valid.pairs} validation pairs are also training pairs")
    if cannot_split(config.valid_tokenizer, valid.references):
        log.warning(
            f"--valid_tokenizer {config.valid_tokenizer} does not split the validation text, which has hardly "
            "any spaces, so BLEU stays near 0; give --valid_tokenizer char or --valid_metric chrf"
        )
    if not any(valid.references):
        log.warning("all target lines of the validation text are empty, so BLEU and chrF stay 0")
    lines = (valid.sources, [line.encode() for line in valid.references])
    for side, vocabulary, ids, given in zip(vocabularies._fields, vocabularies, data.samples, lines, strict=True):
        valid_ids = vocabulary.encode(tf.constant(given, tf.string)).flat_values.numpy()
        _warn_of_unknown_words(f"{side} side of the training text", side, vocabulary, ids)
        _warn_of_unknown_words(f"{side} side of the validation text", side, vocabulary, valid_ids)
    if valid.too_long:
        log.warning(f"the validation loss leaves out {valid.too_long} pairs of more than {LONGEST} tokens")
    return data, valid


def _check_prefixes(option: str, prefixes: Sequence[str], vocabulary: Vocabulary, most: int | None) -> None:
    """Warns of prefixes that are not told apart, and refuses those of more than `most` tokens."""
    ids = vocabulary.encode(tf.constant(prefixes, tf.string)).to_list()
    different = dict(zip(prefixes, ids, strict=True))
    for prefix, found in different.items():
        if vocabulary.unknown in found:
            log.warning(f"--{option} has {prefix!r}, which the target vocabulary does not know; add it there")
        elif list(different.values()).count(found) > 1:
            log.warning(f"--{option} has {prefix!r}, which has the same tokens as another prefix")
        if most and len(found) > most:
            raise UserError(
                f"--{option} has {prefix!r}, of {len(found)} tokens, and --translation_maxlen is {most}; give a "
                "shorter prefix or a larger --translation_maxlen"
            )


def _warn_of_unknown_words(text: str, side: str, vocabulary: Vocabulary, ids: np.ndarray) -> None:
    share = (ids == vocabulary.unknown).mean() if ids.size else 0.0
    if share > _MANY_UNKNOWN:
        log.warning(
            f"{100 * share:.0f}% of the tokens on the {text} are unknown words; "
            f"the {side} vocabulary may belong to another text, or the text may be split into tokens otherwise"
        )
