"""Translations of many lines by a model that may fail on some of them."""

from collections.abc import Callable, Sequence

from .lines import Fault

Model = Callable[[Sequence[bytes]], list[bytes]]
_LONGEST = 200  # characters of a reason
_PLACES = ("Graph execution error", "Detected at node", "<stack traces", "[[")


class ModelError(Exception):
    """An error of the model; its message is the reason."""


class HungError(Exception):
    """The model did not answer in time. No line is blamed, since a slow machine may be the reason."""


def translate_lines(model: Model, lines: Sequence[bytes | Fault]) -> list[bytes | Fault]:
    """Returns the translation of each line, or a fault.

    If the model fails, the lines are split in halves until each line that it fails on is alone.

    Raises:
        Exception: The model fails on an empty line too, so the fault is not in the lines.
        HungError: The model does not answer in time.
    """
    found = iter(_isolate(model, [line for line in lines if isinstance(line, bytes)]))
    return [line if isinstance(line, Fault) else next(found) for line in lines]


def _isolate(model: Model, lines: Sequence[bytes]) -> list[bytes | Fault]:
    if not lines:
        return []
    try:
        return [_whole(text) for text in model(lines)]
    except HungError:
        raise
    except Exception as error:  # whatever a damaged line makes TensorFlow raise
        if len(lines) == 1:
            model([b""])
            return [Fault(f"the model fails: {reason_of(error)}")]
    half = len(lines) // 2
    return _isolate(model, lines[:half]) + _isolate(model, lines[half:])


def _whole(text: bytes) -> bytes | Fault:
    return Fault("its translation has a line feed") if b"\n" in text else text


def reason_of(error: Exception) -> str:
    """Returns type and message of an error, in one line. TensorFlow puts the place in the graph before its message."""
    if isinstance(error, ModelError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith(_PLACES)] or lines or [""]
    return f"{type(error).__name__}: {said[0]}"[:_LONGEST]
