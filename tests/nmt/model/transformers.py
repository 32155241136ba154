"""Makes small Transformers for tests, and pairs for them."""

import numpy as np

from nmt.config import Config
from nmt.model.transformer import Transformer

SOURCE = np.array([[2, 3, 0], [4, 0, 0]])
SOURCE_MASK = np.array([[1, 1, 1], [1, 1, 0]], np.float32)
TARGET = np.array([[3, 2, 5, 0], [5, 0, 0, 0]])
TARGET_MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.float32)
PAIRS = (SOURCE, SOURCE_MASK, TARGET, TARGET_MASK)
UNITS = 8
HEADS = 2
MARIAN = {  # the parts of Marian's Transformer
    "transformer_activation": "swish",
    "transformer_attention_bias": True,
    "transformer_output_bias": True,
    "transformer_positions": "paper",
    "transformer_padding": 1,
}
RATES = {  # name -> option
    "embeddings": "transformer_dropout_embeddings",
    "residual": "transformer_dropout_residual",
    "relu": "transformer_dropout_relu",
    "attention": "transformer_dropout_attn",
    "heads": "transformer_drophead",
}


def make(kind="layernorm", position="pre", rate=None, depths=(1, 2), **options):
    """Makes a small model of 6 words a side with random weights; half of what one of `RATES` names
    is dropped.
    """
    config = Config(
        state_size=UNITS,
        layer_normalization_type=kind,
        transformer_ffn_hidden_size=12,
        transformer_num_heads=HEADS,
        transformer_norm_position=position,
        transformer_enc_depth=depths[0],
        transformer_dec_depth=depths[1],
        **{option: 0.5 if name == rate else 0.0 for name, option in RATES.items()},
        **options,
    )
    model = Transformer(config, 6, 6)
    rng = np.random.default_rng(3)
    for weight in model.weights:
        weight.assign(rng.normal(0.3, 0.5, size=weight.shape))
    return model
