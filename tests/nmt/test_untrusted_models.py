"""Model directories that were damaged or made to do harm."""

import contextlib
import io
import json
import os
import pickle
import resource
import shutil
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import UserError
from nmt.system import load_system
from tests.nmt.outcomes import refused


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
        (other_words, "made with another source vocabulary"),
        (
            lambda model: edit_json(model / "config.json", output_hidden_activation="relu"),
            "output_hidden_activation",
        ),
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
    status, _, error = run(
        *(trained if command == "train" else ["translate", "-m", "model", "-i", "train.en"])
    )
    assert status == 2
    assert said in error
    assert error.count("\n") == 1
    assert contents(tmp_path / "model") == before


class Bomb:
    """Creates a file when it is unpickled."""

    def __reduce__(self):
        return open, ("exploded", "w")


@pytest.mark.parametrize("name", ["config.json", "source.json", "best.npz", "best.npz of objects"])
@pytest.mark.parametrize(
    "command", ["translate -i train.en", "export --to saved", "score -s train.en -t train.de"]
)
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
    edit_json(
        tmp_path / "model" / "config.json", dictionaries=[elsewhere] * 2, source_dataset=elsewhere
    )
    assert run("score", "-m", "model", "-s", "dev.en", "-t", "dev.de")[:2] == expected[:2]


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"state_size": {}}', "3", "", '{"seed": 1e999}']
)
def test_a_malformed_config_is_refused(run, trained, tmp_path, content):
    (tmp_path / "model" / "config.json").write_text(content)
    assert refused(run("translate", "-m", "model", "-i", "dev.en")).startswith(
        ("nmt: model/config.json", "nmt: --", "nmt: unknown option")
    )


GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "models" / "layernorm"


@pytest.fixture
def model(tmp_path):
    """A directory of a small model."""
    return Path(shutil.copytree(GOLDEN, tmp_path / "model"))


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, changes, compression=zipfile.ZIP_STORED):
    """Writes the archive again, with other contents of some members."""
    found = members(path) | changes
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in found.items():
            archive.writestr(name, content)


def array(value):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(value), allow_pickle=False)
    return file.getvalue()


def first_weight(path):
    return next(name for name in members(path) if name != "state.npy")


def huge_array(model):
    """Zeros of 1 GiB in an archive of 1 MiB."""
    path = model / "best.npz"
    name = first_weight(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the second member with this name
        with archive.open(name, "w", force_zip64=True) as file:
            np.lib.format.write_array_header_1_0(
                file, {"descr": "<f4", "fortran_order": False, "shape": (2**8, 2**20)}
            )
            for _ in range(2**10):
                file.write(bytes(2**20))


def link_out(name):
    def damage(model):
        (model / name).replace(model.parent / name)
        (model / name).symlink_to(model.parent / name)

    return damage


def pipe(name):
    def damage(model):
        (model / name).unlink()
        os.mkfifo(model / name)

    return damage


def device(model):
    (model / "config.json").unlink()
    (model / "config.json").symlink_to("/dev/zero")


def weights(change):
    return lambda model: rewrite(model / "best.npz", change(model / "best.npz"))


def not_finite(path):
    name = first_weight(path)
    found = np.load(io.BytesIO(members(path)[name]))
    return {name: array(np.full_like(found, np.nan))}


DAMAGED = "best.npz is damaged"
HARM = {
    "compressed": (
        lambda model: rewrite(model / "best.npz", {}, zipfile.ZIP_DEFLATED),
        f"{DAMAGED} .*compressed",
    ),
    "huge array": (huge_array, f"{DAMAGED} .*compressed"),
    "no magic": (weights(lambda path: {first_weight(path): b"nothing"}), DAMAGED),
    "state null": (weights(lambda path: {"state.npy": array("null")}), f"{DAMAGED} .*its state"),
    "state list": (weights(lambda path: {"state.npy": array("[]")}), f"{DAMAGED} .*its state"),
    "fingerprint 3": (
        weights(lambda path: {"state.npy": array('{"fingerprint": 3}')}),
        f"{DAMAGED} .*its state",
    ),
    "not finite": (weights(not_finite), "in .*best.npz is not finite"),
    "config is a pipe": (pipe("config.json"), "config.json is not a regular file"),
    "best is a pipe": (pipe("best.npz"), "best.npz is not a regular file"),
    "source is a pipe": (pipe("source.model"), "source.model is not a regular file"),
    "config is a device": (device, "config.json is a link out of"),
    "config is outside": (link_out("config.json"), "config.json is a link out of"),
    "best is outside": (link_out("best.npz"), "best.npz is a link out of"),
    "source is outside": (link_out("source.model"), "source.model is a link out of"),
    "long config": (
        lambda model: (model / "config.json").write_bytes(b" " * 2**25),
        "config.json has more than",
    ),
    "a million levels": (
        lambda model: edit_json(model / "config.json", rnn_enc_depth=10**6),
        "it must be above 0 and at most 1000",
    ),
    "1000 levels": (
        lambda model: edit_json(model / "config.json", rnn_enc_depth=1000),
        "describes a larger model: 2000 levels",
    ),
    "a wide embedding": (
        lambda model: edit_json(model / "config.json", embedding_size=20_000),
        "describes a larger model: .* up to 20000,",
    ),
    "a wide state": (
        lambda model: edit_json(model / "config.json", state_size=10**5),
        "describes a larger model: .* up to 100000,",
    ),
    "a long dictionary": (
        lambda model: edit_json(model / "config.json", source_vocab_sizes=10**7),
        "describes a larger model: .* 10000000 words",
    ),
    "a state of 1e30": (
        lambda model: edit_json(model / "config.json", state_size=10**30),
        "--state_size is 10{30};",
    ),
    "unknown option": (
        lambda model: edit_json(model / "config.json", colour=1),
        "config.json: unknown option colour",
    ),
}


@pytest.mark.parametrize(("damage", "said"), HARM.values(), ids=HARM)
def test_a_model_that_would_do_harm_is_refused_at_once_and_in_little_memory(model, damage, said):
    damage(model)
    with contextlib.suppress(
        OSError
    ):  # on Linux, the peak begins anew; an earlier one would hide it
        Path("/proc/self/clear_refs").write_text("5")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    with pytest.raises(UserError, match=said) as refused:
        load_system(model)
    assert "\n" not in str(refused.value)
    assert "allow_pickle" not in str(refused.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB
    assert time.process_time() - start < 60


def test_a_link_within_a_model_is_followed(model):
    (model / "best.npz").rename(model / "others.npz")
    (model / "best.npz").symlink_to("others.npz")
    assert load_system(model).model.variables


def test_a_file_that_may_not_be_read_is_not_called_damaged(model):
    if os.geteuid() == 0:
        pytest.skip("root may read all files")
    (model / "best.npz").chmod(0)
    with pytest.raises(UserError, match=r"best\.npz cannot be read: "):
        load_system(model)
