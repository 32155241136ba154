"""Inputs and outputs of the commands: files, pipes, devices and the standard streams."""

import contextlib
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TextIO

from ..errors import UserError
from .files import atomic_write


def open_input(path: Path | None) -> AbstractContextManager[IO]:
    """Opens a file in binary mode, or standard input (a text stream) if `path` is `None`. Read from its descriptor.

    Raises:
        UserError: Standard input is closed, or there is no such file.
        OSError: The file cannot be opened.
    """
    if path is None and sys.stdin is None:
        raise UserError("standard input is closed; give --input FILE")
    if path is not None and not path.exists():
        raise UserError(f"the text {path} does not exist; give a text file")
    return contextlib.nullcontext(sys.stdin) if path is None else path.open("rb")


@contextlib.contextmanager
def open_output(path: Path | None) -> Iterator[TextIO]:
    """Opens a file, or standard output if `path` is `None`. A regular file is replaced when the output is complete.

    Raises:
        UserError: Standard output is closed, or the file cannot be written.
    """
    if path is None and sys.stdout is None:
        raise UserError("standard output is closed; give --output FILE")
    if path is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
        yield sys.stdout
        return
    if path.is_dir():
        raise UserError(f"{path} is a directory; give a file")
    if path.exists() and not path.is_file():  # a device or a pipe
        with path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    with atomic_write(path) as file:
        yield file
