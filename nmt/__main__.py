"""Runs `python -m nmt COMMAND`.

For an error that the user can fix, prints one message and exits with status 2.
"""

import contextlib
import hashlib
import importlib
import importlib.metadata
import os
import re
import shutil
import signal
import sys
from pathlib import Path
from typing import NoReturn

from .commands.parser import parse_arguments
from .errors import UserError, sentence_of
from .load_tensorflow import load_tensorflow
from .messages import show_messages

_ROOM_OF_CACHE = 2**30  # bytes; more than the programs of a training need


def _keep_compiled() -> None:
    """Makes XLA cache compiled programs in the user's cache directory, or where NMT_XLA_CACHE says
    (`off`: nowhere).

    Each processor and each version of TensorFlow has its own directory, because a program compiled
    for another one must not be loaded. There is no cache if the user has set TF_XLA_FLAGS, or if
    the directory cannot be written or is almost full: XLA would end the training when it cannot
    write.
    """
    place = os.environ.get("NMT_XLA_CACHE") or Path(
        os.environ.get("XDG_CACHE_HOME") or "~/.cache", "nmt-xla"
    )
    if place == "off" or "TF_XLA_FLAGS" in os.environ:
        return
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: the user has no home
        lines = set(Path("/proc/cpuinfo").read_text().splitlines())
        processor = sorted(x for x in lines if x.startswith(("flags", "Features", "model")))
        key = "\n".join([importlib.metadata.version("tensorflow"), *processor]).encode()
        directory = Path(place).expanduser() / hashlib.sha256(key).hexdigest()[:12]
        directory.mkdir(parents=True, exist_ok=True)
        has_room = shutil.disk_usage(directory).free > _ROOM_OF_CACHE
        # Flags end at spaces.
        if has_room and os.access(directory, os.W_OK) and not re.search(r"\s", str(directory)):
            os.environ["TF_XLA_FLAGS"] = f"--tf_xla_persistent_cache_directory={directory}"


def main() -> None:
    """Runs the command of the command line."""
    # No traceback for Ctrl-C during imports.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if not os.isatty(2):  # write fewer progress lines to a log file
        os.environ.setdefault("TQDM_MININTERVAL", "30")
    command, arguments = parse_arguments()  # in a moment, before TensorFlow is loaded
    _keep_compiled()
    models = arguments.model if command == "translate" else None
    if command == "serve":
        models = arguments.models.glob("*/*")
    tf = load_tensorflow(models)

    from .training.interruption import exit_with

    module = importlib.import_module(f".commands.{command}", __package__)
    _handle_signals()
    show_messages()
    try:
        module.run(arguments)
    except UserError as error:
        _fail(str(error))
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        named = filter(None, [error.filename, error.strerror or error])
        _fail(": ".join(map(str, named)).replace("\n", " "))
    except (UnicodeError, MemoryError, tf.errors.OpError) as error:
        said = sentence_of(str(error))
        is_of_memory = re.search("OOM|out of memory|allocat", said, re.IGNORECASE)
        if is_of_memory or isinstance(error, MemoryError):
            _fail(f"memory ran out: give smaller batches or sizes, or end other programs ({said})")
        _fail(f"{type(error).__name__}: {said}")
    except SystemExit as end:
        exit_with(end.code)


def _handle_signals() -> None:
    """Makes SIGTERM and Ctrl-C raise `SystemExit`, so that temporary files are removed.

    Ignored signals stay ignored.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda number, _: sys.exit(128 + number))


def _fail(message: str) -> NoReturn:
    print(f"nmt: {message}", file=sys.stderr, flush=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
