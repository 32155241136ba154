"""Reads the texts of a training, and warns of what spoils a training or its validations."""

from collections.abc import Sequence

import tensorflow as tf

from ..config import Config
from ..errors import UserError
from ..messages import log
from ..storage.cache import Cache
from ..text.batches import LONGEST
from ..text.datasets import TrainingData, ValidationData
from ..text.parallel_text import ParallelText
from ..text.vocabulary import Vocabularies, Vocabulary
from ..training.validation import cannot_split, validation_metrics

_MANY_UNKNOWN = 0.3  # share of unknown words that no fitting vocabulary has


def read_texts(
    config: Config, vocabularies: Vocabularies, cache: Cache
) -> tuple[TrainingData, ValidationData]:
    """Reads the training and validation texts, the second first: it is short and may have a fault.

    Prints how many pairs are left out.
    """
    validation_metrics(config.valid_tokenizer)  # refuses an unusable one before it reads
    target = vocabularies.target
    _check_prefixes("target_prefixes", config.target_prefixes, target)
    _check_prefixes(
        "valid_target_prefixes", config.valid_target_prefixes, target, config.translation_maxlen
    )
    valid_text = ParallelText(config.valid_source_dataset, config.valid_target_dataset)
    valid = ValidationData(valid_text, vocabularies, config)
    text = ParallelText(config.source_dataset, config.target_dataset)
    data = TrainingData(text, vocabularies, config, cache)
    _say_sizes(config, data)
    shared = data.shared_with(valid_text)
    if shared:
        log.warning(f"{shared} of the {valid.pairs} validation pairs are also training pairs")
    _warn_of_validation_text(config, valid)
    _warn_of_unknown_words(vocabularies, data, valid)
    return data, valid


def _say_sizes(config: Config, data: TrainingData) -> None:
    unlike = f", {data.unlike} have lengths outside of --max_length_ratio"
    log.info(
        f"{data.used} of {data.pairs} sentence pairs are used; {data.empty} have an empty side, "
        f"{data.too_long} have more than {config.maxlen} tokens on a side"
        f"{unlike if config.max_length_ratio else ''}"
    )
    if config.dataset_weights:
        log.info(f"an epoch takes {data.pairs_per_epoch} pairs, by --dataset_weights")


def _warn_of_validation_text(config: Config, valid: ValidationData) -> None:
    if cannot_split(config.valid_tokenizer, valid.references):
        log.warning(
            f"--valid_tokenizer {config.valid_tokenizer} does not split the validation text, which "
            "has hardly any spaces, so BLEU stays near 0; give --valid_tokenizer char or "
            "--valid_metric chrf"
        )
    if not any(valid.references):
        log.warning("all target lines of the validation text are empty, so BLEU and chrF stay 0")
    if valid.too_long:
        log.warning(
            f"the validation loss leaves out {valid.too_long} pairs of more than {LONGEST} tokens"
        )


def _warn_of_unknown_words(
    vocabularies: Vocabularies, data: TrainingData, valid: ValidationData
) -> None:
    lines = {"source": valid.sources, "target": [line.encode() for line in valid.references]}
    samples = dict(zip(vocabularies._fields, data.samples, strict=True))
    for side, vocabulary in vocabularies._asdict().items():
        found = vocabulary.encode(tf.constant(lines[side], tf.string)).flat_values.numpy()
        for name, ids in (("training", samples[side]), ("validation", found)):
            share = (ids == vocabulary.unknown).mean() if ids.size else 0.0
            if share > _MANY_UNKNOWN:
                log.warning(
                    f"{100 * share:.0f}% of the tokens on the {side} side of the {name} text are "
                    f"unknown words; the {side} vocabulary may belong to another text, or the text "
                    "may be split into tokens otherwise"
                )


def _check_prefixes(
    option: str,
    prefixes: Sequence[str] | None,
    vocabulary: Vocabulary,
    most: int | None = None,
) -> None:
    """Warns of prefixes with unknown words or equal tokens; refuses those of over `most` tokens."""
    ids = vocabulary.encode(tf.constant(prefixes or (), tf.string)).to_list()
    different = dict(zip(prefixes or (), ids, strict=True))
    for prefix, found in different.items():
        named = f"--{option} has {prefix!r}"
        if vocabulary.unknown in found:
            log.warning(f"{named}, which the target vocabulary does not know; add it there")
        elif list(different.values()).count(found) > 1:
            log.warning(f"{named}, which has the same tokens as another prefix")
        if most and len(found) > most:
            raise UserError(
                f"{named}, of {len(found)} tokens, and --translation_maxlen is {most}; give a "
                "shorter prefix or a larger --translation_maxlen"
            )
