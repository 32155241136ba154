"""Defers SIGTERM and Ctrl-C during a training until the current update is complete."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from ..storage.cache import remove_temporary

_LOOK_EVERY = 0.1  # seconds between two looks for a signal
_left: list[threading.Thread] = []  # threads that `interruptible` has left behind


class Interrupted(BaseException):
    """The process was asked to end; the argument is the signal, SIGTERM or SIGINT."""


@contextlib.contextmanager
def restored_handlers(*numbers: signal.Signals) -> Iterator[dict]:
    """On exit, restores the handlers of the signals that Python knows.

    Yields them by signal, without those of ignored signals.
    """
    before = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in before.items() if handler is not None}
    try:
        yield {number: each for number, each in before.items() if each is not signal.SIG_IGN}
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def deferred_signals() -> Iterator[Callable[[], None]]:
    """Records SIGTERM and Ctrl-C. Ignored signals stay ignored. A Ctrl-C after either takes effect
    at once.

    Another SIGTERM does not: a job system may send it to all processes, and one of them pass it on.

    Yields the function to call where the process may stop, which raises `Interrupted` if a signal
    was recorded.
    """
    recorded: list[signal.Signals] = []

    def record(number: int, frame) -> None:
        recorded.append(signal.Signals(number))
        if signal.SIGINT in handlers:
            signal.signal(signal.SIGINT, handlers[signal.SIGINT])

    def poll() -> None:
        if recorded:
            raise Interrupted(recorded[0])

    with restored_handlers(signal.SIGTERM, signal.SIGINT) as handlers:
        for number in handlers:
            signal.signal(number, record)
        yield poll


def interruptible(function: Callable[[], Any], poll: Callable[[], None]) -> Any:
    """Returns the result of a function, which runs in a thread of its own, or raises its error.

    Nothing can stop a compilation. So if `poll`, called meanwhile, raises, the thread is left
    behind: the function must change nothing that is used later, and the process must end by
    `exit_with`.
    """
    found = []
    errors = []

    def run() -> None:
        try:
            found.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_LOOK_EVERY)
            poll()
    except BaseException:  # also of a second signal, whose handler raises
        _left.append(thread)
        raise
    if errors:
        raise errors[0]
    return found[0]


def exit_with(status: int) -> NoReturn:
    """Ends the process, at once if a thread was left behind.

    The interpreter would crash while that computes.
    """
    if any(thread.is_alive() for thread in _left):
        remove_temporary()
        os._exit(status)
    sys.exit(status)
