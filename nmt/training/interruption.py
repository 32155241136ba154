"""Defers SIGTERM and Ctrl-C during a training until the current update is complete."""

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator


class Interrupted(BaseException):
    """The process was asked to end; the argument is the signal, SIGTERM or SIGINT."""


@contextlib.contextmanager
def sigterm_exits() -> Iterator[None]:
    """Within this context, SIGTERM ends the process at once with status 0, unless it is ignored."""
    before = _handlers(signal.SIGTERM)
    for number in before:
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def deferred_signals() -> Iterator[Callable[[], None]]:
    """Records the first SIGTERM or Ctrl-C. A second one takes effect at once.

    Ignored signals stay ignored.

    Yields:
        A function to call where the process may stop. It raises `Interrupted` if a signal was recorded.
    """
    recorded: list[signal.Signals] = []
    handlers = _handlers(signal.SIGTERM, signal.SIGINT)

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def record(number: int, frame) -> None:
        recorded.append(signal.Signals(number))
        restore()

    def poll() -> None:
        if recorded:
            raise Interrupted(recorded[0])

    for number in handlers:
        signal.signal(number, record)
    try:
        yield poll
    finally:
        restore()


def _handlers(*numbers: signal.Signals) -> dict:
    """Returns the handlers of the signals that are not ignored and whose handler can be set again."""
    before = {number: signal.getsignal(number) for number in numbers}
    return {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
