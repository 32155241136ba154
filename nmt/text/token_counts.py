"""The number of tokens of every line of a text: the slowest part of a first start, so all cores share it."""

import hashlib
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import sentencepiece
import tensorflow as tf
import tensorflow_text
from tqdm import tqdm

from ..errors import UserError
from .lines import Text
from .threads import parallel_map

_CHUNK = 1 << 20  # bytes of the lines that are tokenized at a time

Encoder = Callable[[tf.Tensor], tf.RaggedTensor]  # strings `[batch]` to ids `[batch, (tokens)]`


def token_counts(text: Text, encode: Encoder, *depends_on: object) -> np.ndarray:
    """Returns the number of tokens of each line, without the end. The cache of the text keeps them.

    Args:
        text: The text.
        encode: Splits lines.
        *depends_on: All that the tokens depend on besides the text and the versions of the libraries.
    """
    versions = (tf.__version__, tensorflow_text.__version__, sentencepiece.__version__)
    name = "tokens-" + hashlib.sha256(repr((depends_on, versions)).encode()).hexdigest()[:32]
    count = tf.function(
        lambda lines: encode(lines).row_lengths(),
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    ).get_concrete_function()  # traced once, before the threads call it
    with tqdm(total=len(text), unit=" lines", desc=f"tokenizing {text.paths[0].name}", delay=5, leave=False) as bar:

        def counted(lines: Iterator[bytes], number: int) -> np.ndarray:
            counts, done = np.empty(number, np.int32), 0
            for found in parallel_map(lambda chunk: count(tf.constant(chunk)).numpy(), _chunked_by_bytes(lines)):
                if done + len(found) <= number:
                    counts[done : done + len(found)] = found
                done += len(found)
                bar.update(len(found))
            if done != number:
                raise UserError(f"{text} changed while it was being read; start again and leave it alone")
            return counts

        return text.derive(name, counted)


def _chunked_by_bytes(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yields lines in lists of at least `_CHUNK` bytes, line ends counted; the last may be smaller."""
    chunk, held = [], 0
    for line in lines:
        chunk.append(line)
        held += len(line) + 1
        if held >= _CHUNK:
            yield chunk
            chunk, held = [], 0
    if chunk:
        yield chunk
