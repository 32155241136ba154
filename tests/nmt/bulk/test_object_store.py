"""A job whose texts, export and output are objects of a store."""

import gzip
import urllib.parse
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("every", [0, 10])
def test_texts_export_and_output_may_be_in_an_object_store(bulk, toy, tmp_path, every):
    """A store without folders, which replaces no object, or fails every tenth call too. Every
    bundle runs twice.
    """

    def quoted(key):
        return tmp_path / urllib.parse.quote(key, safe="")

    for path in toy.rglob("*"):
        if path.is_file():
            quoted(f"bucket/export/{path.relative_to(toy)}").write_bytes(path.read_bytes())
    quoted("bucket/in/a.en").write_text("a\npoison\n" * 20)
    quoted("bucket/in/b.gz").write_bytes(gzip.compress(b"b\n" * 30))
    words = [
        "--export",
        "store://bucket/export",
        "--input",
        "store://bucket/in/*",
        "--output",
        "store://bucket/out",
    ]
    words += ["--chunk_lines", 7, "--direct_runner_bundle_repeat", 1]
    program = (Path(__file__).with_name("object_store.py"),)
    status, said, errors = bulk(*words, program=program, environment={"EVERY": str(every)})
    assert status == 0, errors
    assert "lines: 70, translated: 50 in" in said
    assert quoted("bucket/out/a.en").read_text() == "A\n\n" * 20
    assert gzip.decompress(quoted("bucket/out/b.gz").read_bytes()) == b"B\n" * 30
    keys = {urllib.parse.unquote(path.name) for path in tmp_path.iterdir()}
    assert {key.removeprefix("bucket/out/") for key in keys if "/out/" in key} == {
        "a.en",
        "b.gz",
        *("_bulk/job.json", "_bulk/report.json", "_bulk/failed/a.en.jsonl"),
        *(key.removeprefix("bucket/out/") for key in keys if "/_bulk/texts/" in key),
    }
    assert len([key for key in keys if "/_bulk/texts/" in key]) == 2


WRITE = """
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
import tests.nmt.bulk.object_store
from nmt.bulk import storage
FileSystems.set_options(PipelineOptions([]))
if not storage.exists("store://out"):
    with storage.write_whole("store://out", "store://aside") as file:
        file.write(b"whole")
"""


@pytest.mark.parametrize(("fails", "is_written"), [(1, False), (2, True)])
def test_a_store_that_fails_half_way_loses_nothing(bulk, tmp_path, fails, is_written):
    """Opening the object fails, or renaming it after its copy.

    The second run does what is missing.
    """
    status, _, errors = bulk(program=("-c", WRITE), environment={"FAILS": str(fails)})
    assert (status == 0, "the store is away" not in errors, (tmp_path / "out").exists()) == (
        is_written,
    ) * 3
    status, _, errors = bulk(program=("-c", WRITE))
    assert (status, (tmp_path / "out").read_text()) == (0, "whole"), errors
    assert not any(path.name.endswith(".part") for path in tmp_path.iterdir())
