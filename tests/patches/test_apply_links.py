"""apply.py on a tree that somebody else made, and beside another run."""

import os
import subprocess
import sys

import pytest

fcntl = pytest.importorskip(
    "fcntl", reason="Windows locks no folders, and links there need rights of their own"
)


@pytest.fixture
def outside(project):
    """A file beside the tree, which looks just like the one that the patches change."""
    file = project.root.parent / "outside.py"
    file.write_bytes(project.file.read_bytes())
    return file


def make_pipe(file):
    file.unlink()
    os.mkfifo(file)


def link(target):
    def spoil(file):
        file.unlink()
        file.symlink_to(target)

    return spoil


def link_folder_out(file):
    folder = file.parent
    folder.rename(folder.parents[1] / "elsewhere")
    folder.symlink_to(folder.parents[1] / "elsewhere")


SPOILED = {
    "link out": link("../../outside.py"),
    "folder that is a link out": link_folder_out,
    "link to nothing": link("nothing.py"),
    "link in a loop": link("normalization.py"),
    "link to a folder": link("../patches"),
    "pipe": make_pipe,
}


@pytest.mark.parametrize("command", ["status", "check", "apply", "revert"])
@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_what_is_no_file_of_the_tree_is_refused(project, outside, spoil, command):
    text = outside.read_bytes()
    spoil(project.file)
    before = set(project.root.parent.rglob("*"))
    result = project.apply(command)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "normalization.py is no regular file" in result.stderr
    assert outside.read_bytes() == text
    assert set(project.root.parent.rglob("*")) == before


@pytest.mark.parametrize("command", ["apply", "revert"])
@pytest.mark.parametrize("leads_to", ["../outside", "../nothing", "kept.py", "rmsnorm.py"])
def test_a_link_in_the_place_of_an_added_file_is_refused(v03, command, leads_to):
    v03.apply("apply")
    module = v03.root / "nematus/rmsnorm.py"
    (v03.root / "outside").write_bytes(module.read_bytes())
    (v03.root / "nematus/kept.py").write_bytes(module.read_bytes())
    module.unlink()
    module.symlink_to(leads_to)
    result = v03.apply(command)
    assert result.returncode == 2
    assert "rmsnorm.py is no regular file" in result.stderr
    assert module.is_symlink()
    assert (v03.root / "outside").exists()
    assert not (v03.root / "nothing").exists()


@pytest.mark.parametrize("name", [".normalization.py.patched", ".patched-abcd1234"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_temporary_files_go_through_nothing_that_is_there(project, outside, name, kind):
    text = outside.read_bytes()
    odd = project.root / "nmt" / name
    odd.symlink_to(outside) if kind == "link" else os.mkfifo(odd)
    project.apply("apply", check=True)
    assert outside.read_bytes() == text != project.file.read_bytes()
    assert not project.file.is_symlink()


def test_a_run_waits_until_another_has_ended(project):
    before = project.snapshot()
    folder = os.open(project.root, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    command = [sys.executable, "-IS", "patches/apply.py", "apply", "."]
    run = subprocess.Popen(command, cwd=project.root)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            run.wait(0.5)
        assert project.snapshot() == before
    finally:
        os.close(folder)
        status = run.wait(60)
    assert (status, project.snapshot() == before) == (0, False)


def test_a_folder_that_cannot_be_locked_is_patched_all_the_same(project, monkeypatch):
    def refuse(*_):
        raise OSError("this file system has no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert "nmt: applied " in project.apply("apply").stdout
