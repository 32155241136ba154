import json
import subprocess

import pytest

from benchmarks import compare, compare_sides, compare_work, runner
from benchmarks.compare_sides import Failed, Side, Training, Translation


def rows(**rounds):
    return compare.row(
        "a figure", {name.replace("_", " "): values for name, values in rounds.items()}
    )


def test_a_figure_is_slower_beyond_five_percent_and_twice_the_noise():
    quiet = {"base": [1.0, 1.0, 1.0], "base_again": [1.0, 1.0, 1.0]}
    assert not rows(head=[1.049] * 3, **quiet).is_slower
    assert rows(head=[1.06] * 3, **quiet).is_slower
    noisy = {"base": [1.0, 1.0, 1.0], "base_again": [1.04, 1.04, 1.04]}
    assert not rows(head=[1.07] * 3, **noisy).is_slower
    assert rows(head=[1.09] * 3, **noisy).is_slower
    assert not rows(head=[0.5] * 3, **quiet).is_slower
    once = {"base": [1.0], "base_again": [1.0]}  # its noise is unknown
    assert [rows(head=[head], **once).is_slower for head in (1.09, 1.11)] == [False, True]


def test_a_figure_without_a_second_base_has_the_least_noise_of_one_round():
    assert [rows(base=[1.0] * 3, head=[head] * 3).is_slower for head in (1.09, 1.11)] == [
        False,
        True,
    ]


def test_ratios_are_those_of_the_same_round():
    drifting = rows(base=[1.0, 2.0, 4.0], head=[1.1, 2.2, 4.4], base_again=[1.0, 2.0, 4.0])
    assert drifting.ratio == pytest.approx(1.1) and drifting.noise == 0 and drifting.is_slower


def test_a_figure_that_a_side_lacks_has_no_ratio():
    missing = rows(base=[1.0], base_again=[1.0])
    assert (missing.head, missing.ratio, missing.is_slower) == (None, None, False)
    assert list(compare.lines([missing], {}))[1].split() == ["a", "figure", "1", "-", "-", "-"]


def test_a_loss_is_accepted_by_all_words_of_an_entry():
    entries = ["eager forward+backward: one rule: simpler", "fit: known"]
    assert (
        compare.accepted("layer (4096, 1024) float32: eager, forward+backward", entries)
        == "one rule: simpler"
    )
    assert compare.accepted("layer (4096, 1024) float32: eager, forward", entries) is None
    assert compare.accepted("fit, 64 units: 8 steps", entries) == "known"


QUIET = {"base": [1.0] * 4, "base again": [1.0] * 4}


def test_noise_that_hides_a_loss_is_said(capsys):
    noisy = {"base": [1.0] * 3, "base again": [1.2] * 3, "head": [1.3] * 3}
    assert compare.compare([], {"a group": lambda *_: {"update": noisy}}, 3, []) is False
    assert "1 of 1 figures have a noise" in capsys.readouterr().out


def of_turns(*heads):
    """Returns a group whose figure `update` has these values of head, call by call, or none."""
    left = iter(heads)

    def group(sides, rounds, names):
        head = next(left)
        return {"update": {**QUIET, **({"head": [head] * 4} if head else {})}}

    return group


@pytest.mark.parametrize(
    ("heads", "accept", "fails", "told"),
    [
        ([1.3, 1.2], [], True, "SLOWER; before: 1.300"),
        ([1.3, 1.0], [], False, "not slower; before: 1.300"),
        ([1.3, None], [], True, "1.300    0.000  SLOWER, and then"),
        ([None], [], False, "        -"),
        ([1.3], ["update: a wanted loss"], False, "accepted: a wanted loss"),
        ([1.0], [], False, "        1    1.000    0.000\n"),
    ],
)
def test_a_slower_figure_is_measured_once_more(heads, accept, fails, told, capsys):
    assert compare.compare([], {"a group": of_turns(*heads)}, 4, accept) is fails
    assert told in capsys.readouterr().out


