"""Computes the signatures of an export with CTranslate2, from text to text."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

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
        self._vocabularies = Vocabularies(
            *(load_vocabulary(path / name, directory=path) for name in VOCABULARIES)
        )
        source, target = token_names(self._vocabularies)
        self._source_names = np.array(source, object)
        self._target_names = np.array(target, object)
        self._target_ids = {name: i for i, name in enumerate(target)}
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
        beam = [None, self._options.beam_size]
        beams = best | {
            "translations": tf.TensorSpec(beam, tf.string),
            "scores": tf.TensorSpec(beam, tf.float32),
            "counts": _COUNTS,
            "translation_cut": tf.TensorSpec(beam, tf.bool),
        }
        lengths = {"source_tokens": _COUNTS, "translation_tokens": _COUNTS}
        return {
            "serving_default": (sources, best, self._serve),
            "n_best": (sources, beams, self._n_best),
            "with_prefix": ({**sources, "prefixes": _TEXTS}, best, self._serve),
            "score": ({**sources, "targets": _TEXTS}, {"scores": _NUMBERS}, self._score),
            "tokens": (sources, lengths, self._tokens),
        }

    def _serve(self, inputs: Arrays) -> Arrays:
        found = self._translate(inputs, 1)
        del found["counts"]
        return {name: x if name == "source_cut" else x[:, 0] for name, x in found.items()}

    def _n_best(self, inputs: Arrays) -> Arrays:
        return self._translate(inputs, self._options.beam_size)

    def _score(self, inputs: Arrays) -> Arrays:
        sources = self._encode(inputs["sources"], self._vocabularies.source, self._source_names)
        targets = self._encode(inputs["targets"], self._vocabularies.target, self._target_names)
        lengths = np.array([max(map(len, pair)) for pair in zip(sources, targets, strict=True)])
        found = self._translator.score_batch(_cut(sources), _cut(targets))
        costs = [
            -sum(each.log_probs) / len(each.log_probs) ** self._options.normalization_alpha
            for each in found
        ]
        return {"scores": np.where(lengths > LONGEST, np.inf, costs).astype(np.float32)}

    def _tokens(self, inputs: Arrays) -> Arrays:
        ids = self._vocabularies.source.encode(tf.constant(inputs["sources"], tf.string))
        lengths = np.minimum(ids.row_lengths().numpy(), LONGEST).astype(np.int32)
        return {"source_tokens": lengths, "translation_tokens": self._options.limits(lengths)}

    def _translate(self, inputs: Arrays, hypotheses: int) -> Arrays:
        """Returns this many translations of each source, with scores; those that lack are empty."""
        sources = self._encode(inputs["sources"], self._vocabularies.source, self._source_names)
        lengths = np.array([len(tokens) for tokens in sources], np.int32)
        prefixes = None
        if "prefixes" in inputs:
            texts = inputs["prefixes"]
            prefixes = self._encode(texts, self._vocabularies.target, self._target_names)
        options = self._options
        longest = options.limits(np.minimum(lengths, LONGEST))
        found = self._translator.translate_batch(
            _cut(sources),
            prefixes and _cut(prefixes),
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
        end = self._target_names[END]
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

    def _encode(self, texts: np.ndarray, vocabulary: Vocabulary, names: np.ndarray) -> list:
        """Returns the tokens of each text."""
        ids = vocabulary.encode(tf.constant(texts, tf.string))
        return [names[row].tolist() for row in ids.to_list()]

    def _decode(self, rows: list[Sequence[str]]) -> np.ndarray:
        ids = [list(map(self._target_ids.__getitem__, row)) for row in rows]
        words = tf.ragged.constant(ids, tf.int32, ragged_rank=1)
        words = tf.ragged.boolean_mask(words, words != END)
        return np.asarray(self._vocabularies.target.decode(words).numpy(), object)


def _cut(rows: list[Any]) -> list[Any]:
    """Returns what is read of each row."""
    return [row[:LONGEST] for row in rows]
