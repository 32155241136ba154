import json

import pytest

from experiments.translation import training
from experiments.translation.row import Row, Run
from experiments.translation.training import train_all
from nmt.errors import UserError
from tests.experiments.translation.conftest import ROWS, write

DONE, BEGUN, NEW = (Run(ROWS[name], 1) for name in ("none", "layernorm", "rmsnorm"))
EACH = 40  # updates of a run


@pytest.fixture
def bars(monkeypatch):
    """The progress bars that are shown."""
    found = []

    class Bar(training.tqdm):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            found.append(self)

    monkeypatch.setattr(training, "tqdm", Bar)
    return found


@pytest.fixture
def made(monkeypatch, place):
    """The runs that are made, with the position of the bar half-way; one run is done before, another half done."""
    found = {}
    write_progress(place, BEGUN, EACH // 2)
    monkeypatch.setattr(training, "is_done", lambda run, corpus, place: run == DONE or run in found)

    def make(run, corpus, place, watch):
        write_progress(place, run, 30)  # it stops early
        watch()
        found[run] = None

    monkeypatch.setattr(training, "make", make)
    return found


def write_progress(place, run, update):
    write(place.model(run) / "progress.json", json.dumps({"update": update}))


def test_unfinished_runs_are_made_and_all_updates_are_counted(corpus, place, made, bars):
    assert train_all([DONE, BEGUN, NEW], corpus, place) == {}
    assert list(made) == [BEGUN, NEW]
    (bar,) = bars
    assert (bar.initial, bar.total, bar.n) == (EACH + EACH // 2, 3 * EACH, 3 * EACH)


def test_a_row_may_have_its_own_number_of_updates(corpus, place, made, bars):
    longer = Run(Row("longer", "longer", kind="none", options={"finish_after": 3 * EACH}), 1)
    assert train_all([NEW, longer], corpus, place) == {}
    (bar,) = bars
    assert (bar.total, bar.n) == (4 * EACH, 4 * EACH)


def test_updates_are_shown_as_they_are_made(corpus, place, made, bars, monkeypatch):
    shown = []

    def make(run, corpus, place, watch):
        for update in (10, 30):
            write_progress(place, run, update)
            watch()
            shown.append(bars[0].n)

    monkeypatch.setattr(training, "make", make)
    train_all([DONE, NEW], corpus, place)
    assert shown == [EACH + 10, EACH + 30]


def test_other_runs_are_made_when_one_fails(corpus, place, made, bars, monkeypatch):
    make = training.make

    def fail(run, *given):
        if run == BEGUN:
            raise UserError("because")
        make(run, *given)

    monkeypatch.setattr(training, "make", fail)
    assert train_all([DONE, BEGUN, NEW], corpus, place) == {"layernorm-1": "because"}
    assert list(made) == [NEW]
    assert bars[0].n == 2 * EACH + EACH // 2


def test_nothing_is_made_if_a_log_has_other_options(corpus, place, made, monkeypatch):
    def is_done(run, corpus, place):
        if run == NEW:
            raise UserError("other options")

    monkeypatch.setattr(training, "is_done", is_done)
    with pytest.raises(UserError, match="other options"):
        train_all([BEGUN, NEW], corpus, place)
    assert not made
