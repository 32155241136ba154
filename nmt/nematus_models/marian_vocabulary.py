"""Reads the vocabularies of Marian models, and writes SentencePiece models with their ids."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from ..errors import UserError
from ..storage.files import read_inside
from ..text.vocabulary import is_code

END = "</s>"
_UNKNOWN = "<unk>"
_PADDING = "<pad>"  # which the converter of transformers adds; it is no word
_PIECE = sentencepiece_model_pb2.ModelProto.SentencePiece


class Words(NamedTuple):
    """Lists the words of a side in the order of our ids: the end, the unknown word, the others.

    Attributes:
        path: The file that lists them.
        names: Their pieces.
        rows: Their rows in the tables of the file of weights.
        count: Rows of these tables.
    """

    path: Path
    names: list[str]
    rows: np.ndarray
    count: int


def make_words(path: Path, ids: Mapping[str, int], count: int) -> Words:
    """Returns the words of a vocabulary.

    Args:
        path: The file of the vocabulary.
        ids: The row of each piece.
        count: Rows of the tables.
    """
    rows = sorted(ids.values()) if all(type(i) is int for i in ids.values()) else []
    if not rows or rows[0] < 0 or len(set(rows)) < len(rows):
        raise UserError(
            f"{path} must map pieces to the ids 0, 1, 2, ..., each at most once; copy it again"
        )
    if rows[-1] >= count:
        raise UserError(
            f"{path} has {len(ids)} pieces with ids up to {rows[-1]}, but the tables of this model "
            f"have {count} rows; give the vocabulary that it was trained with"
        )
    if END not in ids or _UNKNOWN not in ids:
        raise UserError(
            f"{path} has no {END} or no {_UNKNOWN}, which every vocabulary of Marian has; give the "
            "vocabulary that the model was trained with"
        )
    for piece in ids:
        # JSON can escape a lone surrogate.
        if not piece or "\0" in piece or piece != piece.encode(errors="ignore").decode():
            raise UserError(f"{path} has {piece!r}, which is no piece of text; copy it again")
    names = [END, _UNKNOWN, *sorted(set(ids) - {END, _UNKNOWN, _PADDING}, key=ids.__getitem__)]
    return Words(path, names, np.array([ids[piece] for piece in names]), count)


def model_of_side(path: Path, folder: Path, words: Words) -> tuple[bytes, int]:
    """Returns a SentencePiece model of a side with the ids of both, and how many pieces have none.

    It splits text into the same pieces as before.

    The pieces that only the other side has are unused: they split no text. Codes of languages, such
    as `>>deu<<`, are control pieces. Pieces without an id follow; they are unknown words.

    Args:
        path: The model of the side, a unigram model.
        folder: The folder that it must lie in.
        words: Those of the vocabulary.
    """
    proto = _read_unigram(path, folder)
    pieces = {each.piece: each for each in proto.pieces if each.type != _PIECE.UNKNOWN}
    pieces.pop(END, None)
    known = set(words.names)
    texts = [piece for piece, each in pieces.items() if each.type != _PIECE.CONTROL]
    found = sum(piece in known for piece in texts)
    if 2 * found <= len(texts):
        raise UserError(
            f"{path} has {len(texts)} pieces, of which {words.path.name} with its {len(known)} has "
            f"{found}; give the files of one model"
        )
    special = {END: _PIECE.CONTROL, _UNKNOWN: _PIECE.UNKNOWN}
    special |= {name: _PIECE.CONTROL for name in words.names if is_code(name)}
    new = dict.fromkeys(words.names, _PIECE.UNUSED) | special
    kept = {name: pieces[name] for name in known & set(pieces) - set(special)}
    del proto.pieces[:]
    proto.pieces.extend(
        kept.get(name) or _PIECE(piece=name, type=new[name]) for name in words.names
    )
    proto.pieces.extend(pieces[piece] for piece in texts if piece not in known)
    proto.trainer_spec.MergeFrom(
        sentencepiece_model_pb2.TrainerSpec(
            vocab_size=len(words.names),
            eos_id=0,
            unk_id=1,
            bos_id=-1,
            pad_id=-1,
            eos_piece=END,
            unk_piece=_UNKNOWN,
            unk_surface="",
        )
    )
    model = proto.SerializeToString()
    try:
        sentencepiece.SentencePieceProcessor().LoadFromSerializedProto(model)
    except RuntimeError as error:
        raise UserError(
            f"SentencePiece cannot read {path}: {str(error).splitlines()[0]}; copy it again"
        ) from None
    return model, len(texts) - found


def _read_unigram(path: Path, folder: Path) -> sentencepiece_model_pb2.ModelProto:
    try:
        proto = sentencepiece_model_pb2.ModelProto.FromString(read_inside(path, folder))
        names = [each.piece for each in proto.pieces]
    except UserError:
        raise
    except Exception:  # of a class that depends on how protobuf was built
        raise UserError(f"{path} is damaged or no SentencePiece model; copy it again") from None
    if proto.trainer_spec.model_type != proto.trainer_spec.UNIGRAM:
        # A merge by BPE may lead over an unused piece.
        raise UserError(
            f"{path} is no unigram model of SentencePiece, the only kind that may share its ids; "
            "translate with the program that the model was made for"
        )
    if not all(math.isfinite(each.score) for each in proto.pieces) or len(set(names)) < len(names):
        raise UserError(f"{path} has a piece twice, or a score that is no number; copy it again")
    return proto
