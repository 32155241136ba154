"""Opens the inputs and outputs of line-by-line commands; warnings by line number."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, TextIO, TypeVar

from tqdm import tqdm

from ..decoding.batch_parallel import workers
from ..decoding.options import DecodingOptions
from ..errors import UserError
from ..messages import log
from ..text.lines import replace_text

T = TypeVar("T")
_BATCHES_PER_WORKER = 20
_NAMED = 10  # lines that a message names


def open_input(path: Path | None) -> AbstractContextManager[IO]:
    """Opens a file in binary mode, or standard input (a text stream) if `path` is `None`.

    Read from its descriptor.
    """
    if path is None and sys.stdin is None:
        raise UserError("standard input is closed; give --input FILE")
    if path is not None and (path.is_dir() or not path.exists()):
        raise UserError(f"{path} does not exist or is a directory; give a text file")
    return contextlib.nullcontext(sys.stdin) if path is None else path.open("rb")


@contextlib.contextmanager
def open_output(path: Path | None, inputs: Iterable[Path | None]) -> Iterator[TextIO]:
    """Opens a file, or standard output if `path` is `None`.

    A regular file is replaced when the output is complete, and compressed if its name ends in `.gz`
    or `.zst`. It is none of the `inputs`, among which `None` is standard input.
    """
    if path is None and sys.stdout is None:
        raise UserError("standard output is closed; give --output FILE")
    if path is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n", line_buffering=True)
        yield sys.stdout
        return
    if path.is_dir():
        raise UserError(f"{path} is a directory; give a file")
    if path.exists() and not path.is_file():  # a device or a pipe
        with path.open("w", 1, "utf-8", newline="\n") as file:
            yield file
        return
    if path.exists() and any(os.path.samestat(path.stat(), each) for each in _states(inputs)):
        raise UserError(f"{path} is read, so it cannot be the output; give another file")
    with replace_text(path) as file:
        yield file


def _states(inputs: Iterable[Path | None]) -> Iterator[os.stat_result]:
    """Yields what the system knows of the inputs that exist; `None` is standard input."""
    for each in inputs:
        # There is none, or it is closed.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            yield each.stat() if each else os.fstat(sys.stdin.fileno())


def chunk_size(options: DecodingOptions) -> int:
    """Returns how many lines are read at a time."""
    return _BATCHES_PER_WORKER * workers() * options.batch_size


def with_bar(results: Iterable[T], output: TextIO, **given: Any) -> Iterable[T]:
    """Draws a progress bar, unless results go to a terminal, where it would be in between."""
    hidden = {"disable": True} if output.isatty() else {}  # False would overrule TQDM_DISABLE
    return tqdm(results, **given, **hidden)


def warn_of_lines(notes: Mapping[str, list[int]]) -> None:
    """Prints notes with the numbers of their lines, at most ten: `3 lines (3, 5, 8): ...`."""
    for note, numbers in notes.items():
        named = ", ".join(map(str, numbers[:_NAMED])) + ", ..." * (len(numbers) > _NAMED)
        lines = f"{len(numbers)} lines ({named})" if len(numbers) > 1 else f"line {named}"
        log.warning(f"{lines}: {note}")


def warn_of_invalid_utf8(
    chunks: Iterator[list], text: Callable[[Any], bytes] = bytes
) -> Iterator[list]:
    """Yields the chunks unchanged, then warns of items that are not UTF-8.

    `text` returns the bytes of an item.
    """
    seen = 0
    bad = []
    for chunk in chunks:
        bad += [
            number
            for number, item in enumerate(chunk, seen + 1)
            if text(item) != text(item).decode(errors="ignore").encode()
        ]
        seen += len(chunk)
        yield chunk
    if bad:
        warn_of_lines(
            {f"not UTF-8, of {seen} lines; the invalid bytes were read as unknown words": bad}
        )
