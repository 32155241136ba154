"""`python -m nmt prepare`."""

import argparse

from ..config import make_config, read_options
from ..errors import UserError
from ..messages import log
from ..storage.cache import open_cache
from ..text.vocabulary import Vocabularies, load_vocabulary
from .parser import VALIDATION_TEXT
from .training_text import read_texts, read_training_text


def run(arguments: argparse.Namespace) -> None:
    options = vars(arguments)
    path = options.pop("config")
    options = {**(read_options(path) if path else {}), **options}
    with_validation = any(name in options for name in VALIDATION_TEXT)
    if not with_validation:  # required by `train` alone
        options |= dict.fromkeys(VALIDATION_TEXT, "")
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
    log.info(f"the results of the scan are kept in {cache.directory}")
