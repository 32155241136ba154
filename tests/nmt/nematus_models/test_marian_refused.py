"""Which Marian models are refused: those with other parts, and damaged ones."""

import json
import pickle

import numpy as np
import pytest
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from tests.nmt.nematus_models.conftest import arrays, assert_refused, change_json, set_json


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


def foreign(folder):
    set_json(folder / "vocab.json", {"</s>": 0, "<unk>": 1, "a": 2})


def pieces(change):
    def changed(folder):
        path = folder / "source.spm"
        proto = ModelProto.FromString(path.read_bytes())
        change(proto)
        path.write_bytes(proto.SerializeToString())

    return changed


def sharded(content):
    def changed(folder):
        (folder / "model.safetensors").rename(folder / "a.safetensors")
        set_json(folder / "model.safetensors.index.json", {"weight_map": content})

    return changed


def positions(folder):
    other = {"model.encoder.embed_positions.weight": np.ones([20, 16], np.float32)}
    arrays(lambda found: found.update(other))(folder)


def nested(folder):
    """Writes 10,000 groups, each in the one before."""
    import h5py

    with h5py.File(folder / "tf_model.h5", "w") as file:
        group = file
        for _ in range(10_000):
            group = group.create_group("a")


def cyclic(folder):
    import h5py

    with h5py.File(folder / "tf_model.h5", "a") as file:
        file["model/more"] = file["model"]


def sparse(folder):
    """Writes a file that says it has a table of 3 GiB."""
    shape = [3 * 2**14, 2**14]
    head = json.dumps(
        {"model.shared.weight": {"dtype": "F32", "shape": shape, "data_offsets": [0, 3 * 2**30]}}
    ).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        file.truncate(8 + len(head) + 3 * 2**30)


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
            "model.encoder.embed_tokens.weight .* is missing",
        ),
        (options(tie_word_embeddings=False), "lm_head.weight .* is missing"),
        (options(scale_embedding=None), "scale_embedding is False"),
        (
            options(encoder_ffn_dim=25),
            "encoder_ffn_dim and decoder_ffn_dim must be given and equal",
        ),
        (options(d_model=None), "d_model must be given"),
        (options(d_model="x"), "must be of type int"),
        (options(d_model=17), "must be a multiple of"),
        (options(activation_function="tanh"), "activation_function is 'tanh'"),
        (options(d_model=100_000, encoder_layers=1000), "describes a model of"),
        (options(decoder_start_token_id=49), "decoder_start_token_id is 49.* 49 rows"),
        (options(decoder_start_token_id=[1, 2]), "must be one number"),
        (options(eos_token_id=None), "eos_token_id is None"),
        (options(eos_token_id=1), "gives </s> the id 0"),
        (options(vocab_size=48, decoder_vocab_size=48), "has 49 pieces"),
        (options(vocab_size=-1), "vocab_size is -1"),
        (options(decoder_vocab_size=50), "shared.weight has shape .49, 16., .* needs .50, 16."),
        (options(vocab_size=50, decoder_vocab_size=50), "the model needs .50, 16."),
        (options(encoder_layers=2), "layers.1.fc1.bias.* is missing|is missing"),
        (options(decoder_layers=1), "is left over"),
        (options(encoder_ffn_dim=12, decoder_ffn_dim=12), "has shape"),
        (ids(**{"▁goat": 3}), "each at most once"),
        (ids(**{"▁goat": True}), "each at most once"),
        (ids(**{"▁goat": "x"}), "each at most once"),
        (ids(**{"▁goat": -1}), "each at most once"),
        (ids(**{"</s>": None}), "no </s>"),
        (ids(**{"<unk>": None}), "no <unk>"),
        (ids(**{"▁goat": None, "\ud800": 2}), r"vocab.json has '\\ud800'"),
        (ids(**{"▁goat": None, "": 2}), "vocab.json has ''"),
        (ids(**{"▁goat": None, "a\0b": 2}), r"vocab.json has 'a\\x00b'"),
        (foreign, "source.spm has 22 pieces, of which vocab.json with its 3 has 1"),
        (pieces(lambda proto: proto.Clear()), "source.spm has 0 pieces"),
        (lambda folder: (folder / "source.spm").write_bytes(b""), "source.spm has 0 pieces"),
        (pieces(lambda proto: setattr(proto.pieces[5], "score", np.nan)), "source.spm has a piece"),
        (pieces(lambda proto: proto.pieces.append(proto.pieces[5])), "source.spm has a piece"),
        (pieces(lambda proto: setattr(proto.pieces[5], "piece", "")), "cannot read .*source.spm"),
        (pieces(lambda proto: setattr(proto.pieces[5], "piece", "\0")), "cannot read .*source.spm"),
        (pieces(lambda proto: setattr(proto.trainer_spec, "model_type", 2)), "no unigram model"),
        (cut("config.json"), "is not JSON"),
        (cut("vocab.json"), "is not JSON"),
        (cut("source.spm"), "source.spm is"),
        (cut("target.spm"), "target.spm is"),
        (cut("model.safetensors"), "model.safetensors is damaged"),
        (h5(cut("tf_model.h5")), "tf_model.h5 is damaged"),
        (h5(compressed), "no plain array"),
        (h5(nested), "tf_model.h5 is damaged: .* groups"),
        (h5(cyclic), "tf_model.h5 is damaged: .* groups"),
        (sparse, "model.shared.weight has shape .49152, 16384."),
        (sharded({"x": "../a.safetensors"}), "weight_map to files beside it"),
        (sharded({"x": "b.safetensors"}), "has no b.safetensors"),
        (sharded([]), "weight_map to files beside it"),
        (positions, "positions that are no sinusoids"),
        (remove("config.json"), "has no config.json"),
        (remove("vocab.json"), "has no vocab.json"),
        (remove("source.spm"), "has no source.spm"),
        (remove("model.safetensors", "tf_model.h5"), "neither model.safetensors nor tf_model.h5"),
        (pickled, "is a pickle.*save_pretrained"),
        (linked, "is a link out of"),
        (arrays(lambda found: found.pop("final_logits_bias")), "final_logits_bias .* is missing"),
        (arrays(lambda found: found.update(more=np.zeros(1, np.float32))), "more .* is left over"),
        (arrays(lambda found: found["model.shared.weight"].fill(np.nan)), "not finite"),
        (arrays(lambda found: found.update(more=np.zeros(1, np.int32))), "in I32; only F32"),
    ],
)
def test_other_and_damaged_models_are_refused(folder, tmp_path, capsys, change, message):
    change(folder)
    assert_refused(folder, tmp_path / "model", capsys, message)
