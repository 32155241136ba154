"""Presets: options that belong together, under one name. Options that are given beside a preset win.

`--preset NAME` stands for the options here, which `config.json` lists. A release never changes a name's meaning.
"""

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    # Vaswani et al. (2017), arXiv:1706.03762, base, with the norms before the sublayers. 25,000 tokens an update, in
    # parts of 3,125. For millions of pairs.
    "transformer-base": {
        "model_type": "transformer",
        "state_size": 512,
        "transformer_ffn_hidden_size": 2048,
        "transformer_num_heads": 8,
        "transformer_enc_depth": 6,
        "transformer_dec_depth": 6,
        "layer_normalization_type": "layernorm",
        "tie_decoder_embeddings": True,
        "label_smoothing": 0.1,
        "token_batch_size": 25_000,
        "gradient_aggregation_steps": 8,
        "learning_schedule": "transformer",
        "warmup_steps": 4000,
        "adam_beta2": 0.98,
        "adam_epsilon": 1e-9,
    },
    # For tens of thousands of pairs; docs/transformer.md has what it reaches on Multi30k.
    "transformer-tiny": {
        "model_type": "transformer",
        "state_size": 128,
        "transformer_ffn_hidden_size": 512,
        "transformer_num_heads": 4,
        "transformer_enc_depth": 4,
        "transformer_dec_depth": 4,
        "transformer_dropout_embeddings": 0.2,
        "transformer_dropout_residual": 0.2,
        "layer_normalization_type": "layernorm",
        "tie_decoder_embeddings": True,
        "label_smoothing": 0.1,
        "batch_size": 128,
        "learning_schedule": "warmup-plateau-decay",
        "learning_rate": 0.003,
        "warmup_steps": 400,
        "adam_beta2": 0.98,
        "exponential_smoothing": 0.001,
    },
    # The defaults, which are Nematus's, with LayerNorm and a tied output table.
    "rnnsearch": {
        "model_type": "rnn",
        "embedding_size": 512,
        "state_size": 1000,
        "layer_normalization_type": "layernorm",
        "tie_decoder_embeddings": True,
    },
}
