"""Files that are whole or not there."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO


@contextlib.contextmanager
def write_aside(path: Path) -> Iterator[TextIO]:
    """Opens a text file that takes its name once all of it is written."""
    aside = path.with_name(f"{path.name}.part")
    try:
        with aside.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
