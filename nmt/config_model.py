"""Declares the options of a model."""

import os
from dataclasses import dataclass
from pathlib import Path

from .config_fields import (
    between,
    choice,
    option,
    positive,
    rnn_only,
    transformer_only,
)
from .model.registry import ARCHITECTURES
from .normalization import EPSILON, KINDS

_APPLY = f"python patches/apply.py apply {os.path.relpath(Path(__file__).parents[1])}"
# The largest values: beyond them, the memory of any machine ends before a message does.
_SIZE = 100_000  # of a layer
_COUNT = 10_000_000  # of words
_DEPTH = 1000  # layers or heads


@dataclass(frozen=True)
class ModelOptions:
    """Decide which weights there are: a checkpoint must match them."""

    model_type: str = choice("rnn", "architecture", ARCHITECTURES)
    embedding_size: int = positive(
        512, "size of the word embeddings; in a Transformer, --state_size", _SIZE
    )
    state_size: int = positive(
        1000, "size of each GRU, or of a Transformer's layers, where the default is 512", _SIZE
    )
    layer_normalization_type: str = choice(
        "none",
        "kind of every normalization in the model; the default of a Transformer is layernorm; "
        "`python patches/apply.py apply .` adds rmsnorm and others",
        KINDS,
        f"; `{_APPLY}` adds rmsnorm and others",
    )
    layer_normalization_center: bool | None = option(
        None,
        "give every normalization an offset (Keras: beta); by default, layernorm has one, and "
        "those of patches/nmt have none",
    )
    tie_decoder_embeddings: bool = option(False, "use the target embedding as the output matrix")
    tie_encoder_decoder_embeddings: bool = option(
        False, "use one embedding for both sides, as of `nmt vocab --joint`"
    )
    output_hidden_activation: str = rnn_only(
        choice("tanh", "activation before the output layer", ("tanh", "relu", "prelu", "linear"))
    )
    rnn_enc_depth: int = rnn_only(positive(1, "levels of the encoder", _DEPTH))
    rnn_enc_transition_depth: int = rnn_only(
        positive(1, "GRUs one after another in each of its levels", _DEPTH)
    )
    rnn_dec_depth: int = rnn_only(
        positive(1, "levels of the decoder; the first has the attention", _DEPTH)
    )
    rnn_dec_base_transition_depth: int = rnn_only(
        between(2, "GRUs one after another in the first level of the decoder", 2, _DEPTH)
    )
    rnn_dec_high_transition_depth: int = rnn_only(
        positive(1, "GRUs one after another in each other level", _DEPTH)
    )
    rnn_dec_deep_context: bool = rnn_only(
        option(False, "give the attended context to the further levels too")
    )
    transformer_enc_depth: int = transformer_only(positive(6, "layers of the encoder", _DEPTH))
    transformer_dec_depth: int = transformer_only(positive(6, "layers of the decoder", _DEPTH))
    transformer_ffn_hidden_size: int = transformer_only(
        positive(2048, "inner size of the feed-forwards", _SIZE)
    )
    transformer_num_heads: int = transformer_only(positive(8, "heads of each attention", _DEPTH))
    transformer_norm_position: str = transformer_only(
        choice(
            "pre",
            "normalize the input of each sublayer (pre) or its residual sum (post)",
            ("pre", "post"),
        )
    )
    transformer_norm_epsilon: float = transformer_only(
        positive(EPSILON, "constant inside the square root of every normalization", 1)
    )
    transformer_activation: str = transformer_only(
        choice(
            "relu",
            "activation in the feed-forwards; gelu_tanh approximates gelu",
            ("relu", "swish", "gelu", "gelu_tanh"),
        )
    )
    transformer_attention_bias: bool = transformer_only(
        option(False, "add biases to the projections of attention")
    )
    transformer_output_bias: bool = transformer_only(
        option(False, "add a bias to the output layer")
    )
    transformer_positions: str = transformer_only(
        choice(
            "tensor2tensor",
            "frequencies of the d / 2 sines of positions: 10000**(-2i / (d - 2)), as in "
            "Tensor2Tensor, Nematus and Marian, or 10000**(-2i / d), as in the paper and "
            "transformers",
            ("tensor2tensor", "paper"),
        )
    )
    transformer_padding: int = transformer_only(
        between(
            0,
            "padding rows after those of the words, never chosen or trained, zeros at first; "
            "translations begin with the last one, or with id 1 if there is none",
            0,
            _COUNT,
        )
    )
