"""`python -m nmt train`."""

import argparse
import contextlib
import fnmatch
import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import keras
import tensorflow as tf

from ..config import CHANGEABLE, Config, make_config, read_config, read_options
from ..decoding.scoring import Scorer
from ..errors import UserError
from ..messages import log, messages_in
from ..storage.cache import open_cache
from ..storage.checkpoints import BEST, KEPT, LAST
from ..storage.files import exclusive, path_inside
from ..system import System, code_digests, file_digests, open_system, reload_weights, save_system
from ..text.datasets import TrainingData, ValidationData
from ..training.interruption import Interrupted
from ..training.progress import Progress
from ..training.replicas import Replicas, connect, read_cluster
from ..training.trainer import Trainer
from ..training.update import Update
from ..training.validation import Measured, describe_divergence, measure
from .devices import describe_devices
from .launcher import follow_launcher, launch_replicas, visible_gpus
from .training_texts import read_texts

# Patterns of what a training writes in its directory.
_WRITTEN = (
    *(BEST, LAST, "config.json", "files.json", "progress.json", "train.log", "versions.json"),
    *("source.*", "target.*", KEPT, f"{KEPT}/*", "logs", "logs/*", "valid", "valid/*"),
)


def run(arguments: argparse.Namespace) -> None:
    launched = follow_launcher()
    config, original = _read_configs(arguments)
    count = 0 if launched else _count_replicas(arguments.processes)
    if count:
        return launch_replicas(config, arguments.model, count)
    replicas = connect()
    if config.deterministic:
        tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(config.seed)
    with exclusive(arguments.model) if replicas.is_chief else _without_messages():
        _train(config, original, arguments.model, replicas)


def _read_configs(arguments: argparse.Namespace) -> tuple[Config, Config | None]:
    """Reads the configuration to train with, and that of a training to resume, if there is one."""
    options = read_options(arguments.config) if arguments.config else {}
    options |= {
        name: value
        for name, value in vars(arguments).items()
        if name not in ("model", "config", "processes")
    }
    has_training = (arguments.model / LAST).exists()
    return make_config(options), read_config(arguments.model) if has_training else None


def _count_replicas(asked: int | None) -> int:
    """Returns how many processes to start; 0 to train in this one, also as a part of a cluster."""
    workers = len(read_cluster()[0])
    gpus = visible_gpus()
    if asked and workers:
        raise UserError(
            f"TF_CONFIG names the {workers} processes of this training, so each is started by "
            f"itself; leave out --processes {asked}, or unset TF_CONFIG"
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
    """Builds or loads the system, reads the texts, and trains."""
    if replicas.is_chief:
        _refuse_outside_links(directory)
    system = open_system(config, directory, original)
    update = Update(system.model, config, replicas)
    update.trace()
    trainer = Trainer(update, directory, system.fingerprint)
    notes = (
        _resuming(config, original, trainer.progress.update)
        if original
        else _reload(trainer, update, system)
    )
    # Not before: a refused training changes nothing in its directory.
    with messages_in(directory / "train.log") if replicas.is_chief else contextlib.nullcontext():
        for note in notes:
            log.info(note)
        cache = open_cache()
        data, valid = read_texts(config, system.vocabularies, cache)
        trainer.require_updates_left(data)
        log.info(f"trains {describe_devices(config.dtype, replicas.count)}")
        validate = _validator(system, valid)
        digests = file_digests(config, cache)
        if replicas.count > 1:
            _synchronize(update, trainer, data, digests)
        if replicas.is_chief:
            save_system(system, directory, digests)
        try:
            reason = trainer.train(data, validate)
        except Interrupted:
            log.info(
                f"interrupted after update {trainer.progress.update}; the same command resumes the "
                "training"
            )
            raise
        _say_result(trainer.progress, reason, directory, valid.target_words)


def _refuse_outside_links(directory: Path) -> None:
    """Refuses links and pipes where a training writes: they could change files elsewhere."""
    for path in [*directory.iterdir(), *directory.glob("*/*")]:
        name = str(path.relative_to(directory))
        if any(fnmatch.fnmatch(name, pattern) for pattern in _WRITTEN):
            path_inside(path, directory)


def _resuming(config: Config, original: Config, update: int) -> list[str]:
    """Describes where a training is resumed, and what changes."""
    notes = [
        f"resumes after update {update}",
        *(
            f"resuming with --{name} {getattr(config, name)}; it was {getattr(original, name)}"
            for name in CHANGEABLE
            if getattr(config, name) != getattr(original, name)
        ),
    ]
    if config.reload:
        notes.append(
            "note: --reload has no effect: the directory of --model holds a training, which goes on"
        )
    return notes


def _reload(trainer: Trainer, update: Update, system: System) -> list[str]:
    """Starts from the model of `--reload`, if it is given, and describes what was left out."""
    config = system.config
    if not config.reload:
        return []
    if config.reload_training_progress:
        trainer.continue_from(Path(config.reload), system.reload_fingerprint)
        return []
    notes = reload_weights(system, Path(config.reload))
    update.smoothed.begin()
    return notes


def _validator(system: System, valid: ValidationData) -> Callable[[], Measured]:
    config = system.config
    translator = system.translator(config.decoding)
    options = replace(config.decoding, normalization_alpha=0.0)
    scorer = Scorer(system.vocabularies, system.model, options)

    def translate(sources):
        translator.refresh()
        lines = translator.lines(sources, prefixes=valid.prefixes)
        return [(line.texts[0], line.cut[0]) for line in lines]

    return functools.partial(measure, scorer.scores_of_ids, valid, translate, config)


def _synchronize(
    update: Update, trainer: Trainer, data: TrainingData, digests: dict[str, list]
) -> None:
    """Checks that all processes train alike, and copies the chief's weights to them."""
    config = update.config
    update.replicas.require_same(
        {
            "options": config.fixed_options()
            | {name: getattr(config, name) for name in CHANGEABLE},
            "files": digests,
            "the batches of an epoch": data.sizes,
            "code": code_digests(),
            "the last update that is saved": trainer.progress.update,
        }
    )
    update.replicas.broadcast(update.variables)


def _say_result(progress: Progress, reason: str, directory: Path, words: int) -> None:
    """Prints how a training has ended; raises `UserError` if it diverged."""
    best = progress.best
    divergence = describe_divergence(best.valid_loss, words)
    if divergence:
        raise UserError(divergence)
    skipped = f" ({progress.skipped} of them skipped)" if progress.skipped else ""
    has_model = (directory / BEST).exists()
    kept = f"{directory / BEST} keeps it" if has_model else f"there is no {directory / BEST}"
    if best is progress.validations[0] and best.update == progress.begin:
        kept += "; none was better than the model that --reload gave"
    log.info(
        f"stopped after update {progress.update}{skipped}: {reason}; best validation: loss "
        f"{best.valid_loss:.3f}, BLEU {best.bleu:.2f}, chrF {best.chrf:.2f} after update "
        f"{best.update}; {kept}"
    )
