"""`python -m nmt prepare`."""

import argparse

from ..config import make_config
from ..errors import UserError
from ..storage.cache import open_cache
from ..storage.files import read_json
from ..text.vocabulary import Vocabularies, load_vocabulary
from .arguments import add_path, say
from .options import add_options
from .training_text import read_texts, read_training_text

_VALIDATION = ("valid_source_dataset", "valid_target_dataset")
_VOCABULARIES = ("dictionaries", "source_vocab_sizes", "target_vocab_size")
_TRAINING = ("source_dataset", "target_dataset", "maxlen", "subword_sampling", "seed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [--config FILE] [options]"
    add_path(parser, "--config", help="JSON file of options of `train`; the command line overrides it")
    add_options(parser, (*_TRAINING, *_VALIDATION, *_VOCABULARIES), optional=_VALIDATION)


def run(arguments: argparse.Namespace) -> None:
    """Scans texts in advance, so that `train` with the same options starts at once."""
    options = vars(arguments)
    path = options.pop("config")
    options = {**(read_json(path) if path else {}), **options}
    with_validation = any(name in options for name in _VALIDATION)
    if not with_validation:  # required by `train` alone
        options |= dict.fromkeys(_VALIDATION, "")
    config = make_config(options)
    sizes = (config.source_vocab_sizes, config.target_vocab_size)
    vocabularies = Vocabularies(*map(load_vocabulary, config.dictionaries, sizes))
    cache = open_cache()
    if cache.temporary:
        raise UserError(
            "there is no directory to keep the results in: NMT_TEXT_CACHE is off, or the cache directory cannot "
            "be written to; let NMT_TEXT_CACHE name a writable directory"
        )
    (read_texts if with_validation else read_training_text)(config, vocabularies, cache)
    say(f"the results of the scan are kept in {cache.directory}")
