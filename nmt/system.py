"""A system: a model with its configuration and vocabularies, and the directory that holds one.

The directory holds `config.json`, `versions.json` (versions of the libraries that trained it),
`files.json` (digests of the files it was trained on), the vocabularies as `source` and `target`,
the checkpoints `best.npz` and `last.npz`, with `--keep` or `--keep_best` also those in `kept/`,
`progress.json` (all validations), `valid/` (their translations), `train.log` (messages), and
`logs/` for TensorBoard. A directory may come from an untrusted source: loading it executes nothing
and reads no file outside of it.
"""

import contextlib
import hashlib
import importlib.metadata
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .config import FILES, Config, read_config
from .config_rules import PER_FILE
from .decoding.ensemble import Ensemble
from .decoding.options import DecodingOptions
from .decoding.translator import Translator
from .errors import UserError
from .model.contract import TranslationModel
from .model.registry import build_model
from .normalization import paths_of_weight
from .storage.cache import Cache
from .storage.checkpoints import BEST, LAST, checkpoint_size, load_checkpoint
from .storage.files import ORIGIN, atomic_write, read_json, write_json
from .text.lines import content_digests
from .text.parallel_text import MissingFile, all_shards, find_shards
from .text.vocabulary import END, Vocabularies, Vocabulary, load_vocabulary

_LIBRARIES = ("keras", "numpy", "sacrebleu", "sentencepiece", "tensorflow", "tensorflow-text")
# What depends on which files each pattern of a text names.
_OF_CORPORA = {**PER_FILE, "valid_sample": "valid_source_dataset"}
# By how much a configuration may exceed its checkpoint.
_SPARE_LEVELS = 100
_SPARE_NUMBERS = 2**24
_NORMALIZATION = ("layer_normalization_type", "layer_normalization_center")


class System(NamedTuple):
    config: Config
    vocabularies: Vocabularies
    model: TranslationModel

    @property
    def fingerprint(self) -> dict[str, Any]:
        """Values that a checkpoint must share with this system to be loaded, by name."""
        return {**self.digests, **self.config.fixed_options()}

    @property
    def reload_fingerprint(self) -> dict[str, Any]:
        """Values that a checkpoint must share with this system for `--reload`, by name."""
        return {**self.digests, **self.config.architecture}

    @property
    def digests(self) -> dict[str, str]:
        return {
            f"{side} vocabulary": each.digest for side, each in self.vocabularies._asdict().items()
        }

    def translator(self, options: DecodingOptions) -> Translator:
        return Translator(self.vocabularies, self.model, options)


def build_system(
    config: Config, dictionaries: Sequence[str | Path], directory: Path | None = None
) -> System:
    """Builds the model of a configuration for two vocabulary files, with initial weights."""
    first, second = dictionaries
    source = load_vocabulary(first, config.source_vocab_sizes, directory)
    target = load_vocabulary(second, config.target_vocab_size, directory)
    if config.tie_encoder_decoder_embeddings and source.words != target.words:
        raise UserError(
            "--tie_encoder_decoder_embeddings needs the same words with the same ids on both "
            f"sides, but {first} ({source.size} words) and {second} ({target.size} words) differ; "
            "`nmt vocab --joint` makes one vocabulary"
        )
    model = build_model(config, source.size, target.size)
    return System(config, Vocabularies(source, target), model)


def open_system(config: Config, directory: Path, original: Config | None) -> System:
    """Builds the system to train in a directory.

    A training found there is resumed with its own vocabularies.
    """
    if original is None:
        if (directory / BEST).exists():
            raise UserError(
                f"{directory} holds a model but no {LAST} to resume from; train in another "
                "directory"
            )
        return build_system(config, config.dictionaries)
    fixed = config.fixed_options()
    changed = [name for name, value in fixed.items() if value != getattr(original, name)]
    if _vocabularies(config, directory) != _vocabularies(original, directory):
        changed.append("dictionaries")  # .json in place of .model, or the reverse
    values = [
        f"--{name} {_as_typed(original, name)}, not {_as_typed(config, name)}" for name in changed
    ]
    _refuse(changed, f"with {'; '.join(values)}", config, directory)
    _refuse_larger(config, directory / LAST)
    return build_system(config, _vocabularies(config, directory), directory)


