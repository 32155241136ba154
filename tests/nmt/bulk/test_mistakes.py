"""What is given wrong to a job: one line says so."""

import shutil

import pytest

from tests.nmt.bulk.toy import words_of


@pytest.mark.slow
def test_mistakes_in_a_job_are_one_line(bulk, toy, tmp_path):
    for folder in ("one", "two", "empty", "odd"):
        (tmp_path / folder).mkdir()
    for name in ("one/a.en", "two/a.en", "one/b.zst", "odd/[c].en"):
        (tmp_path / name).write_text("a\n")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "saved_model.pb").write_bytes(b"nothing")
    folders = ["--input", "one/a.en", "--output"]
    for words, said in {
        (
            *words_of(toy, "none/*.en"),
        ): "no file matches none/*.en; give text files, and put a pattern in quotes",
        (*words_of("empty", "one/a.en"),): "empty has no saved_model.pb; give a folder that",
        (*words_of("broken", "one/a.en"),): "broken cannot be used: ",
        (
            *words_of(toy, "*/a.en"),
        ): "two/a.en have the same name; translate them into different folders",
        (
            *words_of(toy, "odd/*"),
        ): "[c].en has one of *?[ in its name, which Beam reads as a pattern; rename it",
        (*words_of(toy, "one/b.zst"),): "one/b.zst cannot be read; give plain text or .gz files",
        ("--export", toy, *folders, "one"): "one/a.en would be among the texts",
        (
            "--export",
            toy,
            "--input",
            "one/**.en",
            "--output",
            "one/new",
        ): "would be among the texts",
        ("--export", toy, *folders, "one/a.en/out"): "out cannot be used: ",
        ("--export", toy, *folders, "o*"): "has one of *?[ in its name",
        (
            *words_of(toy, "one/"),
        ): f"one is a folder; give files, or a pattern in quotes: '{tmp_path}/one/*'",
        (*words_of(toy, "/"),): "/. is a folder; give files",
        (*words_of(toy, ""),): f"{tmp_path}/. is a folder; give files",
        (*words_of(toy, "gs://bucket/a.en"),): "gs://bucket/a.en cannot be read: ",
        (*words_of(toy, "gs://bucket"),): "gs://bucket cannot be read: ",
        ("--export", toy, *folders, "nope", "--runner", "Nope"): "the job failed: ",
        (
            *words_of(toy, "one/a.en"),
            "--maxbytes",
            "9",
        ): "--maxbytes is neither an option of this program nor of Beam",
    }.items():
        status, _, errors = bulk(*words)
        assert (status, errors.count("\n")) == (2, 1), errors
        assert said in errors

    (tmp_path / "out" / "_bulk").mkdir(parents=True, exist_ok=True)
    (tmp_path / "out" / "_bulk" / "job.json").write_text('{"export": "another", "max_bytes": 4000}')
    status, _, errors = bulk(*words_of(toy, "one/a.en"))
    assert (status, errors.count("\n")) == (2, 1)
    assert "translations of another export" in errors
    (tmp_path / "out" / "_bulk" / "job.json").unlink()
    assert bulk(*words_of(toy, "one/a.en"))[0] == 0
    status, _, errors = bulk(*words_of(toy, "one/a.en", max_bytes=9))
    assert (status, errors.count("\n")) == (2, 1)
    assert "with --max_bytes 4000" in errors


@pytest.mark.slow
def test_an_export_with_another_vocabulary_is_another_export(bulk, toy, tmp_path):
    (tmp_path / "a.en").write_text("a\n")
    export = shutil.copytree(toy, tmp_path / "export")
    (export / "assets").mkdir(exist_ok=True)
    (export / "assets" / "words").write_text("one")
    assert bulk(*words_of(export, "a.en"))[0] == 0
    (export / "assets" / "words").write_text("two")
    status, _, errors = bulk(*words_of(export, "a.en"))
    assert (status, "translations of another export" in errors) == (2, True)
