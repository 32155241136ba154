"""Trains what is not trained yet of a task of the papers, measures, and writes runs/report."""

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Collection
from pathlib import Path

from nmt.errors import UserError
from nmt.load_tensorflow import load_tensorflow

from .runs.store import Restart

FOLDER = Path(__file__).parent


def find_tasks() -> list[str]:
    """Returns the names of all tasks: the folders here that have a `task.py`."""
    return sorted(path.parent.name for path in FOLDER.glob("*/task.py"))


def reproduce(task: str, data: str, so_far: bool, seeds: Collection[int] = ()) -> None:
    """Reproduces a task on some data; an empty string means the default data of the task.

    Raises:
        UserError: There is no such task, or it failed.
    """
    if task not in find_tasks():
        raise UserError(f"TASK={task} is unknown; choose one of {', '.join(find_tasks())}")
    module = importlib.import_module(f"experiments.{task}.task")
    if seeds and task != "translation":
        raise UserError(f"--seeds is for translation; TASK={task} trains all its seeds")
    module.reproduce(data, so_far, **({"seeds": seeds} if seeds else {}))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument(
        "data", nargs="?", default="", help="a name that the task knows, or a folder"
    )
    parser.add_argument(
        "--task",
        default="translation",
        help=f"one of {', '.join(find_tasks())} (default: translation)",
    )
    parser.add_argument(
        "--so-far", action="store_true", help="report on what is done; train and measure nothing"
    )
    parser.add_argument(
        "--seeds",
        nargs="+",
        type=int,
        default=[],
        metavar="N",
        help="train only these seeds, and measure nothing",
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        load_tensorflow()
        reproduce(options.task, options.data, options.so_far, options.seeds)
    except Restart:
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", "experiments", *sys.argv[1:]])
    except (UserError, OSError, ModuleNotFoundError) as error:
        remedy = "; `make reproduce` installs what is needed" * isinstance(
            error, ModuleNotFoundError
        )
        print(f"experiments: {error}{remedy}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted; the same command continues from here", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
