"""`python -m nmt curves`."""

import pytest


def test_curves_are_drawn_side_by_side(run, trained, tmp_path):
    pytest.importorskip("matplotlib")
    assert run("curves", "model", "model", "--to", "curves.svg")[0] == 0
    assert (tmp_path / "curves.svg").read_bytes().startswith(b"<?xml")
    assert run("curves", "nowhere", "--to", "curves.png")[::2] == (
        2,
        "nmt: nowhere has no validations: its progress.json is missing or damaged\n",
    )
    assert run("curves", "model", "--to", "curves.txt")[::2] == (2, "nmt: curves.txt must end in .png or .svg\n")
