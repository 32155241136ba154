"""Computes the signatures of an export with CTranslate2, from text to text."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import ctranslate2
import numpy as np
import tensorflow as tf

from ..decoding.options import DecodingOptions
from ..storage.files import read_json
from ..text.batches import LONGEST
from ..text.vocabulary import END, Vocabularies, Vocabulary, load_vocabulary
from .ctranslate2_model import OPTIONS, VOCABULARIES, token_names

_TEXTS = tf.TensorSpec([None], tf.string)
_NUMBERS = tf.TensorSpec([None], tf.float32)
_COUNTS = tf.TensorSpec([None], tf.int32)
_FLAGS = tf.TensorSpec([None], tf.bool)
Arrays = dict[str, np.ndarray]
Specs = Mapping[str, tf.TensorSpec]


class Engine:
    """Translates and scores with CTranslate2 as an exported SavedModel does.

    A search ends as CTranslate2 ends it. The limit of a translation is that of the longest sentence
    in its batch.

    Args:
        path: What `export --format ctranslate2` wrote.
        compute_type: The type of CTranslate2, as `int8`.
        workers: Batches computed at the same time.
    """

    def __init__(self, path: Path, compute_type: str, workers: int):
        self._options = DecodingOptions.among(read_json(path / OPTIONS, path))
        vocabularies = Vocabularies(
            *(load_vocabulary(path / name, directory=path) for name in VOCABULARIES)
        )
        names = token_names(vocabularies)
        # The vocabulary of each side, and how CTranslate2 calls its tokens.
        self._source, self._target = (
            (vocabulary, np.array(each, object))
            for vocabulary, each in zip(vocabularies, names, strict=True)
        )
        self._target_ids = {name: i for i, name in enumerate(names[1])}
        self._translator = ctranslate2.Translator(
            str(path),
            device="auto",
            compute_type=compute_type,
            inter_threads=workers,
            intra_threads=1,
        )

    @property
    def functions(self) -> dict[str, tuple[Specs, Specs, Callable[[Arrays], Arrays]]]:
        """Inputs, outputs and function of each signature, by its name."""
        sources = {"sources": _TEXTS}
        best = {
            "translations": _TEXTS,
            "scores": _NUMBERS,
            "source_cut": _FLAGS,
            "translation_cut": _FLAGS,
        }
        size = self._options.beam_size
        beams = best | {
            "translations": tf.TensorSpec([None, size], tf.string),
            "scores": tf.TensorSpec([None, size], tf.float32),
            "counts": _COUNTS,
            "translation_cut": tf.TensorSpec([None, size], tf.bool),
        }
        lengths = {"source_tokens": _COUNTS, "translation_tokens": _COUNTS}
        return {
            "serving_default": (sources, best, self._serve),
            "n_best": (sources, beams, lambda inputs: self._translate(inputs, size)),
            "with_prefix": ({**sources, "prefixes": _TEXTS}, best, self._serve),
            "score": ({**sources, "targets": _TEXTS}, {"scores": _NUMBERS}, self._score),
            "tokens": (sources, lengths, self._tokens),
        }

    def _serve(self, inputs: Arrays) -> Arrays:
        found = self._translate(inputs, 1)
        del found["counts"]
        return {name: x if name == "source_cut" else x[:, 0] for name, x in found.items()}

    def _score(self, inputs: Arrays) -> Arrays:
        sources, source_lengths = _encode(inputs["sources"], *self._source)
        targets, target_lengths = _encode(inputs["targets"], *self._target)
        found = self._translator.score_batch(sources, targets)
        costs = [
            -sum(each.log_probs) / len(each.log_probs) ** self._options.normalization_alpha
            for each in found
        ]
        is_cut = np.maximum(source_lengths, target_lengths) > LONGEST
        return {"scores": np.where(is_cut, np.inf, costs).astype(np.float32)}

    def _tokens(self, inputs: Arrays) -> Arrays:
        ids = self._source[0].encode(tf.constant(inputs["sources"], tf.string))
        lengths = np.minimum(ids.row_lengths().numpy(), LONGEST).astype(np.int32)
        return {"source_tokens": lengths, "translation_tokens": self._options.limits(lengths)}

    def _translate(self, inputs: Arrays, hypotheses: int) -> Arrays:
        """Returns this many translations of each source, with scores; those that lack are empty."""
        sources, lengths = _encode(inputs["sources"], *self._source)
        prefixes = None
        if "prefixes" in inputs:
            prefixes, _ = _encode(inputs["prefixes"], *self._target)
        options = self._options
        longest = options.limits(np.minimum(lengths, LONGEST))
        found = self._translator.translate_batch(
            sources,
            prefixes,
            beam_size=options.beam_size,
            num_hypotheses=hypotheses,
            length_penalty=options.normalization_alpha,
            max_decoding_length=int(max(longest, default=1)),
            min_decoding_length=options.min_length,
            disable_unk=options.suppress_unknown,
            no_repeat_ngram_size=options.no_repeat_ngram or 0,
            max_input_length=0,
            return_scores=True,
            return_end_token=True,
        )
        shape = (len(sources), hypotheses)
        scores = np.zeros(shape, np.float32)
        cut = np.zeros(shape, bool)
        # CTranslate2 repeats the translation of an empty source.
        counts = np.where(lengths > 0, [len(each.hypotheses) for each in found], 1)
        end = self._target[1][END]
        rows: list[Sequence[str]] = []
        for i, (each, count) in enumerate(zip(found, counts, strict=True)):
            scores[i, :count] = np.subtract(0.0, each.scores[:count])
            cut[i, :count] = [bool(words) and words[-1] != end for words in each.hypotheses[:count]]
            rows += [*each.hypotheses[:count], *[[]] * (hypotheses - count)]
        return {
            "translations": self._decode(rows).reshape(shape),
            "scores": scores,
            "counts": counts.astype(np.int32),
            "source_cut": lengths > LONGEST,
            "translation_cut": cut,
        }

    def _decode(self, rows: list[Sequence[str]]) -> np.ndarray:
        ids = [list(map(self._target_ids.__getitem__, row)) for row in rows]
        words = tf.ragged.constant(ids, tf.int32, ragged_rank=1)
        words = tf.ragged.boolean_mask(words, words != END)
        return np.asarray(self._target[0].decode(words).numpy(), object)


def _encode(
    texts: np.ndarray, vocabulary: Vocabulary, names: np.ndarray
) -> tuple[list[list[str]], np.ndarray]:
    """Returns the tokens that are read of each text, and how many it has."""
    ids = vocabulary.encode(tf.constant(texts, tf.string))
    rows = [names[row].tolist() for row in ids[:, :LONGEST].to_list()]
    return rows, ids.row_lengths().numpy().astype(np.int32)
