import json
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from experiments.translation.inside.mean_shares import main, measure_shares, record_inputs
from nmt.config import make_config
from nmt.normalization import Normalization
from nmt.storage.checkpoints import BEST, KEPT, save_checkpoint
from nmt.system import build_system, save_system
from nmt.text.parallel_text import ParallelText

PIECES = Path(__file__).parents[3] / "data" / "golden" / "models" / "layernorm" / "source.model"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shares")
    (folder / "words.json").write_text(
        json.dumps({word: i for i, word in enumerate(["eos", "UNK", *"abcd"])})
    )
    (folder / "dev.en").write_text("a b c\nd\n")
    (folder / "dev.de").write_text("a\nb c d a\n")
    return folder


def make_system(folder, **options):
    text = dict.fromkeys(["source_dataset", "valid_source_dataset"], str(folder / "dev.en"))
    text |= dict.fromkeys(["target_dataset", "valid_target_dataset"], str(folder / "dev.de"))
    dictionaries = [str(folder / "words.json")] * 2
    sizes = {
        "embedding_size": 4,
        "state_size": 4,
        "layer_normalization_type": "layernorm",
        "seed": 1,
    }
    config = make_config({**text, **sizes, "dictionaries": dictionaries, **options})
    keras.utils.set_random_seed(1)
    return build_system(config, config.dictionaries)


def test_inputs_are_those_of_the_norm(folder):
    system = make_system(folder)
    norms = record_inputs(system.model, Normalization("layernorm"))
    kernel = system.model.encoder.forward_stack[0].input_to_gates.numpy()
    x = np.ones((3, 4), np.float32)
    system.model.encoder.forward_stack[0].project_input(x)
    (inputs,) = norms["encoder.forward.gates_x_norm"]
    np.testing.assert_allclose(inputs, x @ kernel, rtol=1e-5)


TRANSFORMER = {"model_type": "transformer", "transformer_num_heads": 2, "transformer_enc_depth": 1}
TRANSFORMER |= {"transformer_dec_depth": 1, "transformer_ffn_hidden_size": 8}


@pytest.mark.parametrize("kind", ["layernorm", "none"])
@pytest.mark.parametrize(
    ("options", "count"),
    [({}, 22), (TRANSFORMER, 7), ({**TRANSFORMER, "transformer_norm_position": "post"}, 5)],
)
def test_every_norm_has_a_share(folder, options, count, kind):
    """A Transformer has 2 norms in a layer of the encoder and 3 in one of the decoder.

    A pre-norm one has 2 at the ends. Without a norm, there is a share where each norm would be.
    """
    system = make_system(folder, **options, layer_normalization_type=kind)
    shares = measure_shares(system, ParallelText(folder / "dev.en", folder / "dev.de"))
    assert len(shares) == count
    assert all(0 <= share <= 1 for share in shares.values())


def test_equal_columns_make_the_mean_everything(folder):
    system = make_system(folder)
    gates = system.model.encoder.forward_stack[0].input_to_gates
    gates.assign(np.ones(gates.shape))
    shares = measure_shares(system, ParallelText(folder / "dev.en", folder / "dev.de"))
    assert shares["encoder.forward.gates_x_norm"] == pytest.approx(1)
    assert shares["encoder.forward.proposal_x_norm"] < 0.99


def test_the_command_measures_before_the_training_and_at_every_kept_model(
    folder, tmp_path, monkeypatch
):
    system = make_system(folder, dictionaries=[str(PIECES)] * 2)
    model = tmp_path / "model"
    (model / KEPT).mkdir(parents=True)
    save_system(system, model, {})
    gates = system.model.encoder.forward_stack[0].input_to_gates
    for path, kernel in (
        (f"{KEPT}/5.npz", np.ones((4, 8))),
        (f"{KEPT}/10.npz", np.eye(4, 8)),
        (BEST, np.eye(4, 8)),
    ):
        gates.assign(kernel)  # as trained
        save_checkpoint(model / path, system.model.variables, {}, system.fingerprint)
    to = tmp_path / "found.json"
    given = [
        "--model",
        model,
        "--source",
        folder / "dev.en",
        "--target",
        folder / "dev.de",
        "--to",
        to,
    ]
    monkeypatch.setattr(sys, "argv", ["mean_shares", *map(str, given)])
    main()
    found = {
        when: shares["encoder.forward.gates_x_norm"]
        for when, shares in json.loads(to.read_text()).items()
    }
    assert list(found) == ["0", "5", "10"]
    assert found["0"] < 0.99
    assert found["5"] == pytest.approx(1)
    assert found["10"] < 0.99
