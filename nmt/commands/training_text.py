"""The texts of a configuration, for the commands that read them."""

from ..config import Config
from ..storage.cache import Cache
from ..text.datasets import TrainingData, ValidationData
from ..text.parallel_text import ParallelText
from ..text.vocabulary import Vocabulary
from ..training.log import say


def read_texts(
    config: Config, source_vocabulary: Vocabulary, target_vocabulary: Vocabulary, cache: Cache
) -> tuple[TrainingData, ValidationData]:
    """Reads the training and validation texts. Prints how many pairs are left out, and how many are in both."""
    vocabularies = (source_vocabulary, target_vocabulary)
    valid_text = ParallelText(config.valid_source_dataset, config.valid_target_dataset, cache).checked()
    text, data = read_training_text(config, *vocabularies, cache)
    valid = ValidationData(valid_text, *vocabularies, batch_size=config.valid_batch_size)
    if shared := valid_text.shared_with(text):
        say(f"warning: {shared} of the {len(valid_text)} validation pairs are also training pairs")
    return data, valid


def read_training_text(
    config: Config, source_vocabulary: Vocabulary, target_vocabulary: Vocabulary, cache: Cache
) -> tuple[ParallelText, TrainingData]:
    """Reads the training text and prints how many pairs are left out."""
    text = ParallelText(config.source_dataset, config.target_dataset, cache).checked()
    data = TrainingData(
        text,
        source_vocabulary,
        target_vocabulary,
        batch_size=config.batch_size,
        token_batch_size=config.token_batch_size,
        maxlen=config.maxlen,
        max_length_ratio=config.max_length_ratio,
        seed=config.seed,
        subword_sampling=config.subword_sampling,
        weights=config.dataset_weights,
    )
    say(
        f"{data.used} of {len(text)} sentence pairs are used; {data.empty} have an empty side, "
        f"{data.too_long} have more than {config.maxlen} tokens on a side"
        + (f", {data.unlike} have lengths outside of --max_length_ratio" if config.max_length_ratio else "")
    )
    if config.dataset_weights:
        say(f"an epoch takes {data.pairs_per_epoch} pairs, by --dataset_weights")
    return text, data
