"""Atomic writes when the disk is full or writing fails, and directories that another process has
locked."""

import errno
import os
import stat
import subprocess
import sys

import pytest

from nmt.errors import UserError
from nmt.storage.files import atomic_directory, atomic_write, exclusive, temporary_path

WAIT = """
import pathlib, sys
from nmt.storage.files import exclusive
with exclusive(pathlib.Path(sys.argv[1])):
    print("here", flush=True)
    sys.stdin.read()
"""


def test_a_full_disk_leaves_the_old_file(full_disk, tmp_path):
    (tmp_path / "text").write_text("before")
    said = f"text cannot be written: {os.strerror(errno.EFBIG)}"
    with pytest.raises(UserError, match=said), full_disk(), atomic_write(tmp_path / "text") as file:
        file.write("after" * 10_000)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("text", "before")]


def test_a_file_keeps_its_permissions(tmp_path):
    for mode in (0o600, 0o664):
        (tmp_path / "text").write_text("before")
        (tmp_path / "text").chmod(mode)
        with atomic_write(tmp_path / "text") as file:
            file.write("after")
        assert (tmp_path / "text").stat().st_mode & 0o777 == mode


def test_a_file_is_synced_before_it_replaces_the_old_one_and_its_directory_after(
    monkeypatch, tmp_path
):
    """A loss of power may not leave a file that is empty."""
    (tmp_path / "text").write_text("before")
    synced = []
    sync = os.fsync

    def fsync(descriptor):
        status = os.fstat(descriptor)
        what = "directory" if stat.S_ISDIR(status.st_mode) else status.st_size
        synced.append((what, (tmp_path / "text").read_text()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic_write(tmp_path / "text") as file:
        file.write("after that")
    assert synced == [(10, "before"), ("directory", "after that")]
    synced.clear()
    with atomic_directory(tmp_path / "folder") as folder:
        (folder / "file").write_text("content")
    assert [what for what, _ in synced] == [7, "directory", "directory"]


def test_an_error_of_another_file_is_not_blamed_on_the_output(tmp_path):
    with pytest.raises(FileNotFoundError, match="input"), atomic_write(tmp_path / "text") as file:
        file.write((tmp_path / "input").read_text())
    with (
        pytest.raises(UserError, match="none/text cannot be written"),
        atomic_write(tmp_path / "none" / "text"),
    ):
        pass


def test_an_exception_while_writing_leaves_the_old_file(tmp_path):
    with pytest.raises(ZeroDivisionError), atomic_write(tmp_path / "text") as file:
        file.write(str(1 / 0))
    assert not list(tmp_path.iterdir())


def test_other_files_named_part_are_kept(tmp_path):
    (tmp_path / "text.part").write_text("mine")
    with atomic_write(tmp_path / "text") as one, atomic_write(tmp_path / "text") as two:
        one.write("one")
        two.write("two")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "text": "one",
        "text.part": "mine",
    }


def test_only_temporary_files_of_killed_processes_are_removed(tmp_path):
    temporary_path(tmp_path / "last.npz").write_text("half")
    (temporary_path(tmp_path / "averaged") / "assets").mkdir(parents=True)
    (tmp_path / ".mine.part").write_text("mine")
    (tmp_path / ".mine.01234567.part.txt").write_text("mine")
    (tmp_path / ".linked.01234567.part").symlink_to(tmp_path / ".mine.part")
    with (
        atomic_write(tmp_path / "translations") as file,
        atomic_directory(tmp_path / "exported") as folder,
    ):
        with exclusive(tmp_path):
            pass
        file.write("of another process")
        (folder / "model").write_text("of another process")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        ".linked.01234567.part",
        ".mine.01234567.part.txt",
        ".mine.part",
        "exported",
        "lock",
        "translations",
    ]
    assert [path.name for path in (tmp_path / "exported").iterdir()] == ["model"]


def test_a_new_directory_removes_what_killed_processes_left_beside_it(tmp_path):
    temporary_path(tmp_path / "1").mkdir()
    with atomic_directory(tmp_path / "1"), atomic_directory(tmp_path / "2"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]


def test_temporary_files_in_folders_are_removed_but_not_behind_links(tmp_path):
    for name in ("model/kept", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
        temporary_path(tmp_path / name / "2.npz").write_text("half")
    (tmp_path / "model" / "valid").symlink_to(tmp_path / "elsewhere")
    with exclusive(tmp_path / "model"):
        assert not list((tmp_path / "model" / "kept").iterdir())
    assert len(list((tmp_path / "elsewhere").iterdir())) == 1


def test_a_pipe_with_the_name_of_a_temporary_file_is_not_opened(tmp_path):
    """Opening it would never end."""
    os.mkfifo(tmp_path / ".last.npz.01234567.part")
    with exclusive(tmp_path):
        pass


def test_a_directory_is_locked_until_its_process_ends(tmp_path):
    """The OS releases the lock of a process that is killed."""
    command = [sys.executable, "-c", WAIT, str(tmp_path / "model")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"here\n"
        with (
            pytest.raises(UserError, match="model is in use by another training"),
            exclusive(tmp_path / "model"),
        ):
            pass
        other.kill()
    with exclusive(tmp_path / "model"):
        pass


@pytest.mark.parametrize("place", ["file", "file/model", "/sys"])
def test_a_directory_that_is_not_writable_is_refused(tmp_path, place):
    """A file in place of the directory or of its parent, and /sys, where not even root can
    create a file."""
    (tmp_path / "file").touch()
    with (
        pytest.raises(UserError, match=r"cannot be written to"),
        exclusive(tmp_path / place),
    ):
        pass


def test_a_directory_that_fails_leaves_no_parents_but_those_that_others_use(tmp_path):
    for name, other in [("a/b/c/1", None), ("d/e/f/1", "d/e/other")]:
        with pytest.raises(ZeroDivisionError), atomic_directory(tmp_path / name) as folder:
            (folder / "file").touch()
            if other:
                (tmp_path / other).touch()
            raise ZeroDivisionError
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "d",
        "d/e",
        "d/e/other",
    ]
