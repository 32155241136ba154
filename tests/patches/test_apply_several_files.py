"""apply.py on a series that changes two files: both or none, skipped files, interrupted runs."""

import os

import pytest

from tests.patches.trees import blob_id

# The states of two files, and the places where a line is added to get to the next one.
ONE = [b"a\nb\n", b"new\na\nb\n"]
AT_ONE = [0]
TWO = [b"a\nb\n", b"a\nb\nnew\n", b"a\nnew\nb\nnew\n"]
AT_TWO = [2, 1]


@pytest.fixture
def two_files(project):
    """A series without context: its first patch changes both files, its second only the second."""
    patches = [b"Subject: [PATCH] Add lines\n\n"] * 2
    for path, texts, places in [("nmt/one", ONE, AT_ONE), ("nmt/two", TWO, AT_TWO)]:
        (project.root / path).write_bytes(texts[0])
        for k, place in enumerate(places):
            patches[k] += (
                f"diff --git a/{path} b/{path}\n"
                f"index {blob_id(texts[k])}..{blob_id(texts[k + 1])} 100644\n"
                f"--- a/{path}\n+++ b/{path}\n@@ -{place},0 +{place + 1} @@\n+new\n"
            ).encode()
    (project.series / "series").write_text("first.patch\nsecond.patch\n")
    (project.series / "first.patch").write_bytes(patches[0])
    (project.series / "second.patch").write_bytes(patches[1])
    return project


def contents(project):
    return [(project.root / "nmt" / name).read_bytes() for name in ("one", "two")]


def test_two_files_change_together(two_files):
    for command, through, state in [
        ("apply", "first", [ONE[1], TWO[1]]),
        ("apply", "second", [ONE[1], TWO[2]]),
        ("revert", "second", [ONE[1], TWO[1]]),
        ("revert", "first", [ONE[0], TWO[0]]),
    ]:
        two_files.apply(command, "--through", through, check=True)
        assert contents(two_files) == state
        assert two_files.apply("status").stdout.count("  applied  ") == TWO.index(state[1])


@pytest.mark.parametrize("spoil", ["drifted", "read-only"])
def test_every_file_is_checked_before_the_first_is_written(two_files, spoil):
    second = two_files.root / "nmt/two"
    second.write_text("mine\n") if spoil == "drifted" else second.chmod(0o444)
    before = two_files.snapshot()
    result = two_files.apply("apply")
    assert (result.returncode, spoil in result.stderr) == (2, True)
    assert two_files.snapshot() == before


@pytest.mark.parametrize(
    ("command", "state"), [("apply", "applied 2 of 2"), ("revert", "pristine")]
)
@pytest.mark.parametrize("came_to", [(ONE[1], TWO[0]), (ONE[0], TWO[1]), (ONE[0], TWO[2])])
def test_an_interrupted_run_can_be_finished(two_files, came_to, command, state):
    for name, text in zip(("one", "two"), came_to, strict=True):
        (two_files.root / "nmt" / name).write_bytes(text)
    assert "nmt: interrupted" in two_files.apply("status").stdout
    result = two_files.apply(command)
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, f"nmt: {state}")
    assert contents(two_files) == ([ONE[1], TWO[2]] if command == "apply" else [ONE[0], TWO[0]])


def test_an_interrupt_says_what_to_do(two_files, monkeypatch):
    real = os.replace
    renamed = []

    def replace(source, target):
        if renamed:
            raise KeyboardInterrupt
        renamed.append(target)
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    result = two_files.apply("apply")
    assert result.returncode == 130
    assert result.stderr == "apply.py: interrupted; run it again\n"
    monkeypatch.setattr(os, "replace", real)
    two_files.apply("apply", check=True)
    assert contents(two_files) == [ONE[1], TWO[2]]
    assert not list((two_files.root / "nmt").glob(".patched-*"))


def test_a_file_is_on_the_disk_before_it_takes_its_name(two_files, monkeypatch):
    """Otherwise a power failure could leave an empty file."""
    real = os.replace
    synced = {}
    missed = []

    def fsync(number):
        status = os.fstat(number)
        synced[status.st_ino] = status.st_size

    def replace(source, target):
        status = os.stat(source)
        if synced.get(status.st_ino) != status.st_size:
            missed.append(target)
        real(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    two_files.apply("apply", check=True)
    assert (len(synced), missed) == (2, [])
