"""SentencePiece models of two sides that share one set of ids, as those of Marian's models do.

Each file has all pieces in the order of their ids, so nothing else has to know the ids. The pieces that only the other
side has are unused: they split no text. Codes of languages, such as `>>deu<<`, are control pieces.
"""

from collections.abc import Mapping
from pathlib import Path

from sentencepiece import sentencepiece_model_pb2

from ..errors import UserError

_PIECE = sentencepiece_model_pb2.ModelProto.SentencePiece
END_PIECE, UNKNOWN_PIECE = "</s>", "<unk>"  # with the ids 0 and 1


def with_shared_ids(path: Path, model: bytes, ids: Mapping[str, int]) -> bytes:
    """Returns a SentencePiece model whose pieces have other ids. It splits text into the same pieces as before.

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
        raise UserError(f"{path} is no unigram model of SentencePiece, the only kind that may share its ids")
    pieces = {each.piece: each for each in proto.pieces if each.type not in (_PIECE.CONTROL, _PIECE.UNKNOWN)}
    if missing := [piece for piece in pieces if piece not in ids]:
        raise UserError(f"vocab.json lacks {len(missing)} pieces of {path}, {missing[0]!r} for one; copy both again")
    names = sorted(ids, key=ids.__getitem__)
    special = {END_PIECE: _PIECE.CONTROL, UNKNOWN_PIECE: _PIECE.UNKNOWN}
    special |= {name: _PIECE.CONTROL for name in names if is_code(name)}
    del proto.pieces[:]
    for name in names:
        if name in pieces and name not in special:
            proto.pieces.append(pieces[name])
        else:
            proto.pieces.append(_PIECE(piece=name, type=special.get(name, _PIECE.UNUSED)))
    trainer.vocab_size, trainer.eos_id, trainer.unk_id, trainer.bos_id, trainer.pad_id = len(names), 0, 1, -1, -1
    trainer.eos_piece, trainer.unk_piece, trainer.unk_surface = END_PIECE, UNKNOWN_PIECE, ""
    return proto.SerializeToString()


def is_code(piece: str) -> bool:
    """Returns whether a piece is the code of a language, which may begin a line."""
    return piece.startswith(">>") and piece.endswith("<<")
