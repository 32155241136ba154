"""Defers SIGTERM and Ctrl-C during a training until the current update is complete."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, NoReturn

from ..storage.cache import remove_temporary

_LOOK_EVERY = 0.1  # seconds between two looks for a signal
_threads: list[threading.Thread] = []  # of `interruptible`


class Interrupted(SystemExit):
    """Ends a process that was asked to end; its status is 128 + the signal."""


@contextlib.contextmanager
def restored_handlers(*numbers: signal.Signals) -> Iterator[dict]:
    """Restores the handlers of the signals that Python knows, on exit.

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
def deferred_signals() -> Iterator[list[int]]:
    """Yields a list to which SIGTERM and Ctrl-C are added as they come. Ignored signals stay
    ignored. A Ctrl-C after either takes effect at once.

    Another SIGTERM does not: a job system may send it to all processes, and one of them pass it on.
    """
    received: list[int] = []

    def record(number: int, frame) -> None:
        received.append(number)
        if signal.SIGINT in handlers:
            signal.signal(signal.SIGINT, handlers[signal.SIGINT])

    with restored_handlers(signal.SIGTERM, signal.SIGINT) as handlers:
        for number in handlers:
            signal.signal(number, record)
        yield received


def interruptible(function: Callable[[], Any], received: list[int]) -> Any:
    """Returns the result of a function, which runs in a thread of its own, or raises its error.
    Returns `None` as soon as there are signals in `received`.

    Nothing can stop a compilation. So the thread is left behind then: the function must change
    nothing that is used later, and the process must end by `exit_with`.
    """
    found: Future = Future()

    def run() -> None:
        try:
            found.set_result(function())
        except BaseException as error:
            found.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    _threads[:] = [*filter(threading.Thread.is_alive, _threads), thread]
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_EVERY)
        if received:
            return None
    return found.result()


def exit_with(status: int) -> NoReturn:
    """Ends the process, at once if `interruptible` has left a thread behind.

    The interpreter would crash while that computes.
    """
    if any(thread.is_alive() for thread in _threads):
        remove_temporary()
        os._exit(status)
    sys.exit(status)
