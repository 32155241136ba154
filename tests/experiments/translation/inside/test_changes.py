import numpy as np
import pytest
import tensorflow as tf

from experiments.translation.inside.changes import add_last_offset, centre_positions
from nmt.config import Config
from nmt.model import transformer
from nmt.model.transformer import Transformer


def test_the_last_norm_of_the_decoder_alone_has_an_offset(monkeypatch):
    monkeypatch.setattr(Transformer, "_decoder", transformer.Decoder)  # which restores it
    sizes = {"state_size": 8, "embedding_size": 8, "transformer_num_heads": 2}
    config = Config(model_type="transformer", layer_normalization_type="none", **sizes)
    before = Transformer(config, 6, 6).variables
    add_last_offset()
    paths = [each.path for each in Transformer(config, 6, 6).variables]
    added = ["decoder/final_norm/scale", "decoder/final_norm/offset"]
    assert sorted(paths) == sorted([*(each.path for each in before), *added])


IDS = tf.constant([[2, 3, 4, 0]])
MASK = tf.ones([1, 4])


@pytest.fixture
def centred(monkeypatch):
    before = transformer.sinusoids
    monkeypatch.setattr(transformer, "sinusoids", before)  # which restores it afterwards
    centre_positions()
    return before


@pytest.mark.parametrize("kind", ["tensor2tensor", "paper"])
def test_positions_lose_their_mean_over_the_units(centred, kind):
    expected, found = (each(3, 5, 8, kind).numpy() for each in (centred, transformer.sinusoids))
    np.testing.assert_allclose(found, expected - expected.mean(-1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(found.mean(-1), 0, atol=1e-6)


def test_a_model_is_trained_with_them(centred, monkeypatch):
    config = Config(
        model_type="transformer", state_size=8, embedding_size=8, transformer_num_heads=2
    )
    model = Transformer(config, 6, 6)
    costs = model.costs(IDS, MASK, IDS, MASK).numpy()
    monkeypatch.setattr(transformer, "sinusoids", centred)
    assert abs(costs - model.costs(IDS, MASK, IDS, MASK).numpy()).max() > 1e-4
