"""Import of Marian models in the format of Hugging Face's transformers, such as those of OPUS-MT.

The folder may come from an untrusted source: reading it executes nothing, unpickles nothing, and
reads no file outside.

Reference: Junczys-Dowmunt et al. (2018), arXiv:1804.00344; Tiedemann & Thottingal (2020), EAMT.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sentencepiece import sentencepiece_model_pb2

from ..config import Config, make_config
from ..errors import UserError
from ..storage.checkpoints import BEST, save_checkpoint
from ..storage.files import ORIGIN, atomic_directory, read_inside, read_json, write_json
from ..system import build_system
from ..text.vocabulary import is_code
from .arrays import assign
from .marian_weights import is_transposed, marian_name, read_weights

_PIECE = sentencepiece_model_pb2.ModelProto.SentencePiece
_END = "</s>"  # with the ids 0 and 1
_UNKNOWN = "<unk>"
_LARGEST = 1 << 26  # bytes of a SentencePiece model
# Options that change the model -> the only value that is read, and the one that they have where
# they are missing.
_SUPPORTED = {
    "model_type": ("marian", None),
    "normalize_before": (False, False),
    "normalize_embedding": (False, False),
    "add_final_layer_norm": (False, False),
    "static_position_embeddings": (True, True),
    "scale_embedding": (True, False),
    "share_encoder_decoder_embeddings": (True, True),
    "tie_word_embeddings": (True, True),
    "eos_token_id": (0, 0),
}
_RENAMED = {  # our option -> theirs; two, if both sides must have the same
    "state_size": ("d_model",),
    "transformer_enc_depth": ("encoder_layers",),
    "transformer_dec_depth": ("decoder_layers",),
    "transformer_ffn_hidden_size": ("encoder_ffn_dim", "decoder_ffn_dim"),
    "transformer_num_heads": ("encoder_attention_heads", "decoder_attention_heads"),
    "transformer_activation": ("activation_function",),
}
_RATES = {
    "transformer_dropout_embeddings": "dropout",
    "transformer_dropout_residual": "dropout",
    "transformer_dropout_attn": "attention_dropout",
    "transformer_dropout_relu": "activation_dropout",
}
_PARTS = {
    "model_type": "transformer",
    "layer_normalization_type": "layernorm",
    "tie_decoder_embeddings": True,
    "tie_encoder_decoder_embeddings": True,
    "transformer_norm_position": "post",
    "transformer_attention_bias": True,
    "transformer_output_bias": True,
    "transformer_positions": "paper",
    "transformer_start_with_padding": True,
    **dict.fromkeys(
        ("source_dataset", "target_dataset", "valid_source_dataset", "valid_target_dataset"), ""
    ),
}


def import_marian(folder: Path, to: Path, licence: str | None) -> dict[str, Any]:
    """Writes a model directory with the model of a folder; returns its origin.

    `licence` is for one without.
    """
    if not folder.is_dir():
        raise UserError(
            f"there is no folder {folder}; download the model where there is a network and give its folder"
        )
    config = _read_config(_existing(folder, "config.json"), to)
    ids = _read_ids(_existing(folder, "vocab.json"), read_json(folder / "config.json", folder))
    path, arrays = read_weights(folder)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    origin = {
        "licence": _licence(folder) or licence or "not stated",
        "folder": folder.resolve().name,
        "sha256": digest,
    }
    with atomic_directory(to) as directory:
        dictionaries = []
        for side, name in zip(("source", "target"), config.dictionaries, strict=True):
            pieces = _existing(folder, f"{side}.spm")
            dictionaries.append(directory / Path(name).name)
            dictionaries[-1].write_bytes(
                _with_shared_ids(pieces, read_inside(pieces, folder, _LARGEST), ids)
            )
        system = build_system(config, tuple(dictionaries))
        assign(
            system.model.variables,
            arrays,
            marian_name,
            is_transposed,
            path,
            "copy the folder again",
        )
        config.save(directory / "config.json")
        write_json(directory / ORIGIN, origin, escaped=False)
        save_checkpoint(directory / BEST, system.model.variables, {}, system.fingerprint)
    return origin


def _existing(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        raise UserError(f"{folder} has no {name}; download the whole repository of the model again")
    return folder / name


def _read_config(path: Path, to: Path) -> Config:
    theirs = read_json(path, path.parent)
    for name, (supported, default) in _SUPPORTED.items():
        if (found := theirs.get(name, default)) != supported:
            raise UserError(
                f"{path}: {name} is {found!r}, and only {supported!r} can be imported; give another model"
            )
    ours = dict(
        _PARTS, dictionaries=tuple(str(to / f"{side}.model") for side in ("source", "target"))
    )
    for name, names in _RENAMED.items():
        values = [theirs.get(each) for each in names]
        if None in values or values[:1] != values[-1:]:
            raise UserError(
                f"{path}: {' and '.join(names)} must be given{' and equal' * len(names[1:])}, and are "
                f"{' and '.join(map(repr, values))}; give another model"
            )
        ours[name] = values[0]
    ours |= {name: theirs[rate] for name, rate in _RATES.items() if theirs.get(rate) is not None}
    try:
        return make_config(ours)
    except UserError as error:
        raise UserError(f"{path}: {str(error).splitlines()[0]}") from None


def _read_ids(path: Path, config: dict[str, Any]) -> dict[str, int]:
    """Returns the ids of the pieces, without that of the padding."""
    ids = read_json(path, path.parent)
    size = config.get("vocab_size")
    if any(type(i) is not int for i in ids.values()) or sorted(ids.values()) != list(
        range(len(ids))
    ):
        raise UserError(f"{path} must map pieces to the ids 0, 1, 2, ..., each once; copy it again")
    if len(ids) != size or config.get("decoder_vocab_size") not in (None, size):
        raise UserError(
            f"{path} has {len(ids)} pieces, and config.json a vocab_size of {size}; copy both again"
        )
    if (ids.get(_END), ids.get(_UNKNOWN)) != (0, 1):
        raise UserError(f"{path} must give </s> the id 0 and <unk> the id 1; give another model")
    if any(config.get(name) != size - 1 for name in ("pad_token_id", "decoder_start_token_id")):
        raise UserError(
            f"{path.with_name('config.json')}: pad_token_id and decoder_start_token_id must be the last id of "
            f"vocab.json, {size - 1}; give another model"
        )
    return {piece: i for piece, i in ids.items() if i < size - 1}


def _with_shared_ids(path: Path, model: bytes, ids: Mapping[str, int]) -> bytes:
    """Returns a SentencePiece model of a side with the ids of both. It splits text into the same
    pieces as before.

    The pieces that only the other side has are unused: they split no text. Codes of languages, such
    as `>>deu<<`, are control pieces. So nothing else has to know the ids.

    Args:
        model: Its content, a unigram model.
        ids: The ids of the pieces of both sides and of codes, each from 0 on once.
    """
    try:
        proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    except Exception:  # of a class that depends on how protobuf was built
        raise UserError(f"{path} is damaged or no SentencePiece model; copy it again") from None
    trainer = proto.trainer_spec
    if trainer.model_type != trainer.UNIGRAM:  # a merge by BPE may lead over an unused piece
        raise UserError(
            f"{path} is no unigram model of SentencePiece, the only kind that may share its ids"
        )
    pieces = {
        each.piece: each
        for each in proto.pieces
        if each.type not in (_PIECE.CONTROL, _PIECE.UNKNOWN)
    }
    if missing := [piece for piece in pieces if piece not in ids]:
        raise UserError(
            f"vocab.json lacks {len(missing)} pieces of {path}, {missing[0]!r} for one; copy both again"
        )
    names = sorted(ids, key=ids.__getitem__)
    special = {_END: _PIECE.CONTROL, _UNKNOWN: _PIECE.UNKNOWN}
    special |= {name: _PIECE.CONTROL for name in names if is_code(name)}
    del proto.pieces[:]
    for name in names:
        if name in pieces and name not in special:
            proto.pieces.append(pieces[name])
        else:
            proto.pieces.append(_PIECE(piece=name, type=special.get(name, _PIECE.UNUSED)))
    trainer.vocab_size = len(names)
    trainer.eos_id = 0
    trainer.unk_id = 1
    trainer.bos_id = -1
    trainer.pad_id = -1
    trainer.eos_piece = _END
    trainer.unk_piece = _UNKNOWN
    trainer.unk_surface = ""
    return proto.SerializeToString()


def _licence(folder: Path) -> str | None:
    """Returns the licence that the front matter of README.md states, if it does."""
    if not (folder / "README.md").exists():
        return None
    text = read_inside(folder / "README.md", folder, _LARGEST).decode(errors="replace")
    front = re.match(r"---\s*\n(.*?)\n---\s*\n", text, re.DOTALL)
    stated = front and re.search(
        r"^licen[sc]e:[ \t]*([\"']?)([^\s\"'#][^\"'#\n]*?)\1[ \t]*(?:#.*)?$", front[1], re.MULTILINE
    )
    return stated[2].strip() if stated else None