def _as_typed(config: Config, name: str) -> str:
    """Returns the value of an option as the command line has it."""
    value = getattr(config, name)
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def save_system(system: System, directory: Path, digests: Mapping[str, list]) -> None:
    """Writes a system without its checkpoints to an existing directory."""
    path = directory / "files.json"
    if (directory / LAST).exists() and path.exists():
        original = read_json(path, directory)
        changed = [name for name, found in digests.items() if found != original.get(name)]
        _refuse(changed, f"with other contents of {', '.join(changed)}", system.config, directory)
    else:
        write_json(path, digests)
        origin = Path(system.config.reload or directory, ORIGIN)
        if system.config.reload and origin.exists():  # its licence stays
            write_json(directory / ORIGIN, read_json(origin, origin.parent), escaped=False)
        for path, copy in zip(
            system.config.dictionaries, _vocabularies(system.config, directory), strict=True
        ):
            with atomic_write(copy, "wb") as file:
                file.write(Path(path).read_bytes())
    write_json(directory / "versions.json", _versions())
    system.config.save(directory / "config.json")


def load_system(directory: Path) -> System:
    """Loads a trained system with its best model."""
    if not (directory / "config.json").exists():
        if (directory / "saved_model.pb").exists():
            raise UserError(
                f"{directory} is an export; give the model directory that it was made of"
            )
        raise UserError(
            f"{directory} holds no model: it has no config.json; `python -m nmt train` makes one"
        )
    config = read_config(directory)
    if not (directory / BEST).exists() and (directory / LAST).exists():
        raise UserError(
            f"{directory} has no {BEST}: its training has not validated yet, or the file is lost; "
            "resume it until it validates, sooner with a smaller --valid_freq, or copy the "
            "directory again"
        )
    _refuse_larger(config, directory / BEST)
    system = build_system(config, _vocabularies(config, directory), directory)
    load_checkpoint(directory / BEST, system.model.variables, system.fingerprint)
    return system


def _refuse_larger(config: Config, checkpoint: Path) -> None:
    """Refuses a configuration of a larger model than a checkpoint holds, before it is built.

    Each level has several arrays, and each size and each vocabulary is that of some matrix. A new
    architecture need not have what these options say, so a small excess is let through.
    """
    arrays, numbers = checkpoint_size(checkpoint)
    options = config.architecture
    depths = sorted(value for name, value in options.items() if name.endswith("_depth"))
    words = max(config.source_vocab_sizes or 1, config.target_vocab_size or 1)
    widest = max(value for name, value in options.items() if name.endswith("_size"))
    levels = math.prod(depths[-2:])
    most = max(widest**2, words * config.embedding_size)
    if levels > 4 * arrays + _SPARE_LEVELS or most > numbers + _SPARE_NUMBERS:
        raise UserError(
            f"{checkpoint} has {arrays} arrays of at most {numbers} numbers, and its config.json "
            f"describes a larger model: {levels} levels, sizes up to {widest}, {words} words; "
            "copy the directory again"
        )


def load_ensemble(directories: Sequence[Path]) -> System:
    """Loads one or more trained systems as one, with the options of the first."""
    systems = [load_system(directory) for directory in directories]
    both = [system.vocabularies for system in systems]
    kinds = [(source.digest, source.size, target.digest, target.size) for source, target in both]
    for directory, kind in zip(directories, kinds, strict=True):
        if kind != kinds[0]:
            raise UserError(
                f"{directories[0]} and {directory} have different vocabularies; the models of an "
                "ensemble need the same"
            )
    if len(systems) == 1:
        return systems[0]
    return systems[0]._replace(model=Ensemble([system.model for system in systems]))


