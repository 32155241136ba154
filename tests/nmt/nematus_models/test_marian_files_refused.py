"""Which of Marian's own files are refused: other architectures, and damaged files."""

import zipfile

import numpy as np
import pytest

from tests.nmt.nematus_models.conftest import DATA, assert_refused
from tests.nmt.nematus_models.marian_files import NPZ, arrays_of, write_marian, write_weights

# A list of two lists of two lists and so on, which has 2**41 entries.
DOUBLED = b"a0: &a0 [x, x]\n" + b"".join(
    b"a%d: &a%d [*a%d, *a%d]\n" % (i, i, i - 1, i - 1) for i in range(1, 41)
)
DOUBLED += b"models: *a40\n"


def options(**changes):
    return lambda folder: write_weights(folder, arrays_of(DATA), **changes)


def arrays(**changes):
    return lambda folder: write_weights(
        folder, {k: v for k, v in {**arrays_of(DATA), **changes}.items() if v is not None}
    )


def text(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def compressed(folder):
    np.savez_compressed(folder / NPZ, **arrays_of(DATA))


def not_marian(folder):
    np.savez(folder / NPZ, **arrays_of(DATA))


def outside(folder):
    (folder / NPZ).rename(folder.parent / "other.npz")
    (folder / NPZ).symlink_to(folder.parent / "other.npz")


def objects(folder):
    with zipfile.ZipFile(folder / NPZ, "a") as archive, archive.open("more.npy", "w") as file:
        np.lib.format.write_array(file, np.array([{}], object))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (options(type="s2s"), "type is 's2s'.*'transformer'.*Marian"),
        (options(transformer_decoder_autoreg="rnn"), "autoreg is 'rnn'"),
        (options(transformer_preprocess="n"), "preprocess is 'n'"),
        (options(transformer_train_position_embeddings="true"), "train-position-embeddings"),
        (options(lemma_dim_emb=8), "lemma-dim-emb is '8'"),
        (options(right_left="true"), "right-left is 'true'"),
        (options(output_omit_bias="true"), "output-omit-bias"),
        (options(transformer_ffn_activation="tanh"), "activation is 'tanh'"),
        (options(transformer_decoder_dim_ffn=48), "decoder-dim-ffn"),
        (options(dim_vocabs=[48]), "dim-vocabs"),
        (options(dim_vocabs=[48, 40]), "vocab.yml has 48 pieces.*40 rows"),
        (options(dim_emb="wide"), "dim-emb is 'wide'"),
        (options(dim_emb=None), "dim-emb must be given, not None"),
        (options(dec_depth=3), "decoder_l3_.* is missing"),
        (options(enc_depth=0), "enc_depth is 0"),
        (options(type="[a"), "special:model.yml is not YAML"),
        (arrays(Wemb=None), "Wemb .* is missing"),
        (arrays(Wemb=np.zeros([48, 16], np.int8)), "Wemb in int8.*quantized"),
        (arrays(Wemb=np.full([48, 16], np.inf, np.float32)), "Wemb that are not finite"),
        (arrays(more=np.zeros([2, 2], np.float32)), "more .* is left over"),
        (compressed, "is compressed"),
        (not_marian, "has no special:model.yml"),
        (objects, "holds Python objects"),
        (outside, "is a link out of"),
        (text("decoder.yml", b"- a"), "decoder.yml must have entries"),
        (text("decoder.yml", b"models: [a.npz, b.npz]"), "models is .* list of 1;"),
        (text("decoder.yml", b"models: [a.npz]\nvocabs: [vocab.yml, vocab.yml]"), "has no a.npz"),
        (
            text("decoder.yml", f"models: [{NPZ}]\nvocabs: [a.spm]".encode()),
            "vocabs is .* list of 2;",
        ),
        (
            text("decoder.yml", f"models: [{NPZ}]\nvocabs: [source.spm, source.spm]".encode()),
            "source.spm is no list of words",
        ),
        (text("vocab.yml", b"a: b"), "a is 'b', and must be one number"),
        (text("vocab.yml", b"</s>: 0\na: 1"), "no <unk>"),
        (text("vocab.yml", b"</s>: 0\n<unk>: 1\na: 1"), "each at most once"),
        (text("vocab.yml", b"</s>: 0\n<unk>: 1\na: 2"), "of which vocab.yml with its 3 has 1"),
        (text("vocab.yml", b"</s>: [[["), "vocab.yml is not YAML"),
        (text("vocab.yml", b"&a [*a]: 1"), "vocab.yml"),
        (text("vocab.yml", b"[" * 300_000), "vocab.yml is not YAML"),
        (text("decoder.yml", DOUBLED), r"models is \[\[\["),
    ],
)
def test_other_and_damaged_files_are_refused(tmp_path, capsys, change, message):
    folder = write_marian(DATA, tmp_path / "folder")
    change(folder)
    assert_refused(folder, tmp_path / "model", capsys, message)
