"""Maps strings to token ids and back, in the graph.

There are two kinds: SentencePiece models (`.model`) and Nematus dictionaries (`.json`). In both, id
0 ends a sentence. A Transformer begins with id 1. Of a SentencePiece model, that is the unknown
word, or a symbol of its own before the unknown word with id 2. In a dictionary, the unknown word
has any id but 0.
"""

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sentencepiece
import tensorflow as tf
import tensorflow_text
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from ..concurrency import ProcessPool
from ..errors import UserError
from ..storage.files import read_inside
from .segmentation import SubwordSampler

END = 0
_SPECIAL = ("eos", "UNK")  # names of the ids 0 and 1 in Nematus v0.3
_CODE = "(?s:>>.*?<<)"  # at the beginning of a line


class SentencePieceVocabulary(tf.Module):
    """Subword units of raw text.

    The ids of the model are those of the pieces in the file if the end of sentence has id 0 there
    and the unknown word id 1, as `sentencepiece_training` makes it. Otherwise the end, the
    beginning if there is one, and the unknown word come first, then the other pieces in their
    order.

    A file of a Marian model has the pieces of two sides. There a line may begin with the code of a
    language, and a character that only the other side knows has the id of its piece, as in Marian.
    Pieces after the first `vocab_size` of its trainer_spec split lines too, into unknown words.

    Attributes:
        digest: SHA-256 of the file.
        size: Number of ids.
        unknown: Id of the unknown word.
        unknowns: Ids that decode to the unknown word: its own, and those without a word.
        words: The words of all ids.

    Reference: Kudo & Richardson (2018), arXiv:1808.06226.
    """

    def __init__(self, path: Path, model: bytes):
        super().__init__()
        self.digest = hashlib.sha256(model).hexdigest()
        processor = sentencepiece.SentencePieceProcessor()
        try:
            processor.LoadFromSerializedProto(model)
        except RuntimeError:
            raise UserError(
                f"{path} is not a SentencePiece model; `python -m nmt vocab` makes one"
            ) from None
        self._processor = processor
        self._is_shared = any(
            processor.is_unused(i) or is_code(processor.id_to_piece(i))
            for i in range(processor.GetPieceSize())
        )
        self._ids = _ids_of_pieces(path, processor)
        self.unknown = int(self._ids[processor.unk_id()])
        if self._is_shared:
            self._ids[ModelProto.FromString(model).trainer_spec.vocab_size :] = self.unknown
        self._pieces = np.unique(self._ids, return_index=True)[1].astype(np.int32)
        self.size = len(self._pieces)
        self.unknowns = (self.unknown,)
        self._keeps_ids = self._ids.tolist() == list(range(self.size))
        self._drawing = ProcessPool("splits text at random", SubwordSampler, model)
        # A SavedModel shares one tokenizer among all of the same name, so the name identifies the
        # model.
        name = f"sentencepiece_{self.digest}"
        kind = tf.string if self._is_shared else tf.int32
        self._tokenizer = tensorflow_text.SentencepieceTokenizer(model, kind, name=name)

    def encode(self, lines: tf.Tensor) -> tf.RaggedTensor:
        """Maps strings `[batch]` to ids `[batch, (tokens)]`, without the end of sentence."""
        if self._is_shared:
            return self._encode_shared(lines)
        pieces = self._tokenizer.tokenize(lines)
        return (
            pieces if self._keeps_ids else tf.ragged.map_flat_values(tf.gather, self._ids, pieces)
        )

    def _encode_shared(self, lines: tf.Tensor) -> tf.RaggedTensor:
        rest = tf.strings.regex_replace(lines, f"^{_CODE}", "", replace_global=False)
        lengths = tf.strings.length(lines) - tf.strings.length(rest)
        codes = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(tf.strings.substr(lines, tf.zeros_like(lengths), lengths), lengths > 0),
            tf.cast(lengths > 0, tf.int64),
        )
        return tf.ragged.map_flat_values(
            self._ids_of_names, tf.concat([codes, self._tokenizer.tokenize(rest)], 1)
        )

    def _ids_of_names(self, names: tf.Tensor) -> tf.Tensor:
        """Returns the ids of pieces `[...]`.

        The name of the end is a word like others, which is unknown.
        """
        pieces = self._tokenizer.string_to_id(names)
        ids = pieces if self._keeps_ids else tf.gather(self._ids, pieces)
        return tf.where(ids == END, self.unknown, ids)

    def sample(
        self, lines: list[bytes], alpha: float, seed: Sequence[int], longest: int
    ) -> list[np.ndarray]:
        """Returns the ids of a random segmentation of each line, without the end of sentence.

        Threads may call it at the same time. Other processes do the work.

        Args:
            alpha: In a BPE model, the probability of skipping a merge (BPE-dropout). In a unigram
                model, the exponent of the probabilities of the segmentations: the smaller, the more
                random.
            seed: Integers; the same ones give the same segmentations.
            longest: A segmentation with more tokens is replaced by the usual one.

        Reference: Kudo (2018), arXiv:1804.10959; Provilkov et al. (2020), arXiv:1910.13267.
        """
        if not self._is_shared:
            return [self._ids[row] for row in self._drawing(lines, alpha, list(seed), longest)]
        found = [re.match(_CODE.encode(), line) for line in lines]
        rest = [
            line[each.end() :] if each else line for each, line in zip(found, lines, strict=True)
        ]
        rows = self._drawing(rest, alpha, list(seed), longest - any(found))
        codes = [
            [self._processor.piece_to_id(each[0].decode(errors="replace"))] if each else []
            for each in found
        ]
        return [self._ids[[*code, *row]] for code, row in zip(codes, rows, strict=True)]

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Maps ids `[batch, (tokens)]`, without the end of sentence, to strings `[batch]`."""
        lines = self._tokenizer.detokenize(tf.ragged.map_flat_values(self._to_pieces, ids))
        return tf.strings.strip(lines) if self._is_shared else lines

    def tokens(self, ids: tf.Tensor) -> tf.Tensor:
        """Maps ids of any shape to their subword units, where `▁` stands for a space."""
        return self._tokenizer.id_to_string(self._to_pieces(ids))

    def ids_of_units(self, lines: tf.Tensor) -> tf.RaggedTensor:
        """Maps lines of units with spaces between them to ids `[batch, (tokens)]`."""
        names = tf.strings.split(lines, " ")  # units may have other white space
        return tf.ragged.map_flat_values(
            self._ids_of_names, tf.ragged.boolean_mask(names, names != "")
        )

    @property
    def words(self) -> list[str]:  # no attribute, as TensorFlow would track it
        return [self._processor.id_to_piece(int(i)) for i in self._pieces]

    def _to_pieces(self, ids: tf.Tensor) -> tf.Tensor:
        return ids if self._keeps_ids else tf.gather(self._pieces, ids)


class DictionaryVocabulary(tf.Module):
    """Words separated by spaces, looked up in a Nematus JSON dictionary.

    Args:
        content: A JSON object from word to id. `eos` (or `<EOS>`) must have id 0; `UNK` (or
            `<UNK>`, or without it `<GO>`) may have any other. A dictionary of v0.3 without id 0 or
            1 is read too, if its text had these words.
        size: Number of ids; by default, the number of words. In a smaller vocabulary the words with
            higher ids are unknown. In a larger one the ids without a word decode to the unknown
            word.

    The attributes are those of `SentencePieceVocabulary`.
    """

    def __init__(self, path: Path, content: bytes, size: int | None = None):
        super().__init__()
        self.digest = hashlib.sha256(content).hexdigest()
        ids, unknown = _read_dictionary(path, content)
        names = dict(enumerate(_SPECIAL)) | {i: word for word, i in ids.items()}
        words = [names[i] for i in range(max(ids.values()) + 1)]
        self.size = size or len(words)
        self.unknown = unknown
        if unknown >= self.size:
            raise UserError(
                f"{path} has its unknown word at id {unknown}, outside a vocabulary of size "
                f"{self.size}; give a larger size"
            )
        self.unknowns = (unknown, *range(len(words), self.size))
        # Skip id 0, or the word `eos` in a text would end the sentence.
        known = {word: i for word, i in ids.items() if END < i < self.size}
        table = tf.constant(list(known), tf.string), tf.constant(list(known.values()), tf.int32)
        self._ids = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(*table), unknown)
        self.words = words[: self.size] + [words[unknown]] * (self.size - len(words))
        self._words = tf.constant(self.words)

    def encode(self, lines: tf.Tensor) -> tf.RaggedTensor:
        return tf.ragged.map_flat_values(self._ids.lookup, tf.strings.split(lines))

    ids_of_units = encode  # units are words

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        return units(self, ids)

    def tokens(self, ids: tf.Tensor) -> tf.Tensor:
        """Maps ids of any shape to their words."""
        return tf.gather(self._words, ids)


Vocabulary = SentencePieceVocabulary | DictionaryVocabulary


def units(vocabulary: Vocabulary, ids: tf.RaggedTensor) -> tf.Tensor:
    """Returns the units of ids `[batch, (tokens)]` with spaces between them, `[batch]`."""
    return tf.strings.reduce_join(vocabulary.tokens(ids), axis=-1, separator=" ")


def is_code(piece: str) -> bool:
    """Returns whether a piece is the code of a language, which may begin a line."""
    return piece.startswith(">>") and piece.endswith("<<")


class Vocabularies(NamedTuple):
    """The vocabularies of both sides of a model."""

    source: Vocabulary
    target: Vocabulary


def load_vocabulary(
    path: str | os.PathLike, size: int | None = None, directory: Path | None = None
) -> Vocabulary:
    """Loads a SentencePiece model (`.model`) or a Nematus dictionary (`.json`)."""
    path = Path(path)
    if not path.exists():
        raise UserError(f"there is no vocabulary {path}; `python -m nmt vocab` makes one")
    if path.suffix not in (".json", ".model"):
        raise UserError(
            f"the vocabulary {path} must end in .model (SentencePiece) or .json (Nematus)"
        )
    if path.suffix == ".model" and size is not None:
        raise UserError(
            f"the size of {path} is fixed; give a vocabulary size for .json dictionaries only"
        )
    content = read_inside(path, directory or path.resolve().parent)
    if path.suffix == ".json":
        return DictionaryVocabulary(path, content, size)
    return SentencePieceVocabulary(path, content)


def _ids_of_pieces(path: Path, processor: sentencepiece.SentencePieceProcessor) -> np.ndarray:
    """Returns the id in the model of each piece in the file."""
    end = processor.eos_id()
    begin = processor.bos_id()
    unknown = processor.unk_id()
    size = processor.GetPieceSize()
    if end < 0:
        raise UserError(f"{path} has no end of sentence; train it without --eos_id=-1")
    if all(processor.is_control(i) for i in range(size) if i != unknown):
        raise UserError(
            f"{path} has control symbols only, no units of text; `python -m nmt vocab` makes others"
        )
    if (end, unknown) == (END, 1):
        return np.arange(size, dtype=np.int32)
    special = [end, unknown] if begin < 0 else [end, begin, unknown]
    ids = np.zeros(size, np.int32)
    ids[special + [piece for piece in range(size) if piece not in special]] = np.arange(size)
    return ids


def _read_dictionary(path: Path, content: bytes) -> tuple[dict[str, int], int]:
    """Returns the ids of the words, and that of the unknown word.

    If a text has the word `eos` or `UNK`, v0.3 gives it a later id, and the dictionary has no word
    of id 0 or 1. These ids still are those of the end and of the unknown word.
    """
    try:
        ids = json.loads(content)
        ids_of = ids if isinstance(ids, dict) else {}
        "".join(ids_of).encode()  # JSON can escape a lone surrogate
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is no dictionary in JSON: {error}") from None
    numbers = {i for i in ids_of.values() if type(i) is int}
    missing = {i for i, word in enumerate(_SPECIAL) if word in ids_of} - numbers
    if not numbers or numbers | missing != set(range(len(ids) + len(missing))):
        raise UserError(
            f"{path} must map words to the ids 0, 1, 2, ..., each once; give a Nematus dictionary"
        )
    of_master = ids.get("<EOS>") == END
    names = ("<UNK>", "<GO>", "UNK") if of_master else ("UNK", "<UNK>", "<GO>")
    unknowns = [ids[word] for word in names if word in ids]
    if not (of_master or ids.get("eos") == END or END in missing) or not unknowns:
        raise UserError(f"{path} must map eos (or <EOS>) to {END} and have an entry UNK (or <UNK>)")
    return ids, 1 if 1 in missing else unknowns[0]