@pytest.mark.parametrize(
    "printed",
    [
        b"\r  8%|#   | 7/12 [00:21<00:17,  3.60s/ updates, loss 8.9]",
        b"update 7, epoch 0.12; to the next validation:   0%|   | 7/1000000 [00:21<99:00]",
        b"update 7  train loss 8.946",
        b"2026-11-27 update 7: loss 9",
    ],
)
def test_the_number_of_updates_is_read_from_a_bar_or_a_message(printed):
    assert {int(bar or message) for bar, message in compare_sides.COUNT.findall(printed)} == {7}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(compare_sides, "PLACE", tmp_path)
    return tmp_path


@pytest.mark.slow
def test_trainings_take_turns(options, place):
    """What `train` prints is enough to time its updates; it makes none while it is paused."""
    (place / "options.json").write_text(json.dumps({**options, "valid_freq": 1_000_000}))
    side = Side("base", runner.ROOT, place)
    with Training(side, place / "options.json") as training:
        assert training.seconds(1) > training.seconds(2) > 0
        assert training.peak() > 100  # MiB


@pytest.mark.slow
def test_a_translation_waits_for_lines(place):
    model = runner.ROOT / "tests" / "data" / "golden" / "models" / "layernorm"
    with Translation(Side("base", runner.ROOT, place), model) as translation:
        assert translation.seconds(["a"]) > translation.seconds(["a"] * 3) > 0


def test_a_translation_that_ends_says_why(place):
    with (
        Translation(Side("base", place, place), place) as translation,
        pytest.raises(Failed, match="No module named nmt"),
    ):
        translation.seconds(["a"])


@pytest.mark.slow
def test_a_training_that_ends_says_why(options, place):
    (place / "options.json").write_text(json.dumps({**options, "no_option": 1}))
    with (
        Training(Side("base", runner.ROOT, place), place / "options.json") as training,
        pytest.raises(Failed) as failed,
    ):
        training.seconds(1)
    assert "no_option" in str(failed.value)


def test_a_side_that_fails_is_left_out_and_the_others_go_on(place, capsys):
    one, two = (Side(name, place, place) for name in ("base", "head"))

    def fails():
        raise Failed(b"a traceback\nnmt: no such option")

    assert compare_work.in_turn({one: lambda: 1.0, two: fails}, 3) == {"base": [1.0] * 3}
    assert capsys.readouterr().err == "    head: nmt: no such option\n"


def test_a_worker_measures_the_layer_of_its_checkout_and_says_what_it_cannot(place):
    side = Side("base", runner.ROOT, place)
    given = {
        "shape": [8, 4],
        "dtype": "float32",
        "mode": "tf.function",
        "passes": "forward+backward",
    }
    with compare_sides.TaskWorker(side) as worker:
        assert worker.seconds("layer", given) > 0
        with pytest.raises(Failed, match="no_such_dtype"):
            worker.seconds("layer", {**given, "dtype": "no_such_dtype"})
        assert worker.seconds("layer", given) > 0  # it goes on


def test_the_working_tree_is_head_and_a_commit_is_checked_out_once(place, monkeypatch, capsys):
    monkeypatch.setattr(compare, "PLACE", place)
    if subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=runner.ROOT, capture_output=True
    ).returncode:
        pytest.skip("needs the repository")
    base, head, again = compare.sides_of("HEAD", None)
    assert (base.name, head.name, again.name) == ("base", "head", "base again")
    assert head.checkout == runner.ROOT and base.checkout == again.checkout == compare.checkout(
        "HEAD"
    )
    assert (
        base.checkout / "nmt" / "__main__.py"
    ).is_file() and base.cache == again.cache != head.cache
    with pytest.raises(SystemExit, match="2"):
        compare.checkout("no-commit")
    assert "no-commit is no commit" in capsys.readouterr().err
