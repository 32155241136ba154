"""Times updates of the translation model and of JoeyNMT's on the same batches, and prints a table.

    python benchmarks/peers.py --joeynmt FOLDER --joeynmt_python PYTHON --model_type transformer --json PEERS.json

FOLDER is a checkout of JoeyNMT, and PYTHON an interpreter with PyTorch. Packages that only JoeyNMT's data preparation
needs may be missing. Each system updates its model in a process of its own, and they take turns.

All get the same random sentences of 10 to 45 words. Ours are padded to our widths, JoeyNMT's to the longest sentence of
a batch. JoeyNMT's models are built by its own `build_model`, with its loss, torch.optim.Adam (fused) and clipping of
the gradient's norm. RNN: a bidirectional GRU, Bahdanau's attention and a decoder of one GRU, which in JoeyNMT gets the
attended context as its input and in ours lies between two GRUs. Transformer: 3 layers a side, 4 heads, feed-forwards of
4 times its size, pre-norm, the output table is the target embedding. Both have LayerNorm where they have norms, dropout
of --dropout and label smoothing of 0.1.

The ratio is to ours in float32. Tokens are those of the target, ends counted. The first update is the slowest with a
batch, and includes compilation. Memory is the peak of the process (and what it was after its imports).
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tables
from runner import ROOT, Worker, answer, own_memory, parser_of, ratio, turn, updates_in_turn
from updates import SIZES, made_up_work, model_options, new_update

OURS = {"ours float32": "float32", "ours bfloat16": "mixed_bfloat16"}
THEIRS = ("JoeyNMT float32", "JoeyNMT compiled", "JoeyNMT bfloat16")
HEADS = ["system", "s/update", "+-", "/ ours", "tokens/s", "first s", "MiB", "start"]
# Ids of JoeyNMT's special tokens. Our words begin at 2 and theirs at 4.
PAD, BEGIN, END, SHIFT = 1, 2, 3, 2


def joeynmt_batch(source: np.ndarray, source_mask: np.ndarray, target: np.ndarray, target_mask: np.ndarray) -> dict:
    """Returns a batch as JoeyNMT has it: `src` with ends, its lengths, and `trg` with beginnings and ends."""

    def renumbered(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        lengths = mask.sum(1).astype(int)  # the end counts
        positions = np.arange(lengths.max())
        ids = np.where(positions < lengths[:, np.newaxis] - 1, ids[:, : lengths.max()] + SHIFT, PAD)
        ids[np.arange(len(ids)), lengths - 1] = END
        return ids.astype(np.int64)

    target = renumbered(target, target_mask)
    begin = np.full([len(target), 1], BEGIN)
    lengths = source_mask.sum(1).astype(np.int64)
    return {"src": renumbered(source, source_mask), "src_length": lengths, "trg": np.concatenate([begin, target], 1)}


def work_of(options: argparse.Namespace):
    """Returns the batches and the options of our training."""
    given = {
        name: value if "dropout" not in name else options.dropout for name, value in model_options(options).items()
    }
    if options.model_type == "rnn":
        given |= {f"rnn_dropout_{place}": options.dropout for place in ("embedding", "hidden")}
    return made_up_work(options.batches, options.batch_size, options.vocabulary, label_smoothing=0.1, **given)


def start(command: list[str]) -> Callable[[str], float]:
    """Starts a process that updates a model. Returns a function that sends it a request and returns its answer."""
    return Worker(command).ask


def run_ours(options: argparse.Namespace, dtype: str) -> None:
    """Updates our model."""
    sys.path.insert(0, str(ROOT))
    libraries, work = own_memory(), work_of(options)
    update, _ = new_update(work, "layernorm", dtype)
    memory = {"memory": own_memory, "libraries": lambda: libraries}
    answer(lambda asked: memory[asked]() if asked in memory else turn(lambda: update(work.batches[int(asked)]), 1))


def compare(options: argparse.Namespace, folder: str) -> list[dict]:
    """Measures all systems and returns a row for each."""
    sys.path.insert(0, str(ROOT))
    batches = work_of(options).batches
    path = Path(folder, "batches.npz")
    np.savez(path, **{f"{i}_{name}": x for i, batch in enumerate(batches) for name, x in joeynmt_batch(*batch).items()})
    shared = [f"--{name}={vars(options)[name]}" for name in ("model_type", "dropout", "batches", *SIZES)]
    joeynmt = [options.joeynmt_python, str(ROOT / "benchmarks" / "joeynmt_worker.py"), str(options.joeynmt), str(path)]
    given = {name: vars(options)[name] for name in ("model_type", "dropout", *SIZES)}
    workers = {}
    for name in options.systems:
        ours = [sys.executable, __file__, *shared, "--alone", name]
        theirs = [*joeynmt, json.dumps({**given, "mode": name.partition(" ")[2]})]
        workers[name] = start(ours if name in OURS else theirs)
    calls = {name: lambda number, ask=ask: ask(str(number)) for name, ask in workers.items()}
    taken, first = updates_in_turn(calls, len(batches), options.rounds)
    words = sum(float(np.sum(batch.target_mask)) for batch in batches) / len(batches)
    rows = []
    for name, seconds in taken.items():
        below, median, above = np.quantile(seconds, [0.25, 0.5, 0.75]).tolist()
        over = ratio(seconds, taken["ours float32"]) if "ours float32" in taken else None
        memory = [workers[name](asked) for asked in ("memory", "libraries")]
        row = [name, median, (above - below) / 2, over, words / median, first[name], *memory]
        rows.append(dict(zip(HEADS, row, strict=True)))
    return rows


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__, **SIZES, dropout=0.1, batches=6, rounds=5)
    parser.add_argument("--joeynmt", type=Path, metavar="FOLDER", help="a checkout; without it, only ours is timed")
    parser.add_argument("--joeynmt_python", default=sys.executable, metavar="PYTHON", help="interpreter with PyTorch")
    parser.add_argument("--model_type", choices=("rnn", "transformer"), default="rnn")
    parser.add_argument("--systems", nargs="+", choices=(*OURS, *THEIRS), default=[*OURS, *THEIRS])
    parser.add_argument("--alone", choices=OURS, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.joeynmt is None:
        options.systems = [name for name in options.systems if name in OURS]
    elif not (options.joeynmt / "joeynmt" / "model.py").exists():
        parser.error(f"--joeynmt {options.joeynmt} is no checkout of JoeyNMT: it has no joeynmt/model.py")
    return options


def main() -> None:
    options = parse()
    if options.alone:
        run_ours(options, OURS[options.alone])
        return
    try:
        with tempfile.TemporaryDirectory() as folder:
            rows = compare(options, folder)
    except RuntimeError as error:
        sys.exit(f"peers.py: {error}; its messages are above")
    tables.publish(options, "peers", rows, model_type=options.model_type)


if __name__ == "__main__":
    main()
