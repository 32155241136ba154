"""The process that runs the model, so that a line that kills it does not kill the worker too.

It loads the export in a folder, says whether it could, and then translates batches until its standard input ends.
"""

import contextlib
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

from ..load_tensorflow import load_tensorflow
from .isolation import reason_of

_SIGNATURE = "serving_default"
_INPUT, _OUTPUT = "sources", "translations"


def main() -> None:
    """Loads the export in the folder that the command line names, and answers the messages of the standard input."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # for whatever TensorFlow prints
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the worker
    with contextlib.suppress(OSError):  # only Linux has it
        Path("/proc/self/oom_score_adj").write_text("1000")  # if memory runs out, the worker is not the one to end
    batches = queue.SimpleQueue()
    threading.Thread(target=_receive_all, args=(batches,), daemon=True).start()
    try:
        model = _Model(sys.argv[1])
    except Exception as error:  # a damaged SavedModel fails in many ways
        send(answers, [], reason_of(error))
        os._exit(1)  # leaves no time to the thread, which holds the standard input
    send(answers, [])
    while True:
        try:
            texts, reason = model(batches.get()), None
        except Exception as error:  # whatever a damaged line makes TensorFlow raise
            texts, reason = [], reason_of(error)
        send(answers, texts, reason)


def send(file: BinaryIO, strings: Sequence[bytes], error: str | None = None) -> None:
    """Writes a message: strings, or the reason why there are none."""
    header = {"sizes": [len(each) for each in strings], "error": error}
    file.write(json.dumps(header).encode() + b"\n" + b"".join(strings))
    file.flush()


def receive(file: BinaryIO) -> tuple[list[bytes], str | None]:
    """Returns the strings and the error of the next message.

    Raises:
        EOFError: The file ends before or in the message.
    """
    line = file.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    header = json.loads(line)
    strings = [file.read(size) for size in header["sizes"]]
    if [len(each) for each in strings] != header["sizes"]:
        raise EOFError
    return strings, header["error"]


class _Model:
    """A loaded export: maps sentences to translations."""

    def __init__(self, folder: str):
        self._tf = load_tensorflow()
        import tensorflow_text  # noqa: F401  registers the operations of the tokenizer

        _share_gpus(self._tf)
        self._loaded = self._tf.saved_model.load(folder)  # owns the variables
        self._translate = self._loaded.signatures[_SIGNATURE]
        self([b""])

    def __call__(self, lines: Sequence[bytes]) -> list[bytes]:
        found = self._translate(**{_INPUT: self._tf.constant(lines, self._tf.string)})[_OUTPUT].numpy().tolist()
        if len(found) != len(lines):
            raise ValueError(f"the model returns {len(found)} translations of {len(lines)} lines")
        return found


def _share_gpus(tf: ModuleType) -> None:
    """Makes TensorFlow take the memory of GPUs as it needs it, because several processes load the export."""
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, enable=True)


def _receive_all(batches: queue.SimpleQueue) -> None:
    """Receives all batches. Ends the process when the worker ends, also while the model runs."""
    try:
        while True:
            batches.put(receive(sys.stdin.buffer)[0])
    except EOFError:
        os._exit(0)


if __name__ == "__main__":
    main()
