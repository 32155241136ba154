"""Logs the messages of all modules: to the terminal and, in a training, to `train.log`.

Warnings and information go to both. Figures of updates and errors, which are at the terminal
anyway, go to the file alone, at the level of debugging.
"""

import contextlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

from .errors import UserError

log = logging.getLogger(__package__)


class _Terminal(logging.Handler):
    """Prints on standard error, above a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        if "tqdm" in sys.modules:
            sys.modules["tqdm"].tqdm.write(self.format(record), file=sys.stderr)
        else:
            print(self.format(record), file=sys.stderr, flush=True)


class _Format(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        mark = "warning: " if record.levelno == logging.WARNING else ""
        date = f"{self.formatTime(record, self.datefmt)} " if self.datefmt else ""
        return f"{date}{mark}{record.getMessage()}"


def show_messages() -> None:
    """Makes this process print its messages."""
    if not log.handlers:
        terminal = _Terminal(logging.INFO)
        terminal.setFormatter(_Format())
        log.addHandler(terminal)
        log.setLevel(logging.DEBUG)
        log.propagate = False  # the handler of absl would print them again
        # A full disk must not end a training here, where nothing is lost.
        logging.raiseExceptions = False


@contextlib.contextmanager
def messages_in(path: Path) -> Iterator[None]:
    """Adds messages and a last `UserError` to a file too, with the time, within this context."""
    is_new = not path.exists()
    file = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    file.setFormatter(_Format(datefmt="%Y-%m-%d %H:%M:%S"))
    log.addHandler(file)
    try:
        yield
    except BaseException as error:
        if isinstance(error, UserError):
            log.debug(str(error))
        if is_new and not path.with_name("config.json").exists():
            path.unlink()
        raise
    finally:
        log.removeHandler(file)
        with contextlib.suppress(OSError):
            file.close()
