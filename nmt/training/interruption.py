"""Defers SIGTERM and Ctrl-C during a training until the current update is complete."""

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator


class Interrupted(BaseException):
    """The process was asked to end; the argument is the signal, SIGTERM or SIGINT."""


@contextlib.contextmanager
def restored_handlers(*numbers: signal.Signals) -> Iterator[dict]:
    """On exit, restores the handlers of the signals. Yields them by signal, without those of ignored signals."""
    before = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in before.items() if handler is not None}  # None: not of Python
    try:
        yield {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def sigterm_exits() -> Iterator[None]:
    """Within this context, SIGTERM ends the process at once with status 0, unless it is ignored."""
    with restored_handlers(signal.SIGTERM) as handlers:
        for number in handlers:
            signal.signal(number, lambda *_: sys.exit(0))
        yield


@contextlib.contextmanager
def deferred_signals() -> Iterator[Callable[[], None]]:
    """Records the first SIGTERM or Ctrl-C. A second one takes effect at once.

    Ignored signals stay ignored.

    Yields:
        A function to call where the process may stop. It raises `Interrupted` if a signal was recorded.
    """
    recorded: list[signal.Signals] = []

    def record(number: int, frame) -> None:
        recorded.append(signal.Signals(number))
        for each, handler in handlers.items():
            signal.signal(each, handler)

    def poll() -> None:
        if recorded:
            raise Interrupted(recorded[0])

    with restored_handlers(signal.SIGTERM, signal.SIGINT) as handlers:
        for number in handlers:
            signal.signal(number, record)
        yield poll
