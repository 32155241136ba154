import json
import sys

import keras
import numpy as np
import pytest

from experiments.translation.inside.recentre import main
from nmt.config import make_config
from nmt.storage.checkpoints import LAST, load_checkpoint
from nmt.system import build_system, open_system
from nmt.training.update import Update


@pytest.mark.parametrize("moved", ["all", "embeddings", "matrices"])
def test_only_these_matrices_are_recentred_before_the_first_update(moved, tmp_path, monkeypatch):
    (tmp_path / "words.json").write_text(json.dumps({"eos": 0, "UNK": 1, "a": 2}))
    sides = ["source_dataset", "target_dataset", "valid_source_dataset", "valid_target_dataset"]
    words = {"dictionaries": [str(tmp_path / "words.json")] * 2}
    sizes = {
        "embedding_size": 3,
        "state_size": 4,
        "seed": 5,
        "layer_normalization_type": "layernorm",
    }
    config = make_config({**dict.fromkeys(sides, str(tmp_path / "text")), **words, **sizes})
    config.save(tmp_path / "config.json")
    model = tmp_path / "model"
    given = ["--model", model, "--config", tmp_path / "config.json", "--centre", 0.25]
    given += ["--moved", moved]
    monkeypatch.setattr(sys, "argv", ["recentre", *map(str, given)])
    main()

    keras.utils.set_random_seed(config.seed)
    ordinary = build_system(config, config.dictionaries).model.trainable_variables
    system = open_system(config, model, config)  # as `nmt train` does to continue
    progress = load_checkpoint(
        model / LAST, Update(system.model, config).variables, system.fingerprint
    )
    assert progress["update"] == 0
    for before, after in zip(ordinary, system.model.trainable_variables, strict=True):
        name = before.path.rpartition("/")[2]
        is_matrix = len(before.shape) == 2
        is_normalized = is_matrix and name not in ("embeddings", "output_kernel", "hidden_to_score")
        centre = (
            0.25
            * {"all": is_matrix, "embeddings": name == "embeddings", "matrices": is_normalized}[
                moved
            ]
        )
        np.testing.assert_allclose(after.numpy(), before.numpy() + centre, rtol=0, atol=1e-6)
