"""SIGTERM and Ctrl-C during a training: recorded when they arrive, obeyed between two updates."""

import contextlib
import signal
from collections.abc import Callable, Iterator


class Interrupted(BaseException):
    """The process was asked to end; the argument is the signal, SIGTERM or SIGINT."""


@contextlib.contextmanager
def noting_signals() -> Iterator[Callable[[], None]]:
    """Records the first SIGTERM or Ctrl-C instead of obeying it. A second one acts as outside of this context.

    Ignored signals stay ignored.

    Yields:
        A function to call where the process may stop. It raises `Interrupted` if a signal was recorded.
    """
    noted: list[signal.Signals] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    heeded = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}

    def restore() -> None:
        for number, handler in heeded.items():
            signal.signal(number, handler)

    def note(number: int, frame) -> None:
        noted.append(signal.Signals(number))
        restore()

    def poll() -> None:
        if noted:
            raise Interrupted(noted[0])

    for number in heeded:
        signal.signal(number, note)
    try:
        yield poll
    finally:
        restore()
