"""SIGTERM and Ctrl-C, which end a training between two updates and not within one."""

import contextlib
import signal
from collections.abc import Iterator

_asked: signal.Signals | None = None
_held = False


class Interrupted(BaseException):
    """The process was asked to end; its argument is the signal, SIGTERM or SIGINT."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Makes SIGTERM and Ctrl-C, unless they are ignored, raise `Interrupted` at any moment but within `whole`."""
    global _asked

    def ask(number: int, frame) -> None:
        global _asked
        _asked = signal.Signals(number)
        if not _held:
            raise Interrupted(_asked)

    heeded = [each for each in (signal.SIGTERM, signal.SIGINT) if signal.getsignal(each) is not signal.SIG_IGN]
    before = {number: signal.signal(number, ask) for number in heeded}
    try:
        with unmasked():
            yield
    finally:
        _asked = None
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def unmasked() -> Iterator[None]:
    """Raises `Interrupted` also where a library caught it and raised something else."""
    try:
        yield
    except Exception:
        if _asked:
            raise Interrupted(_asked) from None
        raise


@contextlib.contextmanager
def whole() -> Iterator[None]:
    """Keeps back an interruption until what is within is done."""
    global _held
    _held = True
    try:
        yield
    finally:
        _held = False
    if _asked:
        raise Interrupted(_asked)
