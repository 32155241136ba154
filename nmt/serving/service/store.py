"""The models of a folder of `NAME/VERSION` folders: the newest version of each that can be loaded.

A new version is loaded when its files have stopped changing, then replaces the old one; so is the served version if its
files change. A version that cannot be loaded is tried again when its files change, or a minute later: perhaps there was
not enough memory.
"""

import contextlib
import gc
import logging
import os
import re
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...errors import UserError
from .limits import Refused
from .loaded_model import LoadedModel

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_log = logging.getLogger("serve")
Files = tuple[tuple[str, int, int], ...]  # name, size and time of every file of a version


class Versions(NamedTuple):
    """What a folder of models holds.

    Attributes:
        paths: Folder of each version, by model and number.
        files: Files of each version that can be read.
        unreadable: Why a version or a model cannot be read.
    """

    paths: dict[str, dict[int, Path]]
    files: dict[Path, Files]
    unreadable: dict[Path, str]


class Served(NamedTuple):
    """A model that is served."""

    version: int
    model: LoadedModel
    files: Files  # when it was loaded


class Store:
    """The models of a folder.

    Args:
        root: The folder.
        again: Seconds until a version that could not be loaded is tried again.
    """

    def __init__(self, root: Path, again: float = 60.0):
        self._root, self._again = root, again
        self.served: dict[str, Served] = {}
        self.broken: dict[tuple[str, int], str] = {}  # why a version of a model is refused
        self._found = Versions({}, {}, {})  # when last looked at
        self._refused: dict[Path, tuple[Files, float]] = {}  # with the time when to try again
        self._dropped: list[weakref.ref] = []  # signatures of models that are not served any more

    def open(self) -> None:
        """Loads the newest version of every model.

        Raises:
            UserError: None can be loaded.
        """
        if not self._root.is_dir():
            raise UserError(f"there is no folder {self._root}; `python -m nmt export --to MODELS/NAME/1` makes one")
        self._look()
        self.refresh()
        if not self.served and self.broken:
            raise UserError(next(iter(self.broken.values())))
        if not self.served:
            raise UserError(
                f"{self._root} holds no NAME/VERSION/saved_model.pb with a whole number as VERSION; "
                "`python -m nmt export --to MODELS/NAME/1` makes one"
            )

    def refresh(self) -> None:
        """Loads new versions that have not changed since the last look, and drops what they replace."""
        before, found = self._found, self._look()
        self._forget()
        gone = [name for name in self.served if not found.paths.get(name) and self._root / name not in found.unreadable]
        for name in gone:
            _log.warning("%s: its versions are gone, so it is dropped", name)
            self._replace(name, None)
        self._collect()
        for name, versions in found.paths.items():
            # A reference to what is served would keep its model in memory.
            current, files = (self.served[name].version, self.served[name].files) if name in self.served else (None, ())
            for version in sorted(versions, reverse=True):
                path = versions[version]
                if version == current and found.files.get(path, files) == files:
                    self._accept(name, version, path)
                    break
                is_loaded = self._worth_trying(path, before) and self._try(name, version, path)
                if is_loaded or version == current:  # while its files change, what is in memory goes on
                    break

    def find(self, name: str, version: str | None) -> Served:
        """Returns a model with its version; `None` is the newest version.

        Raises:
            Refused: It is not served.
        """
        served = self.served.get(name)
        if served is None:
            names = ", ".join(sorted(self.served)) or "none"
            raise Refused(404, f"there is no such model; the served models are: {names}")
        if version not in (None, str(served.version)):
            raise Refused(404, f"this version of {name} is not served; version {served.version} is")
        return served

    def _look(self) -> Versions:
        """Returns what the folder holds, and logs what can no longer be read."""
        before, self._found = self._found, find_versions(self._root)
        for path, why in self._found.unreadable.items():
            if why != before.unreadable.get(path):
                _log.error("%s", why)
        return self._found

    def _forget(self) -> None:
        """Forgets refused versions that are gone, and notes those that cannot be read."""
        found = self._found
        self._refused = {path: why for path, why in self._refused.items() if path in found.files}
        paths = {(name, version): path for name, versions in found.paths.items() for version, path in versions.items()}
        broken = {key: why for key, why in self.broken.items() if paths.get(key) in self._refused}
        current = {(name, served.version) for name, served in self.served.items()}
        unreadable = {k: found.unreadable[p] for k, p in paths.items() if p in found.unreadable and k not in current}
        self.broken = broken | unreadable

    def _worth_trying(self, path: Path, before: Versions) -> bool:
        """Returns whether a version can be read, is not being written, and was not refused a moment ago."""
        files = self._found.files.get(path)
        refused, again = self._refused.get(path, (None, 0.0))
        waiting = refused == files and time.monotonic() < again
        return files is not None and files == before.files.get(path) and not waiting

    def _try(self, name: str, version: int, path: Path) -> bool:
        """Loads a version and returns whether it is served now."""
        try:
            model = LoadedModel(path)
        except UserError as error:
            self._refused[path] = self._found.files[path], time.monotonic() + self._again
            if self.broken.get((name, version)) != str(error):
                _log.error("%s version %d is refused: %s", name, version, error)
            self.broken = {**self.broken, (name, version): str(error)}  # other threads read the old one
            return False
        self._accept(name, version, path)
        self._replace(name, Served(version, model, self._found.files[path]))
        return True

    def _accept(self, name: str, version: int, path: Path) -> None:
        """Forgets why a version was refused."""
        self._refused.pop(path, None)
        self.broken = {key: why for key, why in self.broken.items() if key != (name, version)}

    def _replace(self, name: str, served: Served | None) -> None:
        """Serves another version. Requests in progress keep the old one in memory until they are done."""
        old = self.served.get(name)
        kept = {key: value for key, value in self.served.items() if key != name}
        self.served = {**kept, name: served} if served else kept
        if served:
            _log.info("%s: version %d is served%s", name, served.version, f", not {old.version}" if old else "")
        if old:
            self._dropped += [weakref.ref(signature) for signature in old.model.signatures.values()]
        del old
        self._collect()

    def _collect(self) -> None:
        """Frees dropped models that no request uses any more; their graphs are in reference cycles."""
        alive = [signature for signature in self._dropped if signature() is not None]
        if len(alive) < len(self._dropped):
            gc.collect()
        self._dropped = alive


