"""Small models, vocabularies and corpora."""

import collections
import contextlib
import json
import multiprocessing
import multiprocessing.forkserver
import os
import resource
import shutil
import signal
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from nmt.__main__ import main
from nmt.config import Config
from nmt.messages import show_messages
from nmt.model.registry import ARCHITECTURES
from nmt.model.rnnsearch import RNNSearch
from nmt.normalization import KINDS
from nmt.text.vocabulary import load_vocabulary
from nmt.training.interruption import restored_handlers
from tests.nmt.bigrams import WORDS, write_training

ROOT = Path(__file__).parents[2]
LINES = ["a b c d", "b c d a", "c d a b", "d a b c", "a a b b", "c c d d"]


@pytest.fixture(autouse=True)
def _same_signal_handlers():
    """The main program sets its own."""
    with restored_handlers(signal.SIGINT, signal.SIGTERM):
        yield


@pytest.fixture(autouse=True)
def messages():
    """Messages are printed, as by a command."""
    show_messages()


@pytest.fixture
def eagerly(request):
    """Functions run operation by operation: a small model is ready before it would be compiled.

    Slow tests compile them, as users do.
    """
    tf.config.run_functions_eagerly(not request.node.get_closest_marker("slow"))
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def compiled(eagerly):
    """Functions are compiled, also by the fixture `run`."""
    tf.config.run_functions_eagerly(False)


@pytest.fixture(params=KINDS)
def kind(request):
    """Every kind of normalization that this tree has."""
    return request.param


@pytest.fixture
def make_model():
    """Makes a small model. By default, its two vocabularies have 6 words."""

    def make(kind="layernorm", words=(6, 6), **options):
        return RNNSearch(
            Config(embedding_size=5, state_size=7, layer_normalization_type=kind, **options), *words
        )

    return make


@pytest.fixture
def drawn_masks(monkeypatch):
    """Counts the dropout masks that are drawn, by entries, rounded up to a multiple of 4: a
    number serves four."""
    drawn = collections.Counter()
    draw = tf.raw_ops.StatelessRandomUniformFullIntV2

    def recorded(shape, **options):
        drawn[4 * int(shape[0])] += 1
        return draw(shape=shape, **options)

    monkeypatch.setattr(tf.raw_ops, "StatelessRandomUniformFullIntV2", recorded)
    return drawn


@pytest.fixture
def dictionary(tmp_path):
    """Path of a Nematus dictionary: end, unknown and `WORDS`."""
    path = tmp_path / "words.json"
    path.write_text(json.dumps({word: i for i, word in enumerate(["eos", "UNK", *WORDS])}))
    return path


@pytest.fixture
def vocabulary(dictionary):
    return load_vocabulary(dictionary)


@pytest.fixture
def write_lines(tmp_path):
    """Writes a text file, one line each, and returns its path."""

    def write(name, lines):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write


@pytest.fixture
def contents():
    """Returns the contents of the files in a directory, by name."""

    def read(directory):
        return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}

    return read


# ---- commands in processes of their own, forked from one that has imported TensorFlow already ----

COMMAND = """
import os, sys
os.environ.clear()
os.environ.update(environment)  # the server has the environment of the test that started it
os.chdir(directory)
for descriptor, name in enumerate(files):
    flags = os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    os.dup2(os.open(name, flags, 0o666), descriptor)
sys.stdin, sys.stdout, sys.stderr, sys.argv = open(0), open(1, "w"), open(2, "w"), ["nmt", *words]
exec(first)
from nmt.__main__ import main
from nmt.model.registry import ARCHITECTURES
ARCHITECTURES["bigrams"] = "tests.nmt.bigrams", "Bigrams"
main()
"""


@pytest.fixture(scope="session")
def start():
    """Starts a command in a directory: `start(directory, words)` returns a
    `multiprocessing.Process`.

    `files` are its standard input, output and error; `first` is what it runs before the command.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["nmt.__main__", *(f"nmt.commands.{name}" for name in ("train", "translate", "export"))]
    )
    before = os.getcwd()
    os.chdir(
        ROOT
    )  # the server imports from its directory, and ignores a module that it does not find
    multiprocessing.forkserver.ensure_running()
    os.chdir(before)
    started = []

    def start(directory, words, files=(os.devnull, "output", "errors"), first=""):
        names = {
            "directory": str(directory),
            "words": [str(word) for word in words],
            "files": files,
            "first": first,
        }
        names["environment"] = dict(os.environ)
        started.append(context.Process(target=exec, args=(COMMAND, names)))
        started[-1].start()
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.join()


@pytest.fixture
def training(bigrams, tmp_path):
    return write_training(tmp_path)


@pytest.fixture
def rnn_training(training):
    """The arguments of the same training for an RNN with dropout."""
    return [*training, "--model_type", "rnn", "--rnn_dropout_hidden", 0.2]


@pytest.fixture(scope="session")
def trained_once(start, tmp_path_factory):
    directory = tmp_path_factory.mktemp("trained")
    process = start(
        directory,
        [*write_training(directory), "-m", "model"],
        first="import tensorflow\ntensorflow.config.run_functions_eagerly(True)",
    )
    process.join()
    assert process.exitcode == 0, (directory / "errors").read_text()
    return directory / "model"


@pytest.fixture
def trained(trained_once, training, tmp_path):
    """Copies a trained model to `model`; returns the words of the command that trained it."""
    shutil.copytree(trained_once, tmp_path / "model")
    return [*training, "-m", "model"]


@pytest.fixture
def bigrams(monkeypatch):
    """Adds the architecture `bigrams`, which trains in a moment."""
    monkeypatch.setitem(ARCHITECTURES, "bigrams", ("tests.nmt.bigrams", "Bigrams"))


@pytest.fixture
def run(monkeypatch, capsys, tmp_path, eagerly):
    """Runs a command in a folder of its own, operation by operation.

    Returns exit status, standard output and standard error.
    """
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["nmt", *map(str, words)])
        try:
            main()
            status = 0
        except SystemExit as stop:
            status = stop.code
        return status, *capsys.readouterr()

    with restored_handlers(signal.SIGINT, signal.SIGTERM):
        yield run


@pytest.fixture
def train(run, write_lines, bigrams):
    """Trains a model, in `model`, for two updates; more options may be given."""

    def train(*words, model_type="bigrams"):
        for name in ("train.en", "train.de", "dev.en", "dev.de"):
            write_lines(name, LINES)
        run(
            "vocab",
            "--source_dataset",
            "train.en",
            "--target_dataset",
            "train.de",
            "--to",
            "vocab",
            "--size",
            10,
        )
        files = [
            *("--source_dataset", "train.en", "--target_dataset", "train.de"),
            *("--valid_source_dataset", "dev.en", "--valid_target_dataset", "dev.de"),
            *("--dictionaries", "vocab/source.model", "vocab/target.model"),
        ]
        sizes = [
            "--embedding_size",
            4,
            "--state_size",
            4,
            "--valid_freq",
            2,
            "--translation_maxlen",
            8,
        ]
        return run(
            "train",
            "-m",
            "model",
            "--model_type",
            model_type,
            *files,
            *sizes,
            "--finish_after",
            2,
            *words,
        )

    return train


@pytest.fixture
def full_disk():
    """A context in which every write beyond the first 10,000 bytes of a file fails."""

    @contextlib.contextmanager
    def full_disk():
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return full_disk
