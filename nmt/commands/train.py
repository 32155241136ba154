"""`python -m nmt train`."""

import argparse
import contextlib
import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from ..config import CHANGEABLE, DEPENDENT, Config, make_config, read_config, read_options
from ..decoding.scoring import Scorer
from ..errors import UserError
from ..messages import log, messages_in
from ..storage.cache import Cache, open_cache
from ..storage.checkpoints import BEST, KEPT, LAST
from ..storage.files import exclusive, path_inside
from ..system import System, code_digests, file_digests, open_system, reload_weights, save_system
from ..text.batches import LONGEST
from ..text.datasets import TrainingData, ValidationData
from ..text.parallel_text import ParallelText
from ..text.vocabulary import Vocabularies, Vocabulary
from ..training.interruption import Interrupted
from ..training.progress import Progress
from ..training.replicas import Replicas, connect, read_cluster
from ..training.trainer import Trainer
from ..training.update import Update
from ..training.validation import Validator, cannot_split, validation_metrics
from .devices import describe_devices
from .processes import end_with_launcher, train_in_processes, visible_gpus

_MANY_UNKNOWN = 0.3  # share of unknown words that no fitting vocabulary has
_FOLDERS = (KEPT, "logs", "valid")
_WRITTEN = {
    *_FOLDERS,
    BEST,
    LAST,
    "config.json",
    "files.json",
    "progress.json",
    "train.log",
    "versions.json",
}


def run(arguments: argparse.Namespace) -> None:
    launched = end_with_launcher()
    config, original = _read_configs(arguments)
    if not launched and (count := _processes(arguments.processes)):
        return train_in_processes(sys.argv[2:], count)
    replicas = connect()
    if config.deterministic:
        tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(config.seed)
    with exclusive(arguments.model, (KEPT, "valid")) if replicas.is_chief else _without_messages():
        _train(config, original, arguments.model, replicas)


def _read_configs(arguments: argparse.Namespace) -> tuple[Config, Config | None]:
    """Returns the configuration of parsed arguments and their `--config` file, and that of a training to resume."""
    given = {
        name: value
        for name, value in vars(arguments).items()
        if name not in ("model", "config", "processes")
    }
    options = {**(read_options(arguments.config) if arguments.config else {}), **given}
    original = None
    if (arguments.model / LAST).exists():
        original = read_config(arguments.model)
        options = {name: getattr(original, name) for name in DEPENDENT} | options
    return make_config(options), original


def _processes(asked: int | None) -> int:
    """Returns how many processes to start; 0 if this one trains alone, or belongs to a cluster."""
    workers = len(read_cluster()[0])
    gpus = visible_gpus()
    if asked and workers:
        raise UserError(
            f"TF_CONFIG names the {workers} processes of this training, so each is started by itself; leave out "
            f"--processes {asked}, or unset TF_CONFIG"
        )
    if asked and gpus and len(gpus) < asked:
        raise UserError(f"--processes {asked} needs {asked} GPUs; there are {len(gpus)}")
    if workers > 1 or max(asked or 1, len(gpus)) == 1:
        return 0
    if not asked:
        log.info(f"training on {len(gpus)} GPUs, with a process for each; --processes can be fewer")
    return asked or len(gpus)


@contextlib.contextmanager
def _without_messages() -> Iterator[None]:
    """Discards the messages of this process, which the chief prints too.

    Errors are printed outside of this context.
    """
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stderr(nowhere),
        contextlib.redirect_stdout(nowhere),
    ):
        yield


def _train(config: Config, original: Config | None, directory: Path, replicas: Replicas) -> None:
    if replicas.is_chief:
        _require_no_way_out(directory)
    system = open_system(config, directory, original)
    reloaded: list[str] = []
    update = Update(system.model, config, replicas)
    update.trace()
    trainer = Trainer(update, directory, system.made_with)
    if config.reload and not original:
        if config.reload_training_progress:
            trainer.continue_from(Path(config.reload), system.needed_to_reload)
        else:
            reloaded = reload_weights(system, Path(config.reload))
            update.begin_smoothing()
    # Not before: a refused training changes nothing in its directory.
    with messages_in(directory / "train.log") if replicas.is_chief else contextlib.nullcontext():
        for sentence in reloaded:
            log.info(sentence)
        for name in CHANGEABLE if original else ():
            if getattr(config, name) != getattr(original, name):
                log.info(
                    f"resuming with --{name} {getattr(config, name)}; it was {getattr(original, name)}"
                )
        if config.reload and original:
            log.info(
                f"note: goes on with the training in {directory}; --reload has an effect only at its start"
            )
        _train_on_texts(trainer, update, system, directory)


def _require_no_way_out(directory: Path) -> None:
    """Checks what a training writes.

    A link could change a file elsewhere, and writing to a pipe might never end.
    """
    folders = [directory / name for name in _FOLDERS]
    for path in itertools.chain(
        directory.iterdir(), *(each.iterdir() for each in folders if each.is_dir())
    ):
        if path.parent != directory or path.name in _WRITTEN or path.stem in ("source", "target"):
            path_inside(path, directory)