def find_versions(root: Path) -> Versions:
    """Returns the versions that have a `saved_model.pb`. Those that cannot be read do not hide the others."""
    found = Versions({}, {}, {})
    for model in root.iterdir():
        if not _NAME.fullmatch(model.name):
            continue
        paths: list[Path] = []
        with _noted(model, found.unreadable):
            if not model.is_dir():
                continue
            paths = [path for path in model.iterdir() if path.name.isascii() and path.name.isdecimal()]
        found.paths[model.name] = {int(path.name): path for path in paths if _is_version(path, found)}
    return found


def _is_version(path: Path, found: Versions) -> bool:
    """Returns whether a folder is, or may be, a SavedModel, and notes its files or why it cannot be read."""
    with _noted(path, found.unreadable):
        if not (path / "saved_model.pb").is_file():
            return False
        found.files[path] = _files(path)
    return True


@contextlib.contextmanager
def _noted(path: Path, unreadable: dict[Path, str]) -> Iterator[None]:
    """Notes why a path cannot be read, in place of an error."""
    try:
        yield
    except OSError as error:
        unreadable[path] = f"{path} cannot be read: {error.strerror}"


def _files(path: Path) -> Files:
    stats = [(str(file.relative_to(path)), _stat(file)) for file in path.rglob("*")]
    return tuple(sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats))


def _stat(file: Path) -> os.stat_result:
    try:
        return file.stat()
    except OSError:  # a link to nothing
        return file.lstat()
