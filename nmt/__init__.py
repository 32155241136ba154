"""The pinned baseline: the RNN translation model of Nematus v0.3 in TensorFlow 2 and Keras 3."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Keeps what native code prints off the terminal."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


# Ctrl-C while `python -m nmt` still imports ends it as it ends any program; `__main__` sees to it from then on.
if sys.argv[:1] == ["-m"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

# A terminal wants its progress bar moved all the time, a log file a line now and then.
if not os.isatty(2):
    os.environ.setdefault("TQDM_MININTERVAL", "30")

# TensorFlow greets with lines about the machine that no setting turns off; a user's mistake is to be one clear line.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
with _silent_stderr():
    import tensorflow  # noqa: F401