def _train_on_texts(trainer: Trainer, update: Update, system: System, directory: Path) -> None:
    config = system.config
    replicas = update.replicas
    cache = open_cache()
    data, valid = _read_texts(config, system.vocabularies, cache)
    trainer.limit(data)  # refuses before anything is written
    log.info(f"trains {describe_devices(config.dtype, replicas.count)}")
    translator = system.translator(config.decoding)
    scorer = Scorer(
        system.vocabularies, system.model, replace(config.decoding, normalization_alpha=0.0)
    )

    def translate(sources):
        translator.refresh()
        return [
            (line.texts[0], line.cut[0])
            for line in translator.lines(sources, prefixes=valid.prefixes)
        ]

    validate = Validator(scorer.costs_of_ids, valid, translate, config)
    digests = file_digests(config, cache)
    if replicas.count > 1:
        replicas.require_same(
            {
                "options": config.fixed_options()
                | {name: getattr(config, name) for name in CHANGEABLE},
                "files": digests,
                "the batches of an epoch": data.sizes,
                "code": code_digests(),
                "the last update that is saved": trainer.progress.update,
            }
        )
        replicas.broadcast(update.variables)
    if replicas.is_chief:
        save_system(system, directory, digests)
    try:
        reason = trainer.train(data, validate)
    except Interrupted:
        log.info(
            f"interrupted after update {trainer.progress.update}; the same command resumes the training"
        )
        raise
    _say_result(trainer.progress, reason, directory, validate)


def _read_training_text(config: Config, vocabularies: Vocabularies, cache: Cache) -> TrainingData:
    """Reads the training text and prints how many pairs are left out."""
    text = ParallelText(config.source_dataset, config.target_dataset)
    data = TrainingData(text, vocabularies, config, cache)
    log.info(
        f"{data.used} of {data.pairs} sentence pairs are used; {data.empty} have an empty side, "
        f"{data.too_long} have more than {config.maxlen} tokens on a side"
        + (
            f", {data.unlike} have lengths outside of --max_length_ratio"
            if config.max_length_ratio
            else ""
        )
    )
    if config.dataset_weights:
        log.info(f"an epoch takes {data.pairs_per_epoch} pairs, by --dataset_weights")
    return data


def _read_texts(
    config: Config, vocabularies: Vocabularies, cache: Cache
) -> tuple[TrainingData, ValidationData]:
    """Reads the training and validation texts, and warns of what spoils a training or its validations."""
    validation_metrics(config.valid_tokenizer)
    target = vocabularies.target
    most = config.translation_maxlen
    _check_prefixes("target_prefixes", config.target_prefixes or (), target, None)
    _check_prefixes("valid_target_prefixes", config.valid_target_prefixes or (), target, most)
    valid_text = ParallelText(config.valid_source_dataset, config.valid_target_dataset)
    valid = ValidationData(
        valid_text, vocabularies, config
    )  # first: it is soon read, and may have a fault
    data = _read_training_text(config, vocabularies, cache)
    if shared := data.shared_with(valid_text):
        log.warning(f"{shared} of the {valid.pairs} validation pairs are also training pairs")
    if cannot_split(config.valid_tokenizer, valid.references):
        log.warning(
            f"--valid_tokenizer {config.valid_tokenizer} does not split the validation text, which has hardly "
            "any spaces, so BLEU stays near 0; give --valid_tokenizer char or --valid_metric chrf"
        )
    if not any(valid.references):
        log.warning("all target lines of the validation text are empty, so BLEU and chrF stay 0")
    lines = (valid.sources, [line.encode() for line in valid.references])
    for side, vocabulary, ids, given in zip(
        vocabularies._fields, vocabularies, data.samples, lines, strict=True
    ):
        valid_ids = vocabulary.encode(tf.constant(given, tf.string)).flat_values.numpy()
        _warn_of_unknown_words(f"{side} side of the training text", side, vocabulary, ids)
        _warn_of_unknown_words(f"{side} side of the validation text", side, vocabulary, valid_ids)
    if valid.too_long:
        log.warning(
            f"the validation loss leaves out {valid.too_long} pairs of more than {LONGEST} tokens"
        )
    return data, valid


def _check_prefixes(
    option: str, prefixes: Sequence[str], vocabulary: Vocabulary, most: int | None
) -> None:
    """Warns of prefixes that are not told apart, and refuses those of more than `most` tokens."""
    ids = vocabulary.encode(tf.constant(prefixes, tf.string)).to_list()
    different = dict(zip(prefixes, ids, strict=True))
    for prefix, found in different.items():
        if vocabulary.unknown in found:
            log.warning(
                f"--{option} has {prefix!r}, which the target vocabulary does not know; add it there"
            )
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


def _say_result(progress: Progress, reason: str, directory: Path, validate: Validator) -> None:
    """Prints how a training has ended; raises `UserError` if it diverged."""
    best = progress.best
    first = progress.validations[0]
    if divergence := validate.divergence(best.valid_loss):
        raise UserError(divergence)
    skipped = f" ({progress.skipped} of them skipped)" if progress.skipped else ""
    kept = (
        f"{directory / BEST} keeps it"
        if (directory / BEST).exists()
        else f"there is no {directory / BEST}"
    )
    if best is first and first.update == progress.begin:
        kept += "; none was better than the model that --reload gave"
    log.info(
        f"stopped after update {progress.update}{skipped}: {reason}; best validation: loss {best.valid_loss:.3f}, "
        f"BLEU {best.bleu:.2f}, chrF {best.chrf:.2f} after update {best.update}; {kept}"
    )
