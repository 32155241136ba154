"""Which Marian models are refused: those with other parts, and damaged ones."""

import pickle
import re

import numpy as np
import pytest

from tests.nmt.nematus_files import run
from tests.nmt.nematus_models.conftest import arrays, change_json


def cut(name):
    def change(folder):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return change


def remove(*names):
    def change(folder):
        for name in names:
            (folder / name).unlink()

    return change


def options(**changes):
    return lambda folder: change_json(folder / "config.json", **changes)


def ids(**changes):
    return lambda folder: change_json(folder / "vocab.json", **changes)


def pickled(folder):
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"a": 1}))
    remove("model.safetensors", "tf_model.h5")(folder)


def linked(folder):
    (folder.parent / "other.spm").write_bytes((folder / "source.spm").read_bytes())
    (folder / "source.spm").unlink()
    (folder / "source.spm").symlink_to(folder.parent / "other.spm")


def h5(change):
    def changed(folder):
        (folder / "model.safetensors").unlink()
        change(folder)

    return changed


def compressed(folder):
    import h5py

    with h5py.File(folder / "tf_model.h5", "a") as file:
        file.create_dataset("bomb", (1000, 1000, 1000), "f4", compression="gzip")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (options(model_type="bart"), "model_type is 'bart'"),
        (options(normalize_before=True), "normalize_before is True"),
        (options(static_position_embeddings=False), "static_position_embeddings is False"),
        (
            options(share_encoder_decoder_embeddings=False),
            "share_encoder_decoder_embeddings is False",
        ),
        (options(scale_embedding=None), "scale_embedding is False"),
        (
            options(encoder_ffn_dim=25),
            "encoder_ffn_dim and decoder_ffn_dim must be given and equal",
        ),
        (options(d_model=None), "d_model must be given"),
        (options(d_model="x"), "must be of type int"),
        (options(d_model=17), "must be a multiple of"),
        (options(activation_function="tanh"), "--transformer_activation is 'tanh'"),
        (options(decoder_start_token_id=1), "must be the last id"),
        (options(pad_token_id=[48]), "must be the last id"),
        (options(vocab_size=48), "has 49 pieces"),
        (options(encoder_layers=2), "layers.1.fc1.bias.* is missing|is missing"),
        (options(decoder_layers=1), "is left over"),
        (options(encoder_ffn_dim=12, decoder_ffn_dim=12), "has shape"),
        (ids(**{"▁goat": None}), "each once"),
        (ids(**{"▁goat": None, "other": 2}), "lacks 1 pieces of"),
        (ids(**{"▁goat": 3}), "each once"),
        (ids(**{"▁goat": True}), "each once"),
        (ids(**{"</s>": 2, "▁goat": 0}), "must give </s> the id 0"),
        (cut("config.json"), "is not JSON"),
        (cut("vocab.json"), "is not JSON"),
        (cut("source.spm"), "source.spm is"),
        (cut("target.spm"), "target.spm is"),
        (cut("model.safetensors"), "model.safetensors is damaged"),
        (h5(cut("tf_model.h5")), "tf_model.h5 is damaged"),
        (h5(compressed), "no plain array"),
        (remove("config.json"), "has no config.json"),
        (remove("vocab.json"), "has no vocab.json"),
        (remove("source.spm"), "has no source.spm"),
        (remove("model.safetensors", "tf_model.h5"), "neither model.safetensors nor tf_model.h5"),
        (pickled, "is a pickle.*save_pretrained"),
        (linked, "is a link out of"),
        (arrays(lambda found: found.pop("final_logits_bias")), "final_logits_bias .* is missing"),
        (arrays(lambda found: found.update(more=np.zeros(1, np.float32))), "more .* is left over"),
        (arrays(lambda found: found["model.shared.weight"].fill(np.nan)), "not finite"),
        (arrays(lambda found: found.update(more=np.zeros(1, np.int32))), "only F32 and F16"),
    ],
)
def test_other_and_damaged_models_are_refused(folder, tmp_path, capsys, change, message):
    change(folder)
    with pytest.raises(SystemExit, match="2"):
        run("import-marian", folder, "--to", tmp_path / "model")
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("nmt: ")
    assert re.search(message, said), said
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".spm") == ["folder"]
