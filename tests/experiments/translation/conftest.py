"""Results as trainings write them, and stand-ins for the commands that write them."""

import importlib
import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments.translation import corpus as corpora
from experiments.translation import runs
from experiments.translation.baseline import Store
from experiments.translation.condition import Condition
from experiments.translation.corpus import Corpus
from experiments.translation.results import Result

ROOT = Path(__file__).parents[3]
TESTS = ("news", "web")


def make_result(condition, seed=1, bleu=(10.0, 20.0, 15.0), **log):
    """Returns a result with a validation of each BLEU.

    BLEU on the test sets is 1 and 2 below the best.
    """
    options = {"state_size": 32, "embedding_size": 16}
    validations = [{"update": 100 * number, "bleu": value} for number, value in enumerate(bleu, 1)]
    tests = {
        name: {"bleu": max(bleu) - below, "signature": "nrefs:1"}
        for below, name in enumerate(TESTS, 1)
    }
    whole = {
        "options": options,
        "validations": validations,
        "tests": tests,
        "skipped": 0,
        "step_size_chosen": False,
        **log,
    }
    return Result(condition, seed, whole)


CONDITIONS = {
    "none": Condition("baseline", "Baseline", kind="none", seeds=2),
    "layernorm": Condition("layernorm", "LayerNorm", kind="layernorm"),
    "rmsnorm": Condition("rmsnorm", "RMSNorm", kind="rmsnorm"),
    "prmsnorm": Condition("prmsnorm", "pRMSNorm", kind="prmsnorm"),
    "mine": Condition("mine", "Mine", build=lambda name: None),
    "half": Condition("half", "a half", build=lambda name: None, partial=0.5),
    "moved": Condition("moved", "RMSNorm, elsewhere", kind="rmsnorm", centre=0.25),
}


@pytest.fixture
def results():
    """Every condition once, the Baseline with two seeds."""
    second = make_result(CONDITIONS["none"], seed=2, bleu=(14.0, 24.0))
    return [*(make_result(condition) for condition in CONDITIONS.values()), second]


@pytest.fixture
def times(monkeypatch):
    """A log of benchmarks/training.py that made no updates:

    RMSNorm takes 0.75 of LayerNorm's time.
    """
    rounds = {
        "none": [0.5, 0.5, 0.5],
        "layernorm": [1.0, 2.0, 0.5],
        "layernorm 2": [1.0, 2.0, 0.5],
        "rmsnorm": [0.75, 1.5, 0.25],
        "prmsnorm": [0.5] * 3,
    }
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    training = importlib.import_module("training")
    monkeypatch.setattr(training, "new_update", lambda *_: None)
    monkeypatch.setattr(
        training,
        "updates_in_turn",
        lambda calls, *_: ({key: rounds[key[1]] for key in calls}, dict.fromkeys(calls, 9)),
    )
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "1")
    monkeypatch.setattr(runs, "gflops", lambda: 100.0)
    kinds = ["none", "layernorm", "rmsnorm", "prmsnorm", "layernorm"]
    options = SimpleNamespace(kinds=kinds, dtypes=["float32"], rounds=3)
    return {
        **training.measure(options, SimpleNamespace(batches=[None], options={})),
        "commit": "0123456789ab",
        "gflops": [100.0, 100.0],
    }


SENTENCE = "a dog runs over the green grass ."


@pytest.fixture
def corpus():
    options = {
        "finish_after": 40,
        "state_size": 8,
        "embedding_size": 4,
        "batch_size": 2,
        "learning_rate": 0.25,
    }
    return Corpus(
        "tiny", "Tiny", ("en", "de"), "demo", "train", "dev", {"news": "test"}, 100, 3, options
    )


@pytest.fixture
def store(tmp_path):
    """The place of that corpus, with an empty copy of the baseline."""
    store = Store("tiny", tmp_path)
    store.baseline.mkdir(parents=True)
    (store.baseline / "commit").write_text("0123456789ab")
    return store


@pytest.fixture
def ran(monkeypatch, times):
    """Records the commands that are run. Each writes the files that the real command would."""
    commands = []

    def execute(store, *arguments, **_):
        commands.append(arguments)
        given = dict(itertools.pairwise(arguments))
        if "corpus" in arguments:
            for name in ("train", "dev", "test"):
                for language in ("en", "de"):
                    write(f"{given['--to']}/{name}.{language}", f"{SENTENCE}\n")
        elif "vocab" in arguments:
            write(f"{given['--to']}/target.model", "")
        elif "train" in arguments:
            if "--keep" in given:
                write(f"{given['--model']}/kept/{given['--keep']}.npz", "")
            progress = {
                "validations": [{"update": 20, "bleu": 1.5}, {"update": 40, "bleu": 0.5}],
                "skipped": 0,
            }
            write(
                f"{given['--model']}/progress.json",
                json.dumps({"update": 40, "bad_validations": 1, **progress}),
            )
            options = {"patience": 10, **json.loads(Path(given["--config"]).read_text())}
            write(f"{given['--model']}/config.json", json.dumps(options))
            write(f"{given['--model']}/versions.json", '{"tensorflow": "2"}')
        elif "translate" in arguments:
            write(given["-o"], f"{SENTENCE}\n")
        elif "experiments.translation.inside.mean_shares" in arguments:
            assert Path(given["--model"], "kept").exists()
            write(
                given["--to"],
                json.dumps({"0": {"encoder.norm": 0.25}, "20": {"encoder.norm": 0.5}}),
            )
        elif "--json" in arguments:
            kinds = arguments[arguments.index("--kinds") + 1 : arguments.index("--config")]
            known = times["updates"]["float32"]
            names = [
                kind if kind not in kinds[:at] else f"{kind} 2" for at, kind in enumerate(kinds)
            ]
            updates = {"float32": {name: known.get(name, known["none"]) for name in names}}
            write(given["--json"], json.dumps({**times, "updates": updates}))

    for module in (corpora, runs):
        monkeypatch.setattr(module, "execute", execute)
    return commands


def write(path, text):
    """Writes a file and creates its folder if missing."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
