"""Times updates of the translation model with each kind of normalization, and prints a table.

    python benchmarks/training.py --model_type transformer --dtypes float32 mixed_bfloat16
    python benchmarks/training.py --config FILE.json --batches 10 --rounds 10 --json TIMES.json
    python benchmarks/training.py --baseline FOLDER --kinds none mine mine   # twice: the noise

All kinds update a model in turn on the same padded batches. They come from a patched copy of the
baseline, made for this run, or from the copy that --baseline names. The batches are random
sentences of 10 to 45 words or, with --config, a file for `nmt train --config`, those of that
training. "first" is the slowest first update with a batch, which includes compilation. In the log,
the i-th `rounds` of all kinds were interleaved.
"""

import itertools
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tables
from runner import parser_of, turn, updates_in_turn, write_log
from updates import (
    ROOT,
    SIZES,
    made_up_work,
    model_options,
    new_update,
    patched_baseline,
    real_work,
)

KINDS = ["none", "layernorm", "l2norm", "rmsnorm", "prmsnorm"]


def measure(options, work):
    """Measures all kinds and returns what --json writes."""
    from nmt.config import FILES

    calls = {}
    for dtype, (name, kind) in itertools.product(options.dtypes, named(options.kinds).items()):
        calls[dtype, name] = partial(timed, new_update(work, kind, dtype), work.batches)
    seconds, first = updates_in_turn(calls, len(work.batches), options.rounds)
    found = {dtype: {} for dtype in options.dtypes}
    for (dtype, name), rounds in seconds.items():
        found[dtype][name] = {"rounds": rounds, "first": first[dtype, name]}
    left_out = (*FILES, "layer_normalization_type")
    return {
        "threads": int(os.environ.get("TF_NUM_INTRAOP_THREADS", 0)) or os.cpu_count(),
        "options": {key: work.options[key] for key in work.options if key not in left_out},
        "updates": found,
    }


def timed(update, batches, number):
    """Returns the seconds of an update with a batch."""
    return turn(partial(update, batches[number]), 1)


def named(kinds):
    """Returns the kinds by name; one that is given again has a number in its name."""
    found = {}
    for at, kind in enumerate(kinds):
        number = kinds[: at + 1].count(kind)
        found[kind if number == 1 else f"{kind} {number}"] = kind
    return found


def parse(arguments=None):
    parser = parser_of(__doc__, **SIZES, batches=6, rounds=5)
    add = parser.add_argument
    add("--model_type", choices=("rnn", "transformer"), default="rnn")
    add("--config", metavar="FILE", help="use the sizes, model and batches of this training")
    add("--baseline", metavar="FOLDER", help="measure this patched copy")
    add("--kinds", nargs="+", default=KINDS, help="kinds of normalization in the copy")
    add("--dtypes", nargs="+", default=["float32"], choices=["float32", "mixed_bfloat16"])
    options = parser.parse_args(arguments)
    if options.baseline and not Path(options.baseline, "nmt").is_dir():
        parser.error(f"--baseline {options.baseline} has no nmt; give what apply.py has patched")
    return options


def main():
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        sys.path[:0] = [os.path.abspath(options.baseline or patched_baseline(folder)), str(ROOT)]
        from nmt.errors import UserError
        from nmt.load_tensorflow import load_tensorflow
        from nmt.storage.files import read_json

        load_tensorflow()  # as the commands do
        try:
            if options.config:
                work = real_work(read_json(options.config), options.batches)
            else:
                sizes = (options.batches, options.batch_size, options.vocabulary)
                work = made_up_work(*sizes, **model_options(options))
            measured = measure(options, work)
        except UserError as error:
            print(f"training.py: {error}", file=sys.stderr)
            sys.exit(2)
        write_log(options.json, "training", **measured)
        print(*tables.training(measured)[0], sep="\n")


if __name__ == "__main__":
    main()
