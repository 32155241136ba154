"""Writes Marian's own files with the weights of a folder of transformers."""

import json
import re
import shutil

import numpy as np
from safetensors.numpy import load_file

NPZ = "model.npz.best-perplexity.npz"
OPTIONS = {
    "type": "transformer",
    "dim-emb": 16,
    "dim-vocabs": [48, 48],
    "enc-depth": 1,
    "dec-depth": 2,
    "tied-embeddings-all": "true",
    "transformer-dim-ffn": 24,
    "transformer-ffn-activation": "swish",
    "transformer-heads": 2,
    "transformer-postprocess": "dan",
}
_PARTS = {
    "self_attn.": "self_",
    "encoder_attn.": "context_",
    "self_attn_layer_norm.": "self_Wo_ln_",
    "encoder_attn_layer_norm.": "context_Wo_ln_",
    "final_layer_norm.": "ffn_ffn_ln_",
}
_WEIGHTS = {
    **{f"{part}_proj.weight": f"W{part[0]}" for part in ("q", "k", "v", "out")},
    **{f"{part}_proj.bias": f"b{part[0]}" for part in ("q", "k", "v", "out")},
    **{f"fc{i}.weight": f"ffn_W{i}" for i in (1, 2)},
    **{f"fc{i}.bias": f"ffn_b{i}" for i in (1, 2)},
}


def marian_name(name):
    """Returns Marian's name of a weight of a layer."""
    side, layer, rest = re.fullmatch(r"model\.(\w+)\.layers\.(\d+)\.(.*)", name).groups()
    part, weight = re.fullmatch(r"(\w+_attn\.|\w+_norm\.|)(.*)", rest).groups()
    known = {"weight": "scale", "bias": "bias"} if "norm" in part else _WEIGHTS
    return f"{side}_l{int(layer) + 1}_{_PARTS.get(part, '')}{known[weight]}"


def arrays_of(folder):
    """Returns the arrays as Marian has them: matrices from inputs to outputs, vectors `[1, n]`."""
    found = load_file(folder / "model.safetensors")
    arrays = {
        "Wemb": found.pop("model.shared.weight")[:-1],
        "decoder_ff_logit_out_b": found.pop("final_logits_bias")[:, :-1],
    }
    for name, array in found.items():
        arrays[marian_name(name)] = array.T if array.ndim == 2 else array[np.newaxis]
    return arrays


def write_marian(source, to, arrays=None, ids=None, **options):
    """Writes a folder with the weights, the `.spm` files and the vocabulary of another."""
    to.mkdir()
    for side in ("source", "target"):
        shutil.copy(source / f"{side}.spm", to)
    ids = ids or json.loads((source / "vocab.json").read_text(encoding="utf-8"))
    quoted = {f'"{piece}"' if ">>" in piece else piece: ids[piece] for piece in ids}
    lines = (f"{piece}: {i}\n" for piece, i in quoted.items() if piece != "<pad>")
    (to / "vocab.yml").write_text("".join(lines), encoding="utf-8")
    (to / "decoder.yml").write_text(f"models:\n- /far/{NPZ}\nvocabs:\n- vocab.yml\n- vocab.yml\n")
    write_weights(to, arrays or arrays_of(source), **options)
    return to


def write_weights(folder, arrays, padding=3, **options):
    """Options are named with `_` in the place of `-`; `padding` NULs follow them."""
    named = OPTIONS | {name.replace("_", "-"): value for name, value in options.items()}
    text = "".join(f"{name}: {value}\n" for name, value in named.items() if value is not None)
    special = np.frombuffer(text.encode() + b"\0" * padding, np.int8)
    np.savez(folder / NPZ, **arrays, **{"special:model.yml": special})
