"""Makes batches, models and updates for the benchmarks of training.

The functions import `nmt`, which is a patched copy of the baseline, when they are called. Only this
module uses names inside it, besides what `decoding.py` times.
"""

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SIZES = {"embedding_size": 256, "state_size": 512, "vocabulary": 8000, "batch_size": 80}
_SIDES = ("source_dataset", "target_dataset", "valid_source_dataset", "valid_target_dataset")
_MOST_BATCHES = 1000  # of a shuffled epoch; enough to know the distribution of widths


class Work(NamedTuple):
    """What to measure: batches, options of the training, and what builds a model of a config."""

    batches: list
    options: dict[str, Any]
    build: Callable[[Any], Any]


def transformer_options(size: int, depth: int, dropout: float = 0.0) -> dict[str, Any]:
    """Returns the options of a Transformer."""
    places = ("embeddings", "residual", "relu", "attn")
    return {
        "model_type": "transformer",
        "transformer_num_heads": 4,
        "tie_decoder_embeddings": True,
        "embedding_size": size,
        "state_size": size,
        "transformer_ffn_hidden_size": 4 * size,
        "transformer_enc_depth": depth,
        "transformer_dec_depth": depth,
        **{f"transformer_dropout_{place}": dropout for place in places},
    }


def model_options(options: Any) -> dict[str, Any]:
    """Returns the options of a made-up model, from those of a command."""
    size = options.embedding_size
    dropout = getattr(options, "dropout", 0.0)
    if options.model_type == "transformer":
        return transformer_options(size, 3, dropout)
    dropouts = {f"rnn_dropout_{place}": dropout for place in ("embedding", "hidden")}
    return {"embedding_size": size, "state_size": options.state_size, **dropouts}


def patched_baseline(folder: str) -> str:
    """Writes a patched copy of the baseline to a folder and returns the folder."""
    subprocess.run(["cp", "-r", ROOT / "nmt", folder], check=True)
    command = [sys.executable, ROOT / "patches" / "apply.py", "apply", folder]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def real_work(options: dict[str, Any], count: int) -> Work:
    """Returns `count` batches of a training with these options.

    Sorts the batches of the first epoch by width, splits them into `count` equal parts and takes
    the middle batch of each, so that each represents the same number of updates. The rarest widths
    are left out, because each width takes its own compilation.
    """
    from nmt.config import make_config
    from nmt.storage.cache import open_cache
    from nmt.system import build_system
    from nmt.text.datasets import TrainingData
    from nmt.text.parallel_text import ParallelText

    def build(config):
        return build_system(config, tuple(map(Path, config.dictionaries)))

    config = make_config(options)
    system = build(config)
    text = ParallelText(config.source_dataset, config.target_dataset)
    data = TrainingData(text, system.vocabularies, config, open_cache())
    epoch = list(itertools.islice(data.batches(), min(data.batches_per_epoch, _MOST_BATCHES)))
    epoch.sort(key=width)
    middles = [epoch[(2 * number + 1) * len(epoch) // (2 * count)] for number in range(count)]
    return Work(middles, options, lambda config: build(config).model)


def made_up_work(count: int, batch_size: int, vocabulary: int, **model_options) -> Work:
    """Returns batches of random pairs of 10 to 45 words, sorted by length and padded as usual."""
    from nmt.model.registry import build_model
    from nmt.text.batches import Batch
    from nmt.text.datasets import bucket_widths

    generator = np.random.default_rng(0)
    widths = np.array([width for width in bucket_widths(46) if width > 10])
    batches = []
    for longest in np.linspace(10, 45, count + 1).astype(int)[1:]:
        padded = widths[widths > longest].min()
        sides = []
        for _ in range(2):
            lengths = generator.integers(max(10, longest - 4), longest + 1, batch_size)
            mask = np.arange(padded) <= lengths[:, np.newaxis]  # includes the end of the sentence
            ids = generator.integers(2, vocabulary, (batch_size, padded))
            ids *= np.arange(padded) < lengths[:, np.newaxis]
            sides += [ids.astype(np.int32), mask.astype(np.float32)]
        batches.append(Batch(*sides))
    options = {**dict.fromkeys(_SIDES, "-"), "dictionaries": ["-", "-"], **model_options}
    options["batch_size"] = batch_size
    return Work(batches, options, lambda config: build_model(config, vocabulary, vocabulary))


def width(batch) -> int:
    """Returns the padded length of a batch."""
    return batch.target.shape[1]


def new_update(work: Work, kind: str, dtype: str = "float32") -> Callable:
    """Builds a model and returns a function that updates it with a batch."""
    import keras

    from nmt.config import make_config
    from nmt.training.update import Update

    config = make_config({**work.options, "layer_normalization_type": kind, "dtype": dtype})
    keras.utils.set_random_seed(1)
    update = Update(work.build(config), config)
    number = itertools.count(1)
    return lambda batch: update(batch, next(number))
