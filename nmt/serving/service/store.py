"""Loads the newest version of each model in a folder of `NAME/VERSION` folders, again and again.

A new version is loaded when its files have stopped changing, then replaces the old one; so is the
served version if its files change. A version that cannot be loaded is tried again when its files
change, or a minute later: perhaps there was not enough memory.
"""

import collections
import errno
import gc
import logging
import re
import stat
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ...errors import UserError
from .limits import Refused
from .loaded_model import MODEL_FILES, LoadedModel, load_export

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_log = logging.getLogger("serve")
Files = tuple[tuple[str, int, int], ...]  # name, size and time of every file of a version


class Served(NamedTuple):
    """A model that is served."""

    version: int
    model: LoadedModel
    files: Files  # when it was loaded


class _Failure(NamedTuple):
    """Says why a version cannot be served, or the folder of a model cannot be read."""

    why: str
    files: Files | None  # those that cannot be loaded
    retry_at: float  # `time.monotonic()`


class Store:
    """The models of a folder.

    Args:
        root: The folder.
        load: Loads the model of a folder.
        retry_seconds: Seconds until a version that could not be loaded is tried again.
    """

    def __init__(
        self,
        root: Path,
        load: Callable[[Path], LoadedModel] = load_export,
        retry_seconds: float = 60.0,
    ):
        self.root = root
        self._load = load
        self._retry_seconds = retry_seconds
        self.served: dict[str, Served] = {}
        # The files of each version at the last look; `None` if they cannot be read.
        self._files: dict[Path, Files | None] = {}
        self._failures: dict[Path, _Failure] = {}
        self._dropped: list[weakref.ref] = []  # signatures of models that are not served any more

    def open(self) -> None:
        """Loads the newest version of every model."""
        if self.root.is_dir():
            self._look()
            self.refresh()
        if not self.served:
            raise UserError(
                next(
                    iter(self.broken.values()),
                    f"{self.root} does not exist, or holds no NAME/VERSION with an export and a "
                    "whole number as VERSION; `python -m nmt export --to MODELS/NAME/1` makes one",
                )
            )

    def refresh(self) -> None:
        """Loads new versions that did not change since the last look; drops what they replace."""
        before = self._files
        self._look()
        versions = collections.defaultdict(list)
        for path in sorted(self._files, key=lambda path: int(path.name), reverse=True):
            versions[path.parent.name].append(path)
        for name in self.served.keys() - versions:
            _log.warning("%s: its versions are gone, so it is dropped", name)
            self._replace(name, None)
        self._collect()
        for name, paths in versions.items():
            for path in paths:
                if self._serve(name, path, self._files[path] in before.values()):
                    break

    @property
    def broken(self) -> dict[tuple[str, int], str]:
        """The reasons why versions of models are refused."""
        failures = dict(self._failures)  # another thread may be in `refresh`
        versions = failures.keys() & self._files.keys()
        return {(path.parent.name, int(path.name)): failures[path].why for path in versions}

    def find(self, name: str, version: str | None) -> Served:
        """Returns a model with its version; `None` is the newest version."""
        served = self.served.get(name)
        if served is None:
            names = ", ".join(sorted(self.served)) or "none"
            raise Refused(404, f"there is no such model; the served models are: {names}")
        if version not in (None, str(served.version)):
            raise Refused(404, f"this version of {name} is not served; version {served.version} is")
        return served

    def _look(self) -> None:
        """Looks at the files of all versions that hold an export.

        Those that cannot be read do not hide the others.
        """
        found: dict[Path, Files | None] = {}
        for model in filter(lambda path: _NAME.fullmatch(path.name), self.root.iterdir()):
            try:
                folders = list(model.iterdir()) if model.is_dir() else []
                self._failures.pop(model, None)
            except OSError as error:  # its versions that are served go on
                self._fail(model, f"{model} cannot be read: {error.strerror}")
                found |= {path: None for path in self._files if path.parent == model}
                continue
            for path in folders:
                if path.name.isascii() and path.name.isdecimal():
                    try:
                        if any((path / name).is_file() for name in MODEL_FILES):
                            found[path] = _files(path)
                            if path in self._failures and not self._failures[path].files:
                                del self._failures[path]  # it can be read again
                    except OSError as error:
                        found[path] = None
                        self._fail(path, f"{path} cannot be read: {error.strerror}")
        self._files = found

    def _fail(self, path: Path, why: str, files: Files | None = None) -> None:
        """Notes why something is refused, and logs it if that is new."""
        if path not in self._failures or self._failures[path].why != why:
            _log.error("%s", why)
        self._failures[path] = _Failure(why, files, time.monotonic() + self._retry_seconds)

    def _serve(self, name: str, path: Path, is_settled: bool) -> bool:
        """Returns whether a version is served; loads it if its files are new and do not change."""
        files = self._files[path]
        number = int(path.name)
        # A reference to what is served would keep its model in memory.
        current = self.served[name].version if name in self.served else None
        if number == current and files == self.served[name].files:
            self._failures.pop(path, None)
            return True
        failure = self._failures.get(path)
        is_waiting = failure and failure.files == files and time.monotonic() < failure.retry_at
        if files is None or is_waiting or not is_settled:
            return number == current  # while its files change, what is in memory goes on
        try:
            model = self._load(path)
        except UserError as error:
            self._fail(path, str(error), files)
            return number == current
        self._failures.pop(path, None)
        self._replace(name, Served(number, model, files))
        return True

    def _replace(self, name: str, served: Served | None) -> None:
        """Serves another version.

        Requests in progress keep the old one in memory until they are done.
        """
        old = self.served.get(name)
        kept = {key: value for key, value in self.served.items() if key != name}
        self.served = {**kept, name: served} if served else kept
        if served:
            instead = f", not {old.version}" if old else ""
            _log.info("%s: version %d is served%s", name, served.version, instead)
        if old:
            self._dropped += [weakref.ref(signature) for signature in old.model.signatures.values()]
        del old
        self._collect()
        gc.freeze()  # else collections look at all of TensorFlow, while requests wait

    def _collect(self) -> None:
        """Frees dropped models that no request uses any more.

        Their graphs are in reference cycles.
        """
        alive = [signature for signature in self._dropped if signature() is not None]
        if len(alive) < len(self._dropped):
            gc.unfreeze()
            gc.collect()
            gc.freeze()
        self._dropped = alive


def _files(path: Path) -> Files:
    """Returns the files of a folder; refuses a pipe, whose reading would never end."""
    found = []
    for file in path.rglob("*"):
        entry = file.stat() if file.exists() else file.lstat()  # a link to nothing
        if stat.S_IFMT(entry.st_mode) not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            raise OSError(errno.EINVAL, f"{file.relative_to(path)} is a pipe or a device")
        found.append((str(file.relative_to(path)), entry.st_size, entry.st_mtime_ns))
    return tuple(sorted(found))
