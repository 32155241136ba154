"""Vocabularies: strings to token ids and back, in the graph.

Id 0 ends a sentence, whichever the kind: a SentencePiece model (`.model`), where id 1 stands for an unknown word, or a
Nematus dictionary (`.json`), which says which one does.
"""

import hashlib
import json
import os
import re
from pathlib import Path

import sentencepiece
import tensorflow as tf
import tensorflow_text

from ..errors import UserError
from ..storage.files import atomic_write
from .lines import TextFile, require_utf8

END = 0
UNKNOWN = 1


class SentencePieceVocabulary(tf.Module):
    """Subword units of raw text (Kudo & Richardson 2018, arXiv:1808.06226).

    Args:
        path: A model with end of sentence at id 0, unknown at id 1 and no other special symbol, as
            `train_sentencepiece` writes it.
    """

    def __init__(self, path: Path):
        super().__init__()
        model = path.read_bytes()
        self.digest = hashlib.sha256(model).hexdigest()
        processor = sentencepiece.SentencePieceProcessor()
        try:
            processor.LoadFromSerializedProto(model)
        except RuntimeError:
            raise UserError(f"{path} is not a SentencePiece model; `python -m nmt vocab` makes one") from None
        if (processor.eos_id(), processor.unk_id()) != (END, UNKNOWN):
            raise UserError(
                f"{path} has end of sentence at id {processor.eos_id()} and unknown at id {processor.unk_id()}; "
                f"they must be {END} and {UNKNOWN}: train it with --eos_id=0 --unk_id=1 --bos_id=-1 --pad_id=-1"
            )
        self.size = processor.GetPieceSize()
        # In a SavedModel tokenizers of one name are one: the name must tell models apart.
        name = f"sentencepiece_{self.digest}"
        self._tokenizer = tensorflow_text.SentencepieceTokenizer(model, name=name)

    def encode(self, lines: tf.Tensor) -> tf.RaggedTensor:
        """Maps strings `[batch]` to ids `[batch, (tokens)]`, without the end of sentence."""
        return self._tokenizer.tokenize(lines)

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Maps ids `[batch, (tokens)]`, without the end of sentence, to strings `[batch]`."""
        return self._tokenizer.detokenize(ids)


class DictionaryVocabulary(tf.Module):
    """Words separated by spaces, looked up in a Nematus JSON dictionary.

    Args:
        path: A JSON object from word to id. `eos` (or `<EOS>`) must have id 0 and `UNK` (or `<UNK>`) its own.
        size: Words with an id of at least `size` count as unknown, and an id without a word decodes to the unknown
            word, which must be among them; `None` is the number of words.
    """

    def __init__(self, path: Path, size: int | None = None):
        super().__init__()
        content = path.read_bytes()
        self.digest = hashlib.sha256(content).hexdigest()
        ids = _read_dictionary(path, content)
        self.size = size or len(ids)
        words = sorted(ids, key=ids.get)
        unknown = ids.get("UNK", ids.get("<UNK>"))
        if unknown >= self.size:
            raise UserError(
                f"{path} has its unknown word at id {unknown}, so a size of {self.size} lacks it; give a larger one"
            )
        unused = [words[unknown]] * (self.size - len(words))
        words = words[: self.size]
        # The end is left out: no word of a text ends the sentence.
        initializer = tf.lookup.KeyValueTensorInitializer(words[1:], tf.range(1, len(words)))
        self._ids = tf.lookup.StaticHashTable(initializer, default_value=unknown)
        self._words = tf.constant(words + unused)

    def encode(self, lines: tf.Tensor) -> tf.RaggedTensor:
        """Maps strings `[batch]` to ids `[batch, (tokens)]`, without the end of sentence."""
        return tf.ragged.map_flat_values(self._ids.lookup, tf.strings.split(lines))

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Maps ids `[batch, (tokens)]`, without the end of sentence, to strings `[batch]`."""
        return tf.strings.reduce_join(tf.gather(self._words, ids), axis=-1, separator=" ")


Vocabulary = SentencePieceVocabulary | DictionaryVocabulary


def load_vocabulary(path: str | os.PathLike, size: int | None = None) -> Vocabulary:
    """Loads a vocabulary of either kind, told apart by the file's ending.

    Raises:
        UserError: The file is missing, damaged or of neither kind.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"there is no vocabulary {path}; `python -m nmt vocab` makes one")
    if path.suffix == ".json":
        return DictionaryVocabulary(path, size)
    if path.suffix == ".model":
        if size is not None:
            raise UserError(f"the size of {path} is fixed: a vocabulary size can be given for .json dictionaries only")
        return SentencePieceVocabulary(path)
    raise UserError(f"{path} must end in .model (SentencePiece) or .json (Nematus dictionary)")


def train_sentencepiece(text: str | os.PathLike, to: str | os.PathLike, size: int) -> None:
    """Trains a byte-pair encoding of `size` units on a text, one sentence a line, and writes the model.

    Raises:
        UserError: The text is missing, not UTF-8, or too small for the size.
    """
    text, to = Path(text), Path(to)
    if not text.is_file():
        raise UserError(f"there is no text {text}")
    if not text.stat().st_size:
        raise UserError(f"the text {text} is empty")
    require_utf8(text)
    try:
        with atomic_write(to, "wb") as model:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(line.decode() for line in TextFile(text)),
                model_writer=model,
                vocab_size=size,
                model_type="bpe",
                character_coverage=1.0,
                max_sentence_length=2**30,  # or it leaves out lines of more than 4192 bytes
                eos_id=END,
                unk_id=UNKNOWN,
                bos_id=-1,
                pad_id=-1,
                minloglevel=2,
            )
    except RuntimeError as error:
        raise UserError(f"no vocabulary of {size} units can be made of {text}: {_reason(str(error))}") from None


def _reason(error: str) -> str:
    """Returns what SentencePiece's error means, and what to do."""
    if found := re.search(r"required_chars\. \d+ vs (\d+)", error):
        return f"its characters alone are {found[1]}; ask for more"
    if found := re.search(r"too high .* <= (\d+)", error):
        return f"its words have no more than {found[1]} parts; ask for so many or fewer"
    if "sentences_.empty()" in error or "all_chars_count" in error:
        return "it has no words; give a text that has"
    return error.splitlines()[-1]


def _read_dictionary(path: Path, content: bytes) -> dict[str, int]:
    try:
        ids = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}") from None
    if not isinstance(ids, dict) or sorted(i for i in ids.values() if type(i) is int) != list(range(len(ids))):
        raise UserError(f"{path} must map words to the ids 0, 1, 2, ..., each once")
    if ids.get("eos", ids.get("<EOS>")) != END or not {"UNK", "<UNK>"} & set(ids):
        raise UserError(f"{path} must map eos (or <EOS>) to {END} and have an entry UNK (or <UNK>)")
    try:
        "".join(ids).encode()
    except UnicodeEncodeError as error:  # JSON can spell halves of characters
        raise UserError(f"{path} has a word that is no text: {error}") from None
    return ids
