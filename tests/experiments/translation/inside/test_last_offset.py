from experiments.translation.inside.changes import add_last_offset
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
