"""`python -m nmt train`."""

import argparse
import contextlib
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import keras
import tensorflow as tf

from ..config import CHANGEABLE, DEPENDENT, Config, make_config, read_config, read_options
from ..errors import UserError
from ..storage.cache import open_cache
from ..storage.checkpoints import BEST, KEPT, LAST, load_checkpoint
from ..storage.files import exclusive, path_inside
from ..system import System, code_digests, file_digests, open_system, save_system
from ..training.interruption import Interrupted, sigterm_exits
from ..training.log import message_file, say
from ..training.replicas import Replicas, connect, read_cluster
from ..training.trainer import Trainer
from ..training.update import Update
from ..training.validation import Validator
from .devices import describe_devices
from .processes import end_with_launcher, train_in_processes, visible_gpus
from .training_text import read_checked_texts

_FOLDERS = (KEPT, "logs", "valid")
_WRITTEN = {*_FOLDERS, BEST, LAST, "config.json", "files.json", "progress.json", "train.log", "versions.json"}


def run(arguments: argparse.Namespace) -> None:
    end_with_launcher()
    config = config_of(arguments)
    gpus = visible_gpus()
    if len(gpus) > 1 and len(read_cluster()[0]) < 2:
        say(f"training on {len(gpus)} GPUs, with a process for each; CUDA_VISIBLE_DEVICES can name fewer")
        return train_in_processes(sys.argv[2:], len(gpus))
    with sigterm_exits():
        replicas = connect()
        if config.deterministic:
            tf.config.experimental.enable_op_determinism()
        keras.utils.set_random_seed(config.seed)
        with exclusive(arguments.model, (KEPT, "valid")) if replicas.is_chief else _without_messages():
            _train(config, arguments.model, replicas)


def config_of(arguments: argparse.Namespace) -> Config:
    """Returns the configuration that parsed arguments and their `--config` file give.

    Raises:
        UserError: An option is wrong.
    """
    given = {name: value for name, value in vars(arguments).items() if name not in ("model", "config")}
    options = {**(read_options(arguments.config) if arguments.config else {}), **given}
    if (arguments.model / LAST).exists():
        original = read_config(arguments.model)
        options = {name: getattr(original, name) for name in DEPENDENT} | options
    return make_config(options)


@contextlib.contextmanager
def _without_messages() -> Iterator[None]:
    """Discards the messages of this process, which the chief prints too. Errors are printed outside of this context."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere), contextlib.redirect_stdout(nowhere):
        yield


def _train(config: Config, directory: Path, replicas: Replicas) -> None:
    if replicas.is_chief:
        _require_no_way_out(directory)
    system = open_system(config, directory)
    reload_from = None if (directory / LAST).exists() or not config.reload else Path(config.reload)
    if reload_from and not config.reload_training_progress:
        load_checkpoint(reload_from / BEST, system.model.variables, system.needed_to_reload)
    update = Update(system.model, config, replicas)
    trainer = Trainer(update, directory, system.made_with)
    if reload_from and config.reload_training_progress:
        trainer.continue_from(reload_from / LAST, system.needed_to_reload)
    # Not before: a refused training changes nothing in its directory.
    with message_file(directory / "train.log") if replicas.is_chief else contextlib.nullcontext():
        _say_changes(config, directory)
        if config.reload and not reload_from:
            say(f"note: goes on with the training in {directory}; --reload has an effect only at its start")
        _train_on_texts(trainer, update, system, directory)


def _require_no_way_out(directory: Path) -> None:
    """Checks what a training writes. A link could change a file elsewhere, and writing to a pipe might never end."""
    folders = [directory / name for name in _FOLDERS]
    for path in itertools.chain(directory.iterdir(), *(each.iterdir() for each in folders if each.is_dir())):
        if path.parent != directory or path.name in _WRITTEN or path.stem in ("source", "target"):
            path_inside(path, directory)


def _train_on_texts(trainer: Trainer, update: Update, system: System, directory: Path) -> None:
    config, replicas = system.config, update.replicas
    data, valid = read_checked_texts(config, system.vocabularies, open_cache())
    trainer.last_update(data)  # refuses before anything is written
    say(f"trains {describe_devices(config.dtype, replicas.count)}")
    translator = system.translator(config.decoding)

    def translate(sources, poll):
        lines = translator.lines(sources, between=poll, prefixes=valid.prefixes)
        return [(line.texts[0], line.cut[0]) for line in lines]

    validate = Validator(system.model, valid, translate, config)
    if replicas.count > 1:
        replicas.require_same(
            {
                "options": config.fixed_options() | {name: getattr(config, name) for name in CHANGEABLE},
                "files": file_digests(config),
                "the batches of an epoch": data.sizes,
                "code": code_digests(),
                "the last update that is saved": trainer.progress.update,
            }
        )
        replicas.broadcast(update.variables)
    if replicas.is_chief:
        save_system(system, directory)
    try:
        progress = trainer.train(data, validate)
    except Interrupted:
        say(f"interrupted after update {trainer.progress.update}; the same command resumes the training")
        raise
    best = progress.best
    if divergence := validate.divergence(best.valid_loss):
        raise UserError(divergence)
    kept = f"{directory / BEST} keeps it" if (directory / BEST).exists() else f"there is no {directory / BEST}"
    say(
        f"stopped after update {progress.update} ({progress.skipped} updates skipped); best validation: loss "
        f"{best.valid_loss:.3f}, BLEU {best.bleu:.2f}, chrF {best.chrf:.2f} after update {best.update}; {kept}"
    )


def _say_changes(config: Config, directory: Path) -> None:
    """Prints the options that differ from those of the training found in a directory."""
    if (directory / LAST).exists():
        original = read_config(directory)
        for name in CHANGEABLE:
            if getattr(config, name) != getattr(original, name):
                say(f"resuming with --{name} {getattr(config, name)}; it was {getattr(original, name)}")
