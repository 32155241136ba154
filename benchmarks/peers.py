"""Times updates of the translation models of ours, JoeyNMT and Marian, and prints a table.

    python benchmarks/peers.py --peers_python PYTHON --model_type transformer --json PEERS.json

PYTHON is an interpreter that can import JoeyNMT and pymarian. Each system updates its model in a
process of its own, and they take turns.

All get the same random sentences of 10 to 45 words. Ours are padded to our widths, the others' to
the longest sentence of a batch. JoeyNMT's models are built by its own `build_model`, with its loss,
torch.optim.Adam (fused) and clipping of the gradient's norm. RNN: a bidirectional GRU, Bahdanau's
attention and a decoder of one GRU, which in JoeyNMT gets the attended context as its input and in
ours lies between two GRUs. Transformer: 3 layers a side, 4 heads, feed-forwards of 4 times its
size, pre-norm, the output table is the target embedding. Marian has the same Transformer, and an
RNN whose decoder has two GRUs, as ours. All have LayerNorm where they have norms, dropout of
--dropout and label smoothing of 0.1.

The ratio is to ours in float32. Tokens are those of the target, ends counted. The first update is
the slowest with a batch, and includes compilation.
"""

import argparse
import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tables
from marian import Marian, marian_command
from runner import ROOT, Worker, answer, parser_of, turn, updates_in_turn
from updates import SIZES, made_up_work, model_options, new_update

OURS = {"ours float32": "float32", "ours bfloat16": "mixed_bfloat16"}
THEIRS = ("JoeyNMT float32", "JoeyNMT compiled", "JoeyNMT bfloat16")
# Ids of JoeyNMT's special tokens. Our words begin at 2 and theirs at 4.
PAD = 1
BEGIN = 2
END = 3
SHIFT = 2


def joeynmt_batch(
    source: np.ndarray, source_mask: np.ndarray, target: np.ndarray, target_mask: np.ndarray
) -> dict:
    """Returns JoeyNMT's batch: `src` with ends, its lengths, `trg` with beginnings and ends."""

    def renumbered(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        lengths = mask.sum(1).astype(int)  # the end counts
        positions = np.arange(lengths.max())
        ids = np.where(positions < lengths[:, np.newaxis] - 1, ids[:, : lengths.max()] + SHIFT, PAD)
        ids[np.arange(len(ids)), lengths - 1] = END
        return ids.astype(np.int64)

    target = renumbered(target, target_mask)
    begin = np.full([len(target), 1], BEGIN)
    lengths = source_mask.sum(1).astype(np.int64)
    found = {
        "src": renumbered(source, source_mask),
        "src_length": lengths,
        "trg": np.concatenate([begin, target], 1),
    }
    order = np.argsort(-lengths, kind="stable")  # as for its recurrent encoder
    return {name: array[order] for name, array in found.items()}


def answer_ours(options, dtype):
    """Updates our model with the batches whose numbers come on standard input."""
    from nmt.load_tensorflow import load_tensorflow

    load_tensorflow()  # as the commands do
    work = work_of(options)
    update = new_update(work, "layernorm", dtype)
    answer(lambda number: turn(lambda: update(work.batches[number]), 1))


def start(options, batches, folder):
    """Returns the process of each system."""
    given = {name: vars(options)[name] for name in ("model_type", "dropout", "batches", *SIZES)}
    words = [f"--{name}={value}" for name, value in given.items()]
    commands = {name: [sys.executable, __file__, *words, "--alone", name] for name in OURS}
    if options.peers_python:
        path = Path(folder, "batches.npz")
        arrays = {}
        for number, batch in enumerate(batches):
            arrays |= {f"{number}_{name}": x for name, x in joeynmt_batch(*batch).items()}
        np.savez(path, **arrays)
        script = ROOT / "benchmarks" / "joeynmt_worker.py"
        modes = {name: json.dumps({**given, "mode": name.partition(" ")[2]}) for name in THEIRS}
        for name, mode in modes.items():
            commands[name] = [options.peers_python, script, path, mode]
    systems = {name: Worker(command) for name, command in commands.items()}
    if options.peers_python:
        systems["Marian float32"] = Marian(marian_command(options, batches, folder))
    return systems


def work_of(options):
    given = {"label_smoothing": 0.1, **model_options(options)}
    return made_up_work(options.batches, options.batch_size, options.vocabulary, **given)


def main():
    parser = parser_of(__doc__, **SIZES, dropout=0.1, batches=6, rounds=5)
    parser.add_argument("--peers_python", metavar="PYTHON", help="without it, only ours is timed")
    parser.add_argument("--model_type", choices=("rnn", "transformer"), default="rnn")
    parser.add_argument("--alone", choices=OURS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    if options.alone:
        answer_ours(options, OURS[options.alone])
        return
    batches = work_of(options).batches
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        systems = start(options, batches, folder)
        try:
            calls = {name: running.enter_context(each).ask for name, each in systems.items()}
            taken, first = updates_in_turn(calls, len(batches), options.rounds)
        except RuntimeError as error:
            sys.exit(f"peers.py: {error}; its messages are above")
    words = sum(float(np.sum(batch.target_mask)) for batch in batches) / len(batches)
    figures = {name: {"rounds": rounds, "first": first[name]} for name, rounds in taken.items()}
    tables.publish(options, "peers", figures, model_type=options.model_type, words=words)


if __name__ == "__main__":
    main()
