import pytest

from experiments.translation.place import ROOT, Place
from experiments.translation.row import Row, Run
from nmt.errors import UserError


def test_work_is_in_build_and_what_is_left_of_it_beside_the_rows():
    place, run = Place("tiny"), Run(Row("rmsnorm", "RMSNorm", kind="rmsnorm"), 2)
    assert place.model(run) == ROOT / "build" / "reproduce" / "tiny" / "runs" / "rmsnorm-2" / "model"
    assert place.log(run) == ROOT / "experiments" / "logs" / "tiny" / "rmsnorm-2.json"
    assert place.translations(run, "news").parent == place.logs


def test_work_with_something_else_is_refused():
    place = Place("tiny")
    place.require_same(place.logs, {"a": 1, "b": [2]}, {"b": [2], "a": 1})
    said = f"^{place.logs}: a was 1 and is now None, c was None and is now 3; move {place.logs} and {place.work} away"
    with pytest.raises(UserError, match=said):
        place.require_same(place.logs, {"a": 1, "b": [2]}, {"b": [2], "c": 3})
