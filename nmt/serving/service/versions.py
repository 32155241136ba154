"""The `NAME/VERSION` folders of a folder of models, and their files. VERSION is a whole number."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
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
