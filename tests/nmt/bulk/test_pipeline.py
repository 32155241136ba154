"""Whole jobs: every line once and in order, or the shard is not there."""

import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the operations of the tokenizer

from tests.nmt.bulk.toy import HUGE, words_of

GOLDEN = Path(__file__).parents[2] / "data" / "golden" / "models"
TWO = ("--direct_running_mode", "multi_processing", "--direct_num_workers", 2)


def write_slow(folder, shards, lines):
    """Writes shards whose lines take 20 ms each; returns what their translations should be."""
    folder.mkdir()
    expected = {}
    for name in (f"{i}.en" for i in range(shards)):
        text = [f"slow line {i} of {name}" for i in range(lines)]
        (folder / name).write_text("".join(f"{line}\n" for line in text))
        expected[name] = "".join(f"{line.upper()}\n" for line in text)
    return expected


def translations(out):
    return {path.name: path.read_text() for path in out.iterdir() if path.is_file()}


def left_over(out):
    """Returns the temporary files of a job: translated chunks and files that were never renamed."""
    return [
        path
        for path in (out / "_bulk").rglob("*")
        if "chunks" in path.parts[:-1] or path.suffix == ".part"
    ]


def failed_lines(out):
    """Returns shard, number and reason of each line without a translation."""
    lines = [
        line
        for path in sorted(out.glob("_bulk/failed/*"))
        for line in path.read_text().splitlines()
    ]
    return [
        (Path(each["shard"]).name, each["line"], each["reason"]) for each in map(json.loads, lines)
    ]


def processes_of(job, name=""):
    """Returns the processes of a job whose command has this name."""
    found = subprocess.run(
        ["pgrep", "-g", str(job.pid), "-f", name or "."], capture_output=True, text=True
    )
    return [int(number) for number in found.stdout.split()]


def models_of(job):
    """Returns the processes of the models of a job, which have sessions of their own."""
    workers = ",".join(map(str, processes_of(job)))
    found = subprocess.run(
        ["pgrep", "-P", workers, "-f", "spawn_main"], capture_output=True, text=True
    )
    return [int(number) for number in found.stdout.split()]


def until(condition, process=None):
    end = time.monotonic() + 300
    while not condition():
        assert process is None or process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_shards_keep_their_names_lines_and_order(bulk, toy, tmp_path):
    """Every bundle runs three times, as one that is retried does.

    A second run finds nothing to do.
    """
    shards = {
        "long.en": "".join(f"line {i}\n" for i in range(1234)).encode(),
        "packed.gz": gzip.compress(b"a\nb\n") + gzip.compress("c ß\n".encode() * 50),
        "empty.en": b"",
        "open.en": b"\xef\xbb\xbfno\r\nend",
        "odd.en": b"fine\nbad \xff\n%b\nfine poison\ntwo\n\nfine again\n%bpoison\nis cut,endless\n"
        % (b"x" * 101, b"more\n" * 40),
        "cut.gz": gzip.compress(os.urandom(2000))[:-9],
    }
    (tmp_path / "in").mkdir()
    for name, content in shards.items():
        (tmp_path / "in" / name).write_bytes(content)
    # As caches of data sets link their files.
    (tmp_path / "in" / "packed.gz").rename(tmp_path / "5f3c9a")
    (tmp_path / "in" / "packed.gz").symlink_to(tmp_path / "5f3c9a")
    words = words_of(toy, "in/*.en", "in/cut.gz", "in/packed.gz", chunk_lines=100, max_bytes=100)
    status, said, errors = bulk(*words, "--direct_runner_bundle_repeat", 2)
    out = tmp_path / "out"
    assert status == 2
    assert errors.count("\n") == 1
    assert "in/cut.gz is damaged" in errors
    assert "lines: 1,337, translated: 1,331 in" in said
    assert {path.name for path in out.iterdir()} == shards.keys() - {"cut.gz"} | {"_bulk"}
    assert (out / "long.en").read_bytes() == shards["long.en"].upper()
    assert gzip.decompress((out / "packed.gz").read_bytes()) == b"A\nB\n" + b"C SS\n" * 50
    assert (out / "empty.en").read_bytes() == b""
    assert (out / "open.en").read_bytes() == b"NO\nEND\n"
    assert (
        out / "odd.en"
    ).read_bytes() == b"FINE\n\n\n\n\n\nFINE AGAIN\n" + b"MORE\n" * 40 + b"\nIS CUT,ENDLESS\n"
    model_fails = "the model fails: InvalidArgumentError: assertion failed: [a line is poisonous]"
    assert failed_lines(out) == [
        ("odd.en", 2, "byte 5 of the line is not UTF-8"),
        ("odd.en", 3, "the line has 102 bytes; the limit is 100"),
        ("odd.en", 4, model_fails),
        ("odd.en", 5, "its translation has a line feed"),
        ("odd.en", 48, model_fails),
        ("odd.en", 49, "its translation was cut at the limit of its length"),
    ]
    assert not left_over(out)

    (tmp_path / "in" / "cut.gz").write_bytes(gzip.compress(b"mended\n"))
    (tmp_path / "in" / "odd.en").write_bytes(b"mended\n")
    for name in ("open.en", "odd.en"):
        (out / name).unlink()
    later = time.time() + 60
    os.utime(tmp_path / "in" / "long.en", (later, later))
    kept = {path.name: path.stat().st_mtime_ns for path in out.iterdir() if path.is_file()}
    status, said, errors = bulk(*words)
    assert (status, errors.count("\n")) == (0, 1)
    assert f"texts are kept: 1 ({out}/long.en)" in errors
    assert "lines: 4, translated: 4 in" in said
    assert said.endswith("; shards already there: 3\n")
    assert (out / "odd.en").read_bytes() == b"MENDED\n"
    assert not list((out / "_bulk" / "failed").iterdir())
    assert gzip.decompress((out / "cut.gz").read_bytes()) == b"MENDED\n"
    assert (out / "open.en").read_bytes() == b"NO\nEND\n"
    assert {name: (out / name).stat().st_mtime_ns for name in kept} == kept


