"""`python -m nmt curves`."""

import shutil

import pytest


def test_curves_are_drawn_side_by_side(run, trained, tmp_path):
    pytest.importorskip("matplotlib")
    shutil.copytree(tmp_path / "model", tmp_path / "another")
    assert run("curves", "model", "another", "--to", "curves.svg")[0] == 0
    picture = (tmp_path / "curves.svg").read_text()
    for text in ("model", "another", "validation BLEU", "validation chrF", "validation loss (nats per token)"):
        assert f"<!-- {text} -->" in picture
    assert run("curves", "nowhere", "--to", "curves.png")[::2] == (
        2,
        "nmt: nowhere has no validations: its progress.json is missing\n",
    )
    assert run("curves", "model", "--to", "curves.txt")[::2] == (2, "nmt: curves.txt must end in .png or .svg\n")
