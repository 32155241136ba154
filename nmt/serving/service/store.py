"""The models of a folder of `NAME/VERSION` folders: the newest version of each that can be loaded.

A new version is loaded when its files have stopped changing, then replaces the old one; so is the
served version if its files change. A version that cannot be loaded is tried again when its files
change, or a minute later: perhaps there was not enough memory.
"""

import errno
import gc
import logging
import re
import stat
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
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


@dataclass
class _Version:
    """A version in the folder of a model, at the last look."""

    path: Path  # its folder
    files: Files | None  # `None` if they cannot be read
    settled: bool = False  # whether the files were the same at the look before
    refused: Files | None = None  # the files that could not be loaded
    again: float = 0.0  # when to try these again
    why: str = ""  # why the version cannot be read or loaded


class Store:
    """The models of a folder.

    Args:
        root: The folder.
        load: Loads the model of a folder.
        again: Seconds until a version that could not be loaded is tried again.
    """

    def __init__(
        self, root: Path, load: Callable[[Path], LoadedModel] = load_export, again: float = 60.0
    ):
        self.root = root
        self._load = load
        self._again = again
        self.served: dict[str, Served] = {}
        self._versions: dict[str, dict[int, _Version]] = {}  # by model and number
        # Why the folder of a model could not be read at the last look.
        self._unreadable: dict[Path, str] = {}
        self._dropped: list[weakref.ref] = []  # signatures of models that are not served any more

    def open(self) -> None:
        """Loads the newest version of every model."""
        remedy = "`python -m nmt export --to MODELS/NAME/1` makes one"
        if not self.root.is_dir():
            raise UserError(f"there is no folder {self.root}; {remedy}")
        self._look()
        self.refresh()
        if self.served:
            return
        if self.broken:
            raise UserError(next(iter(self.broken.values())))
        raise UserError(
            f"{self.root} holds no NAME/VERSION with an export and a whole number as VERSION; "
            f"{remedy}"
        )

    def refresh(self) -> None:
        """Loads new versions that did not change since the last look; drops what they replace."""
        self._look()
        for name in [name for name in self.served if not self._versions.get(name)]:
            _log.warning("%s: its versions are gone, so it is dropped", name)
            self._replace(name, None)
        self._collect()
        for name, versions in self._versions.items():
            for number in sorted(versions, reverse=True):
                if self._serve(name, number, versions[number]):
                    break

    @property
    def broken(self) -> dict[tuple[str, int], str]:
        """Why versions of models are refused."""
        found: dict[tuple[str, int], str] = {}
        for name, versions in self._versions.items():
            found |= {(name, i): each.why for i, each in versions.items() if each.why}
        return found

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
        """Looks at all versions that hold an export.

        Those that cannot be read do not hide the others.
        """
        found: dict[str, dict[int, _Version]] = {}
        unreadable: dict[Path, str] = {}
        for model in filter(lambda path: _NAME.fullmatch(path.name), self.root.iterdir()):
            before = self._versions.get(model.name, {})
            try:
                folders = list(model.iterdir()) if model.is_dir() else []
            except OSError as error:
                why = f"{model} cannot be read: {error.strerror}"
                unreadable[model] = _noted(why, self._unreadable.get(model))
                found[model.name] = {i: replace(each, files=None) for i, each in before.items()}
                continue
            found[model.name] = {}
            for path in folders:
                if not (path.name.isascii() and path.name.isdecimal()):
                    continue
                number = int(path.name)
                version = _look_at(path, before.get(number))
                if version:
                    found[model.name][number] = version
        self._versions = found
        self._unreadable = unreadable

    def _serve(self, name: str, number: int, version: _Version) -> bool:
        """Returns whether a version is served; loads it if its files are new and do not change."""
        # A reference to what is served would keep its model in memory.
        current = self.served[name].version if name in self.served else None
        if number == current and version.files == self.served[name].files:
            version.refused = None
            version.why = ""
            return True
        is_waiting = version.files == version.refused and time.monotonic() < version.again
        if version.files is None or is_waiting or not version.settled:
            return number == current  # while its files change, what is in memory goes on
        try:
            model = self._load(version.path)
        except UserError as error:
            version.refused = version.files
            version.again = time.monotonic() + self._again
            version.why = _noted(str(error), version.why)
            return number == current
        version.refused = None
        version.why = ""
        self._replace(name, Served(number, model, version.files))
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


def _look_at(path: Path, before: _Version | None) -> _Version | None:
    """Returns a version, or `None` if the folder holds no export."""
    try:
        if not any((path / name).is_file() for name in MODEL_FILES):
            return None
        files = _files(path)
    except OSError as error:
        why = f"{path} cannot be read: {error.strerror}"
        return _Version(path, None, why=_noted(why, before and before.why))
    if before is None or before.files is None:
        return _Version(path, files)
    return replace(before, path=path, files=files, settled=files == before.files)


def _noted(why: str, before: str | None) -> str:
    """Returns why something is refused, and logs it if that is new."""
    if why != before:
        _log.error("%s", why)
    return why


def _files(path: Path) -> Files:
    """Returns the files of a folder; refuses a pipe, whose reading would never end."""
    found = []
    for file in path.rglob("*"):
        entry = file.stat() if file.exists() else file.lstat()  # a link to nothing
        if stat.S_IFMT(entry.st_mode) not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            raise OSError(errno.EINVAL, f"{file.relative_to(path)} is a pipe or a device")
        found.append((str(file.relative_to(path)), entry.st_size, entry.st_mtime_ns))
    return tuple(sorted(found))