@pytest.mark.slow
def test_a_job_of_two_workers_goes_on_after_sigterm_and_sigkill(start_bulk, bulk, toy, tmp_path):
    """One process gets SIGTERM, then all of the next run SIGKILL.

    The last run translates only what is missing.
    """
    expected = write_slow(tmp_path / "in", shards=3, lines=200)
    out = tmp_path / "out"
    words = [*words_of(toy, "in/*.en", chunk_lines=10), *TWO]
    process = start_bulk(*words)
    until(lambda: len(list(out.glob("_bulk/chunks/*/*"))) > 4, process)
    process.terminate()
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert "nmt.bulk:" not in (tmp_path / "errors").read_text()
    process = start_bulk(*words)
    until(lambda: len(list(out.glob("_bulk/chunks/*/*"))) > 20, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert translations(out) == {}
    whole = [path for path in out.glob("_bulk/chunks/*/*") if path.suffix != ".part"]
    assert 15 < len(whole) < 60
    (out / "_bulk" / "chunks" / "0.en" / "half.part").write_text("SLOW LI")

    status, said, errors = bulk(*words)
    assert status == 0, errors
    assert f"lines: 600, translated: {600 - 10 * len(whole)} in" in said
    assert translations(out) == expected
    assert not left_over(out)


@pytest.mark.slow
def test_a_text_that_changes_has_no_translation(start_bulk, toy, tmp_path):
    write_slow(tmp_path / "in", shards=1, lines=100)
    process = start_bulk(*words_of(toy, "in/*.en", chunk_lines=10))
    until(lambda: list((tmp_path / "out").glob("_bulk/chunks/*/*")), process)
    with (tmp_path / "in" / "0.en").open("a") as file:
        file.write("one more\n")
    assert process.wait(timeout=300) == 2
    assert "0.en changed" in (tmp_path / "errors").read_text()
    assert translations(tmp_path / "out") == {}


@pytest.mark.slow
def test_a_job_with_fewer_texts_keeps_the_chunks_of_the_others(bulk, toy, tmp_path):
    """So does a job with the same names in another folder, and it says whose translations are
    kept."""
    for folder in ("in", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.en").write_text(f"{folder}\n")
    chunk = tmp_path / "out" / "_bulk" / "chunks" / "b.en" / "0123.0.10"
    chunk.parent.mkdir(parents=True)
    chunk.write_text("kept")
    for folder, said in (
        ("in", ""),
        ("in", ""),
        ("other", "other texts are kept: 1 ("),
    ):
        status, _, errors = bulk(*words_of(toy, f"{folder}/a.en"))
        assert (status, said in errors, errors.count("\n")) == (0, True, int(bool(said)))
        assert translations(tmp_path / "out") == {"a.en": "IN\n"}
        assert chunk.read_text() == "kept"
        assert [path.name for path in chunk.parents[1].iterdir()] == ["b.en"]


@pytest.mark.slow
def test_a_killed_worker_ends_the_job_with_one_line(start_bulk, toy, tmp_path):
    write_slow(tmp_path / "in", shards=2, lines=400)
    process = start_bulk(*words_of(toy, "in/*.en", chunk_lines=10), *TWO)
    until(lambda: list(tmp_path.glob("out/_bulk/chunks/*/*")), process)
    os.kill(processes_of(process, "sdk_worker_main")[-1], signal.SIGKILL)
    assert process.wait(timeout=120) == 2
    until(lambda: not processes_of(process))
    # A worker that is just starting may print a warning too.
    lines = (tmp_path / "errors").read_text().splitlines()
    [said] = [line for line in lines if line.startswith("nmt.bulk: ")]
    assert said.startswith("nmt.bulk: the job failed: ")
    assert "/out/_bulk/error.txt. " in said
    assert translations(tmp_path / "out") == {}


@pytest.mark.slow
def test_lines_that_kill_the_process_of_the_model_are_found(bulk, toy, tmp_path):
    """Memory runs out, with two workers.

    The first run already translates every other line, once and in order.
    """
    (tmp_path / "in").mkdir()
    for shard, huge in {"a.en": (5,), "b.en": (12,)}.items():
        lines = [f"{'huge' if i in huge else 'line'} {i}\n" for i in range(1, 13)]
        (tmp_path / "in" / shard).write_text("".join(lines))
    limit = (HUGE // 2, resource.getrlimit(resource.RLIMIT_AS)[1])
    words = [*words_of(toy, "in/*.en", chunk_lines=4), *TWO]
    status, said, errors = bulk(
        *words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit)
    )
    assert status == 0, errors
    assert "lines: 24, translated: 22 in" in said
    expected = {}
    for path in (tmp_path / "in").iterdir():
        lines = path.read_text().splitlines(True)
        expected[path.name] = "".join("\n" if "huge" in line else line.upper() for line in lines)
    assert translations(tmp_path / "out") == expected
    reason = "the model fails: its process was killed by SIGABRT"
    assert failed_lines(tmp_path / "out") == [("a.en", 5, reason), ("b.en", 12, reason)]


@pytest.mark.slow
def test_a_process_of_the_model_that_something_else_kills_costs_no_line(start_bulk, toy, tmp_path):
    expected = write_slow(tmp_path / "in", shards=2, lines=200)
    process = start_bulk(*words_of(toy, "in/*.en", chunk_lines=10), *TWO)
    for written in (1, 10):
        until(lambda n=written: len(list(tmp_path.glob("out/_bulk/chunks/*/*"))) > n, process)
        os.kill(models_of(process)[0], signal.SIGKILL)
    assert process.wait(timeout=300) == 0, (tmp_path / "errors").read_text()
    assert translations(tmp_path / "out") == expected
    assert failed_lines(tmp_path / "out") == []
    until(lambda: not processes_of(process))


@pytest.mark.slow
def test_a_model_that_hangs_ends_the_job_with_one_line(bulk, toy, tmp_path):
    """Its lines would take minutes. No line is blamed, and a later run with more time goes on."""
    write_slow(tmp_path / "in", shards=1, lines=40)
    (tmp_path / "in" / "0.en").write_text("slow line\n" * 10_000)
    begun = time.monotonic()
    words = words_of(toy, "in/0.en", chunk_lines=10_000)
    status, _, errors = bulk(*words, "--model_timeout", 20)
    assert time.monotonic() - begun < 180
    assert (status, errors.count("\n")) == (2, 1), errors
    assert "give a larger --model_timeout" in errors
    assert translations(tmp_path / "out") == {}
    assert failed_lines(tmp_path / "out") == []


@pytest.mark.slow
def test_a_shard_that_cannot_be_written_whole_is_not_there(bulk, toy, tmp_path):
    """The disk takes files of 10,000 bytes; the shard has more, and its chunks have less."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.en").write_text("a line\n" * 3000)
    words = words_of(toy, "in/a.en", chunk_lines=1000)
    limit = (10_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    status, _, errors = bulk(
        *words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    )
    assert (status, errors.count("\n")) == (2, 1), errors
    assert "File too large" in errors
    assert translations(tmp_path / "out") == {}
    assert not list(tmp_path.glob("out/**/*.part"))
    status, said, errors = bulk(*words)
    assert (status, errors) == (0, "")
    assert "lines: 3,000, translated: 0 in" in said
    assert translations(tmp_path / "out") == {"a.en": "A LINE\n" * 3000}


@pytest.mark.slow
def test_two_workers_translate_as_the_signature_does(bulk, tmp_path):
    export = tmp_path / "saved_model"
    shutil.unpack_archive(GOLDEN / "saved_model.zip", export)
    status, said, errors = bulk(*words_of(export, GOLDEN / "t*.en", chunk_lines=7), *TWO)
    assert status == 0, errors
    assert "lines: 412, translated: 412 in" in said
    signature = tf.saved_model.load(str(export)).signatures["serving_default"]
    for name in ("train.en", "test.en"):
        lines = tf.constant((GOLDEN / name).read_bytes().split(b"\n")[:-1])
        expected = signature(sources=lines)["translations"].numpy().tolist()
        assert (tmp_path / "out" / name).read_bytes() == b"".join(text + b"\n" for text in expected)
