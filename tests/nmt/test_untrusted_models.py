"""Model directories that were damaged or made to do harm."""

import json
import pickle

import numpy as np
import pytest


def edit_json(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def other_words(model):
    edit_json(model / "source.json", d=2, a=5)


def truncate(model):
    for path in model.glob("*.npz"):
        path.write_bytes(path.read_bytes()[:-100])


def newer(model):
    for path in model.glob("*.npz"):
        with np.load(path) as file:
            arrays = {**file}
        head = {**json.loads(str(arrays.pop("state"))), "version": 2}
        np.savez(path, state=np.array(json.dumps(head)), **arrays)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (other_words, "was made with another source vocabulary; restore the original"),
        (lambda model: edit_json(model / "config.json", output_hidden_activation="relu"), "output_hidden_activation"),
        (lambda model: edit_json(model / "config.json", state_size=9), "state_size"),
        (truncate, "is damaged or not a checkpoint"),
        (newer, "has version 2, but this nmt reads version 1"),
    ],
    ids=["vocabulary", "activation", "size", "truncated", "newer"],
)
@pytest.mark.parametrize("command", ["train", "translate"])
def test_a_model_with_wrong_files_is_refused_before_texts_are_read(
    run, trained, tmp_path, contents, damage, said, command
):
    """The texts need not even exist."""
    damage(tmp_path / "model")
    (tmp_path / "train.en").unlink()
    before = contents(tmp_path / "model")
    status, _, error = run(*(trained if command == "train" else ["translate", "-m", "model", "-i", "train.en"]))
    assert status == 2
    assert said in error
    assert error.count("\n") == 1
    assert contents(tmp_path / "model") == before


class Bomb:
    """Creates a file when it is unpickled."""

    def __reduce__(self):
        return open, ("exploded", "w")


@pytest.mark.parametrize("name", ["config.json", "source.json", "best.npz", "best.npz of objects"])
@pytest.mark.parametrize("command", ["translate -i train.en", "export --to saved", "score -s train.en -t train.de"])
def test_nothing_in_a_model_is_unpickled(run, trained, tmp_path, name, command):
    path = tmp_path / "model" / name.split()[0]
    if name == "best.npz of objects":
        np.savez(path, state=np.array(Bomb(), dtype=object))
    else:
        path.write_bytes(pickle.dumps(Bomb()))
    status, _, said = run(*command.split(), "-m", "model")
    assert (status, said.count("\n")) == (2, 1)
    assert said.startswith(f"nmt: {path.relative_to(tmp_path)}")
    assert not (tmp_path / "exploded").exists()


def test_nothing_of_a_nematus_model_is_unpickled(run, tmp_path):
    for ending in ("index", "data-00000-of-00001", "json"):
        (tmp_path / f"other.{ending}").write_bytes(pickle.dumps(Bomb()))
    status, _, said = run("import-nematus", "other", "--to", "model")
    assert (status, said.count("\n")) == (2, 1)
    assert {path.name.partition(".")[0] for path in tmp_path.iterdir()} == {"other"}


@pytest.mark.parametrize("elsewhere", ["/etc/passwd.json", "../words.json", "no\0thing.json"])
def test_paths_in_a_config_are_not_followed(run, trained, tmp_path, elsewhere):
    expected = run("score", "-m", "model", "-s", "dev.en", "-t", "dev.de")
    (tmp_path / "words.json").write_text("what must not be read")
    edit_json(tmp_path / "model" / "config.json", dictionaries=[elsewhere] * 2, source_dataset=elsewhere)
    assert run("score", "-m", "model", "-s", "dev.en", "-t", "dev.de")[:2] == expected[:2]


@pytest.mark.parametrize("content", ["[" * 100_000, '{"state_size": {}}', "3", "", '{"seed": 1e999}'])
def test_a_malformed_config_is_refused(run, trained, tmp_path, content):
    (tmp_path / "model" / "config.json").write_text(content)
    status, _, said = run("translate", "-m", "model", "-i", "dev.en")
    assert status == 2
    assert said.startswith(("nmt: model/config.json", "nmt: --", "nmt: unknown option"))