def reload_weights(system: System, directory: Path) -> list[str]:
    """Assigns the best weights of a directory, of any kind or vocabulary.

    Returns what was left out, in sentences.
    """
    config = system.config
    has_config = (directory / "config.json").exists()
    former = read_config(directory).normalization if has_config else config.normalization
    has_others = config.reload_other_vocabularies
    if former == config.normalization and not has_others:
        load_checkpoint(directory / BEST, system.model.variables, system.reload_fingerprint)
        return []
    other = load_system(directory)
    ignored = (*_NORMALIZATION, *(system.digests if has_others else ()))
    own = other.reload_fingerprint
    needed = system.reload_fingerprint
    changed = [name for name in needed if name not in ignored and own.get(name) != needed[name]]
    if changed:
        raise UserError(
            f"{directory / BEST} was made with another {', another '.join(changed)}; restore the "
            "original"
        )
    left = {each.path: each for each in other.model.variables}
    rows = _rows_of_words(system, other) if has_others else {}
    for variable in system.model.variables:
        path = next(filter(left.__contains__, paths_of_weight(variable.path)), None)
        if path:
            values = left.pop(path).numpy()
            if variable.path in rows:  # other rows keep their initial values
                known = rows[variable.path] >= 0
                found = values[rows[variable.path][known]]
                values = variable.numpy()
                values[known] = found
            variable.assign(values)
    notes = []
    if former != config.normalization:
        notes.append(
            f"its {former} becomes {config.normalization}: {len(left)} weights of {former} are "
            "left out"
        )
    for side, words in system.vocabularies._asdict().items() if has_others else ():
        kept = (_places(words, getattr(other.vocabularies, side)) >= 0).sum()
        notes.append(
            f"the vectors of {kept} of {words.size} {side} words are kept; the others are new"
        )
    return [f"reloads {directory}: {note}" for note in notes]


def _rows_of_words(system: System, other: System) -> dict[str, np.ndarray]:
    """Returns which row of the other model each row of each table of words takes, or -1."""
    found = {}
    for side, tables in system.model.word_tables.items():
        words = getattr(system.vocabularies, side)
        former = getattr(other.vocabularies, side)
        for table in tables:
            more = np.arange(table.shape[0] - words.size) + former.size  # padding follows the words
            found[table.path] = np.concatenate([_places(words, former), more])
    return found


def _places(words: Vocabulary, former: Vocabulary) -> np.ndarray:
    """Returns the id in a former vocabulary of each word of a vocabulary, or -1."""
    ids = {word: i for i, word in reversed(list(enumerate(former.words)))}
    places = np.array([ids.get(word, -1) for word in words.words])
    places[END] = END
    places[words.unknown] = former.unknown
    return places


def file_digests(config: Config, cache: Cache) -> dict[str, list]:
    """Returns the digests of the files that exist, by option.

    Adds the number of files of each corpus for options that have a value for each.
    """
    found = {}
    for name in FILES:
        with contextlib.suppress(MissingFile):
            found[name] = content_digests(all_shards(getattr(config, name)), cache)
    for option, text in _OF_CORPORA.items():
        if getattr(config, option) and text in found:
            shards = find_shards(getattr(config, text))
            found[f"the corpora of {option}"] = list(map(len, shards))
    return found


def code_digests() -> dict[str, str]:
    """Returns digests of the modules and presets, and the versions of the libraries."""
    root = Path(__file__).parent
    modules = {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted([*root.rglob("*.py"), *root.glob("presets/*.json")])
    }
    return modules | _versions()


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in _LIBRARIES}


def _refuse(changed: Sequence[str], how: str, config: Config, directory: Path) -> None:
    """Raises `UserError` if a training cannot be resumed because of changed options."""
    if not changed:
        return
    reload = f", with --reload {directory} --reload_training_progress to go on from this one"
    if set(changed) & {"dictionaries", *config.architecture}:
        reload = ""
    raise UserError(
        f"{directory} holds a training {how}; give the same, or another directory{reload}"
    )


def _vocabularies(config: Config, directory: Path) -> tuple[Path, Path]:
    """Returns the paths of a directory's own copies of the vocabularies."""
    source, target = (Path(name).suffix for name in config.dictionaries)
    return directory / f"source{source}", directory / f"target{target}"
