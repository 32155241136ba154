"""`--reload`: begins a training with the weights of another one, of another kind of normalization or vocabulary too."""

from pathlib import Path

import keras
import numpy as np

from .config import read_config
from .errors import UserError
from .normalization import weight_of_kind
from .storage.checkpoints import BEST, load_checkpoint
from .system import System, load_system
from .text.vocabulary import END, Vocabulary


def reload_weights(system: System, directory: Path) -> list[str]:
    """Assigns the weights of the best model of a directory, and returns what was left out, in sentences."""
    kind, has_others = system.config.layer_normalization_type, system.config.reload_other_vocabularies
    its_kind = read_config(directory).layer_normalization_type if (directory / "config.json").exists() else kind
    if its_kind == kind and not has_others:
        load_checkpoint(directory / BEST, system.model.variables, system.needed_to_reload)
        return []
    other = load_system(directory)
    ignored = {"layer_normalization_type", *(system.digests if has_others else ())}
    own, needed = other.needed_to_reload, system.needed_to_reload
    if changed := [name for name in needed if name not in ignored and own.get(name) != needed[name]]:
        raise UserError(f"{directory / BEST} was made with another {', another '.join(changed)}; restore the original")
    paths = {each.path: each for each in other.model.variables}
    left, said = set(paths), []
    rows = _rows_of_words(system, other) if has_others else {}
    for variable in system.model.variables:
        path = weight_of_kind(variable.path, kind, its_kind)
        left.discard(path)
        if path is not None and path in paths:
            _assign(variable, paths[path], rows.get(variable.path))
    if its_kind != kind:
        said.append(f"its {its_kind} becomes {kind}: {len(left)} weights of {its_kind} that {kind} lacks are left out")
    if has_others:
        for side, each, former in zip(("source", "target"), system.vocabularies, other.vocabularies, strict=True):
            kept = (_places(each, former) >= 0).sum()
            said.append(f"the vectors of {kept} of {each.size} {side} words are kept; the others are new")
    return [f"reloads {directory}: {sentence}" for sentence in said]


def _assign(variable: keras.Variable, other: keras.Variable, rows: np.ndarray | None) -> None:
    """Assigns a variable, or the rows of it that the other has. Other rows keep their initial values."""
    if rows is None:
        variable.assign(other)
        return
    values, known = variable.numpy(), rows >= 0
    values[known] = other.numpy()[rows[known]]
    variable.assign(values)


def _rows_of_words(system: System, other: System) -> dict[str, np.ndarray]:
    """Returns, for each table of words, the row of the other model that each of its rows takes, or -1."""
    found = {}
    for side, tables in system.model.word_tables.items():
        words, former = getattr(system.vocabularies, side), getattr(other.vocabularies, side)
        for table in tables:
            more = np.arange(table.shape[0] - words.size) + former.size  # padding follows the words
            found[table.path] = np.concatenate([_places(words, former), more])
    return found


def _places(words: Vocabulary, former: Vocabulary) -> np.ndarray:
    """Returns the id in a former vocabulary of each word of a vocabulary, or -1."""
    ids = {word: i for i, word in reversed(list(enumerate(former.words)))}
    places = np.array([ids.get(word, -1) for word in words.words])
    places[END], places[words.unknown] = END, former.unknown
    return places
