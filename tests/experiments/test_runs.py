import itertools
import json

import pytest

from experiments import runs
from experiments.corpus import Corpus
from experiments.place import Place
from experiments.plan import Run
from experiments.results import read_results, spread
from experiments.row import Row
from experiments.runs import is_done, make
from nmt.errors import UserError

RUN = Run(Row("rmsnorm", "RMSNorm", kind="rmsnorm"), 1)
SLOW = {"learning_rate": 0.5}
MOVED = Run(Row("moved", "elsewhere", kind="layernorm", centre=0.2, section="centre", options=SLOW), 2)


@pytest.fixture
def corpus():
    options = {"finish_after": 20, "state_size": 8}
    return Corpus("tiny", "Tiny", ("en", "de"), "demo", "train", "dev", {"news": "test"}, 100, 3, options)


@pytest.fixture
def place(corpus, tmp_path):
    place = Place(tmp_path / "work", tmp_path / "logs")
    place.baseline.mkdir(parents=True)
    (place.baseline / "commit").write_text("0123456789ab")
    (place.work / "text").mkdir()
    for path in corpus.files("test", place.work):
        with open(path, "w") as file:
            file.write("a dog runs over the green grass .\n")
    return place


@pytest.fixture
def ran(monkeypatch):
    """The commands, each of which leaves what the real one would."""
    commands = []

    def execute(place, *arguments, output, watch):
        commands.append(arguments)
        given = dict(itertools.pairwise(arguments))
        if "train" in arguments:
            model = place.model(next(run for run in (RUN, MOVED) if f"/{run.name}/" in given["--model"]))
            model.mkdir(parents=True, exist_ok=True)
            progress = {"validations": [{"update": 20, "bleu": 1.5}, {"update": 40, "bleu": 0.5}], "skipped": 0}
            (model / "progress.json").write_text(json.dumps(progress))
            (model / "versions.json").write_text('{"tensorflow": "2"}')
        elif "translate" in arguments:
            with open(given["-o"], "w") as file:
                file.write("a dog runs over the green grass .\n")
        elif "experiments.activations" in arguments:
            with open(given["--to"], "w") as file:
                file.write('{"mean": [0.5]}')

    monkeypatch.setattr(runs, "execute", execute)
    return commands


def names(commands):
    return [" ".join(each for each in command[1:3] if not each.startswith("-")) for command in commands]


def test_a_run_is_trained_and_tested_and_leaves_a_log(corpus, place, ran):
    assert not is_done(RUN, corpus, place)
    make(RUN, corpus, place, lambda: None)
    assert is_done(RUN, corpus, place)
    assert names(ran) == ["nmt train", "nmt translate", "experiments.activations"]
    (result,) = read_results([RUN, MOVED], place)
    assert (result.row, result.seed, result.dev) == (RUN.row, 1, 1.5)
    assert result.test("news") == pytest.approx(100)
    assert result.log["tests"]["news"]["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    assert result.log["commit"] == "0123456789ab"
    assert result.log["activations"] == {"mean": [0.5]}
    assert result.translations == {"news": ["a dog runs over the green grass ."]}


def test_a_log_says_nothing_of_where_it_was_made(corpus, place, ran, tmp_path):
    make(RUN, corpus, place, lambda: None)
    log = place.log(RUN).read_text()
    assert str(tmp_path) not in log
    assert json.loads(log)["options"]["dictionaries"] == ["source.model", "target.model"]


def test_another_centre_is_set_once(corpus, place, ran):
    make(MOVED, corpus, place, lambda: None)
    assert names(ran) == ["experiments.recentre", "nmt train", "nmt translate"]
    (place.model(MOVED) / "last.npz").touch()
    ran.clear()
    make(MOVED, corpus, place, lambda: None)
    assert names(ran) == ["nmt train", "nmt translate"]


def test_options_of_nmt_are_those_of_corpus_row_and_seed(corpus, place, ran):
    corpus.options["learning_rate"] = 0.25
    make(MOVED, corpus, place, lambda: None)
    options = json.loads((place.run(MOVED) / "options.json").read_text())
    assert (options["layer_normalization_type"], options["seed"], options["state_size"]) == ("layernorm", 2, 8)
    assert options["learning_rate"] == 0.5
    assert options["source_dataset"] == str(place.work / "text" / "train.en")


def test_a_log_of_other_options_is_refused(corpus, place, ran):
    make(RUN, corpus, place, lambda: None)
    corpus.options["state_size"] = 16
    with pytest.raises(UserError, match=r"is of a run with another state_size; move .* away, or put back"):
        is_done(RUN, corpus, place)


@pytest.mark.parametrize(("values", "text"), [([36.25], "36.2"), ([1.0, 2.0, 3.0], "2.0 ± 1.0")])
def test_spread_is_the_standard_deviation(values, text):
    assert spread(values) == text
