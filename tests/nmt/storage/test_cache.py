"""The cache: arrays and digests are computed once, and again after damage or a change of the file."""

import os
import threading

import numpy as np
import pytest

from nmt.errors import UserError
from nmt.storage.cache import Cache, open_cache


@pytest.fixture
def cache(tmp_path):
    (tmp_path / "cache").mkdir()
    return Cache(tmp_path / "cache")


@pytest.fixture
def counted():
    """Returns the numbers from 0 to 9; `counted.calls` counts the calls."""

    def counted():
        counted.calls += 1
        return np.arange(10)

    counted.calls = 0
    return counted


def set_age(path, seconds):
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - int(seconds * 1e9)))


def test_an_array_is_made_once_and_memory_mapped(cache, counted):
    for each in (cache, cache, Cache(cache.directory)):
        found = each.array("numbers", counted)
        np.testing.assert_array_equal(found, np.arange(10))
        assert isinstance(found.base, np.memmap)
    assert counted.calls == 1


@pytest.mark.parametrize("array", [np.zeros(0, np.int32), np.array(7), np.array(["a", "ß"])])
def test_empty_arrays_and_strings_are_kept(cache, array):
    cache.save("some", array)
    np.testing.assert_array_equal(cache.load("some"), array, strict=True)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: b"",
        lambda content: content[:5],
        lambda content: content[:150] + bytes([content[150] ^ 1]) + content[151:],
        lambda content: content[:20] + b"x" + content[21:],
        lambda content: content + b"\0",
    ],
    ids=["cut", "empty", "short", "flipped", "header", "longer"],
)
def test_a_damaged_array_is_made_again(cache, counted, damage):
    cache.array("numbers", counted)
    path = cache.directory / "numbers.npy"
    path.write_bytes(damage(path.read_bytes()))
    np.testing.assert_array_equal(cache.array("numbers", counted), np.arange(10))
    np.testing.assert_array_equal(Cache(cache.directory).array("numbers", counted), np.arange(10))
    assert counted.calls == 2


def test_many_threads_make_an_array_once(cache, counted):
    found = []
    threads = [threading.Thread(target=lambda: found.append(cache.array("numbers", counted))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), counted.calls) == (8, 1)


@pytest.fixture
def settled(monkeypatch):
    """Lets files count as old enough to be remembered."""
    monkeypatch.setattr("time.time_ns", lambda: 2**62)


def test_a_digest_is_remembered_until_the_file_changes(cache, tmp_path, settled):
    path = tmp_path / "text"
    path.write_text("old")
    assert cache.digest(path, lambda: "first") == "first"
    assert cache.digest(path, lambda: "not read") == "first"
    set_age(path, -5)
    assert cache.digest(path, lambda: "second") == "second"
    status = path.stat()
    path.write_text("new")  # of the same size
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert cache.digest(path, lambda: "third") == "third"
    (tmp_path / "other").write_text("any")
    os.utime(tmp_path / "other", ns=(status.st_atime_ns, status.st_mtime_ns))
    (tmp_path / "other").replace(path)
    assert cache.digest(path, lambda: "fourth") == "fourth"


def test_the_digest_of_a_file_that_was_just_written_is_not_remembered(cache, tmp_path):
    """Another change within a clock tick would not be seen."""
    (tmp_path / "text").write_text("new")
    answers = iter(["first", "second"])
    assert [cache.digest(tmp_path / "text", lambda: next(answers)) for _ in range(2)] == ["first", "second"]


def test_a_file_that_changes_while_it_is_read_is_refused(cache, tmp_path):
    path = tmp_path / "text"
    path.write_text("old")
    with pytest.raises(UserError, match="text changed while it was being read"):
        cache.digest(path, lambda: str(path.write_text("longer")))


def test_what_killed_processes_left_is_removed(cache):
    """A new file may belong to a process that has not locked it yet."""
    old, new = (cache.directory / f".numbers.npy.{i}1234567.part" for i in range(2))
    for path in (old, new):
        path.touch()
    set_age(old, 4000)
    Cache(cache.directory)
    assert list(cache.directory.iterdir()) == [new]


def test_a_cache_that_cannot_be_written_stops_nothing(cache, tmp_path, counted, settled, capsys):
    cache.directory.rmdir()
    cache.directory.touch()
    for _ in range(2):
        np.testing.assert_array_equal(cache.array("numbers", counted), np.arange(10))
        assert cache.digest(cache.directory, lambda: "digest") == "digest"
    assert (counted.calls, cache.complete) == (2, False)
    said = capsys.readouterr().err
    assert said.startswith("warning: ") and "NMT_TEXT_CACHE" in said and said.count("\n") == 1


def test_several_users_may_lock(cache):
    with cache.lock("some"):
        assert (cache.directory / "some.lock").stat().st_mode & 0o777 == 0o666


def test_the_cache_is_in_the_directory_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("NMT_TEXT_CACHE", str(tmp_path / "some" / "where"))
    assert open_cache().directory == tmp_path / "some" / "where" / "1"
    monkeypatch.delenv("NMT_TEXT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert open_cache().directory == tmp_path / "nmt-texts" / "1"
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    monkeypatch.setenv("NMT_TEXT_CACHE", str(tmp_path / "shared"))
    assert open_cache().directory.stat().st_mode & 0o777 == 0o777


def test_without_a_place_the_cache_is_temporary(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for place in ("off", str(tmp_path / "file" / "cache")):
        monkeypatch.setenv("NMT_TEXT_CACHE", place)
        assert open_cache().directory.name.startswith("nmt-texts-")
