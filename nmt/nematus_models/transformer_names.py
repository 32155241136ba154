"""Maps Nematus's names for the options and variables of its Transformer, v0.4 to master."""

import re
from collections.abc import Collection

from ..normalization import EPSILON

# Options with the same name in Nematus and here.
OPTIONS = (
    "transformer_enc_depth",
    "transformer_dec_depth",
    "transformer_ffn_hidden_size",
    "transformer_num_heads",
    "transformer_dropout_embeddings",
    "transformer_dropout_residual",
    "transformer_dropout_relu",
    "transformer_dropout_attn",
    "transformer_drophead",
)
# Options that change the model -> the value that Nematus's Transformers have.
PARTS = {
    "transformer_norm_position": "pre",
    "transformer_norm_epsilon": EPSILON,
    "transformer_activation": "relu",
    "transformer_attention_bias": False,
    "transformer_output_bias": False,
    "transformer_positions": "tensor2tensor",
    "transformer_padding": 0,
}
_MODEL = "transformer_model"
UNTIED = f"{_MODEL}/softmax_projection_layer/embedding_table"
_TABLES = {
    "encoder/embedding/embeddings": f"{_MODEL}/encoder_embedding_layer/embedding_table",
    "decoder/embedding/embeddings": f"{_MODEL}/decoder_embedding_layer/embedding_table",
    "decoder/output_kernel": UNTIED,
}
# The one table of v0.4 with --tie_encoder_decoder_embeddings.
_ONLY_TABLE = f"{_MODEL}/embedding_table"
# Parts of our variable paths -> Nematus's names for them.
_BLOCKS = {
    "self_attention": "self_attn_sublayer",
    "cross_attention": "cross_attn_sublayer",
    "self_attention_residual": "pre_self_attn_sublayer",
    "cross_attention_residual": "pre_cross_attn_sublayer",
    "feed_forward_residual": "pre_ffn_sublayer",
}
_WEIGHTS = {
    "queries": "queries_projection/dense_layer_weights",
    "keys": "keys_projection/dense_layer_weights",
    "values": "values_projection/dense_layer_weights",
    "output": "context_projection/dense_layer_weights",
    "inner_kernel": "ff_layer_1/dense_layer_weights",
    "inner_bias": "ff_layer_1/dense_layer_biases",
    "outer_kernel": "ff_layer_2/dense_layer_weights",
    "outer_bias": "ff_layer_2/dense_layer_biases",
    "gamma": "layer_norm/scale",
    "beta": "layer_norm/offset",
    "scale": "rms_norm/scale",
}


def nematus_name(path: str, names: Collection[str]) -> str:
    """Returns Nematus's name of our variable in a checkpoint with these names."""
    if path in _TABLES:
        return _ONLY_TABLE if _ONLY_TABLE in names else _TABLES[path]
    side, *parts, weight = path.split("/")
    if parts[0] == "final_norm":
        pattern = re.compile(rf"{_MODEL}/{side}/layer_\d+/final_transform/")
        found = next(filter(None, map(pattern.match, names)), None)
        return (found[0] if found else f"{_MODEL}/{side}/final_transform/") + _WEIGHTS[weight]
    # Feed-forward weights have no scope of their own.
    block = f"{_BLOCKS[parts[1]]}/" if parts[1] in _BLOCKS else ""
    return f"{_MODEL}/{side}/{parts[0]}/{block}{_WEIGHTS[weight]}"
