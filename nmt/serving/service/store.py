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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from ...errors import UserError
from .limits import Refused
from .loaded_model import LoadedModel

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
        again: Seconds until a version that could not be loaded is tried again.
    """

    def __init__(self, root: Path, again: float = 60.0):
        self._root = root
        self._again = again
        self.served: dict[str, Served] = {}
        self._versions: dict[str, dict[int, _Version]] = {}  # by model and number
        self._unreadable: dict[
            Path, str
        ] = {}  # why the folder of a model could not be read at the last look
        self._dropped: list[weakref.ref] = []  # signatures of models that are not served any more

    def open(self) -> None:
        """Loads the newest version of every model."""
        if not self._root.is_dir():
            raise UserError(
                f"there is no folder {self._root}; `python -m nmt export --to MODELS/NAME/1` makes one"
            )
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
        return {
            (name, i): each.why
            for name, found in self._versions.items()
            for i, each in found.items()
            if each.why
        }

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
        """Looks at all versions that have a `saved_model.pb`.

        Those that cannot be read do not hide the others.
        """
        found: dict[str, dict[int, _Version]] = {}
        unreadable: dict[Path, str] = {}
        for model in filter(lambda path: _NAME.fullmatch(path.name), self._root.iterdir()):
            before = self._versions.get(model.name, {})
            try:
                folders = list(model.iterdir()) if model.is_dir() else []
            except OSError as error:
                unreadable[model] = _noted(
                    f"{model} cannot be read: {error.strerror}", self._unreadable.get(model)
                )
                found[model.name] = {
                    number: replace(version, files=None) for number, version in before.items()
                }
                continue
            numbers = {
                int(path.name): path
                for path in folders
                if path.name.isascii() and path.name.isdecimal()
            }
            versions = {
                number: _look_at(path, before.get(number)) for number, path in numbers.items()
            }
            found[model.name] = {number: version for number, version in versions.items() if version}
        self._versions = found
        self._unreadable = unreadable

    def _serve(self, name: str, number: int, version: _Version) -> bool:
        """Returns whether a version is served, after loading it if its files are new and have stopped changing."""
        # A reference to what is served would keep its model in memory.
        current, files = (
            (self.served[name].version, self.served[name].files)
            if name in self.served
            else (None, None)
        )
        if number == current and version.files == files:
            version.refused = None
            version.why = ""
            return True
        is_waiting = version.files == version.refused and time.monotonic() < version.again
        if version.files is None or is_waiting or not version.settled:
            return number == current  # while its files change, what is in memory goes on
        try:
            model = LoadedModel(version.path)
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
            _log.info(
                "%s: version %d is served%s",
                name,
                served.version,
                f", not {old.version}" if old else "",
            )
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


def _look_at(path: Path, before: _Version | None) -> _Version | None:
    """Returns a version, or `None` if the folder holds no SavedModel."""
    try:
        if not (path / "saved_model.pb").is_file():
            return None
        files = _files(path)
    except OSError as error:
        return _Version(
            path,
            None,
            why=_noted(f"{path} cannot be read: {error.strerror}", before and before.why),
        )
    if before is None or before.files is None:
        return _Version(path, files)
    return replace(before, path=path, files=files, settled=files == before.files)


def _noted(why: str, before: str | None) -> str:
    """Returns why something is refused, and logs it if that is new."""
    if why != before:
        _log.error("%s", why)
    return why


def _files(path: Path) -> Files:
    stats = {
        file: file.stat() if file.exists() else file.lstat() for file in path.rglob("*")
    }  # links to nothing too
    odd = [
        file
        for file, x in stats.items()
        if stat.S_IFMT(x.st_mode) not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
    ]
    if odd:  # reading a pipe would never end
        raise OSError(errno.EINVAL, f"{odd[0].relative_to(path)} is a pipe or a device")
    return tuple(
        sorted((str(file.relative_to(path)), x.st_size, x.st_mtime_ns) for file, x in stats.items())
    )
