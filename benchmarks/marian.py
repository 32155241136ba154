"""Trains with Marian, as `python -m pymarian train` of the package pymarian, for peers.py."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path

# Lines of the log.
BEGIN = re.compile("Training started")
UPDATE = re.compile(r" : Up\. \d+ : ")


class Marian:
    """A training that makes an update with the next batch only while it is asked for one."""

    def __init__(self, command):
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def ask(self, _):
        """Lets it make an update and returns the seconds."""
        begun = time.perf_counter()
        self._process.send_signal(signal.SIGCONT)
        self._run_to(UPDATE)
        return time.perf_counter() - begun

    def _run_to(self, expected):
        for line in self._process.stderr:
            if expected.search(line):
                self._process.send_signal(signal.SIGSTOP)
                return
        raise RuntimeError("Marian has ended")

    def __enter__(self):
        self._run_to(BEGIN)
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()


def marian_command(options, batches, folder):
    """Returns the command that trains on these batches, whose words it writes to a folder."""
    for side, at in (("source", 0), ("target", 2)):
        lines = []
        for batch in batches:
            for ids, mask in zip(batch[at], batch[at + 1], strict=True):
                words = ids[: int(mask.sum()) - 1]  # the end counts
                lines.append(" ".join(map(str, words)) + "\n")
        Path(folder, side).write_text("".join(lines))
    known = ["</s>", "<unk>", *map(str, range(2, options.vocabulary))]
    vocabulary = Path(folder, "words.yml")  # JSON is YAML too
    vocabulary.write_text(json.dumps({word: number for number, word in enumerate(known)}, indent=1))
    given = {
        "model": Path(folder, "model.npz"),
        "train-sets": [Path(folder, "source"), Path(folder, "target")],
        "vocabs": [vocabulary, vocabulary],
        "mini-batch": options.batch_size,
        "maxi-batch": 1,
        "maxi-batch-sort": "none",
        "shuffle": "none",
        "dim-emb": options.embedding_size,
        "label-smoothing": 0.1,
        "clip-norm": 1,
        "cpu-threads": 2,
        "disp-freq": "1u",
        "save-freq": "1000000u",
        "workspace": 2000,
    }
    if options.model_type == "transformer":
        given |= {"type": "transformer", "enc-depth": 3, "dec-depth": 3, "transformer-heads": 4}
        given |= {"transformer-dim-ffn": 4 * options.embedding_size, "transformer-preprocess": "n"}
        given |= {"transformer-postprocess": "da", "transformer-postprocess-top": "n"}
        given |= {"transformer-dropout": options.dropout, "tied-embeddings": []}
    else:
        given |= {"type": "s2s", "enc-cell": "gru", "dec-cell": "gru", "layer-normalization": []}
        given |= {"dim-rnn": options.state_size, "dropout-rnn": options.dropout}
    command = [options.peers_python, "-m", "pymarian", "train", "--sync-sgd"]
    for name, value in given.items():
        values = value if isinstance(value, list) else [value]
        command += [f"--{name}", *map(str, values)]
    return command
