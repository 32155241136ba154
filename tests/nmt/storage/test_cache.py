"""The cache: arrays and digests are computed once, and again after damage or a change of the
file."""

import os
import threading

import pytest

from nmt.errors import UserError
from nmt.storage.cache import Cache, open_cache


@pytest.fixture
def cache(tmp_path):
    (tmp_path / "cache").mkdir()
    return Cache(tmp_path / "cache")


@pytest.fixture
def write_text():
    """Writes a text to a folder and returns a record; `write_text.calls` counts the calls."""

    def write_text(folder):
        write_text.calls += 1
        (folder / "text").write_text("some text")
        return {"length": 9}

    write_text.calls = 0
    return write_text


def set_age(path, seconds):
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - int(seconds * 1e9)))


def digest(cache, path, answer):
    """The digest of one file, which is `answer` if the file is read."""
    return cache.digests([path], lambda _: answer)[0]


def test_an_entry_is_made_once(cache, write_text):
    for each in (cache, cache, Cache(cache.directory)):
        folder, record = each.entry("some", write_text)
        assert (record, (folder / "text").read_text()) == ({"length": 9}, "some text")
    assert write_text.calls == 1


@pytest.mark.parametrize("name", ["text", "record.json"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: b"",
        lambda content: content + b"x",
        None,
    ],
    ids=["cut", "empty", "longer", "missing"],
)
def test_a_damaged_entry_is_made_again(cache, write_text, damage, name):
    folder, _ = cache.entry("some", write_text)
    content = (folder / name).read_bytes()
    (folder / name).unlink() if damage is None else (folder / name).write_bytes(damage(content))
    for each in (cache, Cache(cache.directory)):
        assert each.entry("some", write_text) == (folder, {"length": 9})
        assert (folder / "text").read_text() == "some text"
    assert write_text.calls == 2


@pytest.mark.parametrize("damage", [b"3", b'{"a": 1}'], ids=["a number", "an object"])
def test_a_damaged_record_that_is_still_json_is_made_again(
    cache, write_text, settled, tmp_path, damage
):
    (tmp_path / "text").write_text("any")
    cache.entry("some", write_text)
    assert digest(cache, tmp_path / "text", "9") == "9"
    for path in [*cache.directory.glob("*.json"), cache.directory / "some" / "record.json"]:
        path.write_bytes(damage)
    assert cache.entry("some", write_text)[1] == {"length": 9}
    assert digest(cache, tmp_path / "text", "read again") == "read again"


def test_many_threads_make_an_entry_once(cache, write_text):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(cache.entry("some", write_text)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), write_text.calls) == (8, 1)


@pytest.fixture
def settled(monkeypatch):
    """Lets files count as old enough to be remembered."""
    monkeypatch.setattr("time.time_ns", lambda: 2**62)


def test_a_digest_is_remembered_until_the_file_changes(cache, tmp_path, settled):
    path = tmp_path / "text"
    path.write_text("old")
    assert digest(cache, path, "first") == "first"
    assert digest(cache, path, "not read") == "first"
    set_age(path, -5)
    assert digest(cache, path, "second") == "second"
    status = path.stat()
    path.write_text("new")  # of the same size
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert digest(cache, path, "third") == "third"
    (tmp_path / "other").write_text("any")
    os.utime(tmp_path / "other", ns=(status.st_atime_ns, status.st_mtime_ns))
    (tmp_path / "other").replace(path)
    assert digest(cache, path, "fourth") == "fourth"


def test_the_digest_of_a_file_that_was_just_written_is_not_remembered(cache, tmp_path):
    """Another change within a clock tick would not be seen."""
    (tmp_path / "text").write_text("new")
    answers = iter(["first", "second"])
    assert [digest(cache, tmp_path / "text", next(answers)) for _ in range(2)] == [
        "first",
        "second",
    ]


def test_a_file_that_changes_while_it_is_read_is_refused(cache, tmp_path):
    path = tmp_path / "text"
    path.write_text("old")
    with pytest.raises(UserError, match="text changed while"):
        cache.digests([path], lambda path: str(path.write_text("longer")))


def test_only_files_that_changed_are_read_again(cache, tmp_path, settled):
    paths = [tmp_path / name for name in "abc"]
    read = []
    for path in paths:
        path.write_text(path.name)

    def content(path):
        read.append(path.name)
        return path.read_text()

    for _ in range(2):
        assert cache.digests(paths, content) == ["a", "b", "c"]
    assert sorted(read) == ["a", "b", "c"]
    paths[1].write_text("longer")
    assert cache.digests(paths, content) == ["a", "longer", "c"]
    assert read[3:] == ["b"]


def test_a_cache_that_cannot_be_written_is_named(cache, write_text):
    cache.directory.rmdir()
    cache.directory.touch()
    with pytest.raises(UserError, match=r"be written: .* NMT_TEXT_CACHE"):
        cache.entry("some", write_text)


def test_an_error_of_reading_a_text_is_not_blamed_on_the_cache(cache, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"some\.txt"):
        cache.entry("some", lambda folder: {"length": len((tmp_path / "some.txt").read_text())})


def test_all_users_of_the_cache_may_lock_read_and_remove(cache, write_text):
    cache.directory.chmod(0o777)
    folder, _ = cache.entry("some", write_text)
    digest(cache, folder / "text", "any")
    modes = {(path.is_dir(), path.stat().st_mode & 0o777) for path in cache.directory.rglob("*")}
    assert modes == {(True, 0o777), (False, 0o666)}


def test_what_another_user_left_and_cannot_be_removed_is_renamed(cache, write_text):
    """As a file in place of a folder is."""
    (cache.directory / "some").touch()
    assert cache.entry("some", write_text)[1] == {"length": 9}


def test_the_cache_is_in_the_directory_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("NMT_TEXT_CACHE", str(tmp_path / "some" / "where"))
    assert open_cache().directory.parent == tmp_path / "some" / "where"
    monkeypatch.delenv("NMT_TEXT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert open_cache().directory.parent == tmp_path / "nmt-texts"
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    monkeypatch.setenv("NMT_TEXT_CACHE", str(tmp_path / "shared"))
    assert open_cache().directory.stat().st_mode & 0o777 == 0o777


def test_without_a_place_the_cache_is_temporary(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for place in ("off", str(tmp_path / "file" / "cache")):
        monkeypatch.setenv("NMT_TEXT_CACHE", place)
        assert open_cache().directory.name.startswith("nmt-texts-")
