"""Splits lines into subword units at random: BPE-dropout, and sampling from a unigram model.

The random numbers of SentencePiece differ from process to process, also with the same seed, so a
resumed training would not see the same text. This module draws by itself. It does not import
TensorFlow, which would delay the processes that draw.
"""

import functools
import heapq
import itertools
import math
import random
import re
from collections.abc import Callable, Sequence

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

VERSION = 3  # of what is drawn: lengths in the cache are of one version
_SPACE = "\u2581"
_DRAWS = 64  # segmentations of a word; each occurrence takes one of them at random
_REMEMBERED = 2**18  # segmentations in memory
_UNKNOWN_PENALTY = 10.0  # of SentencePiece, below the least score
_PIECE = sentencepiece_model_pb2.ModelProto.SentencePiece


class SubwordSampler:
    """Draws segmentations with a SentencePiece model, of which it gets the content of the file."""

    def __init__(self, model: bytes):
        self._processor = sentencepiece.SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(model)
        proto = sentencepiece_model_pb2.ModelProto.FromString(model)
        units = [
            (i, each)
            for i, each in enumerate(proto.pieces)
            if each.type in (_PIECE.NORMAL, _PIECE.USER_DEFINED)
        ]
        self._ids = {each.piece: i for i, each in units}
        self._scores = {each.piece: each.score for _, each in units if each.type == _PIECE.NORMAL}
        self._least = min(self._scores.values())
        self._bytes = [self._processor.piece_to_id(f"<0x{i:02X}>") for i in range(256)]
        self._falls_back = proto.trainer_spec.byte_fallback
        self._fixed = {each.piece for _, each in units if each.type == _PIECE.USER_DEFINED}
        fixed = map(re.escape, sorted(self._fixed, key=len, reverse=True))
        self._symbols = re.compile("|".join([*fixed, "."]), re.DOTALL)
        self._longest = max(map(len, self._ids))
        # A unit never joins two words, unless the model was trained otherwise.
        self._words = (
            re.compile(f"(?={_SPACE})")
            if not any(_SPACE in each[1:] for each in self._ids)
            else None
        )
        is_bpe = proto.trainer_spec.model_type == proto.trainer_spec.BPE
        self._draw: Callable[[str, float, random.Random], list[str]] = (
            self._sample_merges if is_bpe else self._sample_between_fixed
        )
        self._word = functools.lru_cache(_REMEMBERED)(self._ids_of_word)

    def __call__(
        self, lines: list[bytes], alpha: float, seed: Sequence[int], longest: int
    ) -> list[np.ndarray]:
        """Returns ids for each line; see `SentencePieceVocabulary.sample`."""
        generator = np.random.default_rng(list(seed))
        unknown = self._processor.unk_id()
        rows = []
        for line in lines:
            text = self._processor.normalize(line.decode(errors="replace"))
            words = [word for word in (self._words.split(text) if self._words else [text]) if word]
            draws = generator.integers(_DRAWS, size=len(words)).tolist()
            found = [self._word(word, draw, alpha) for word, draw in zip(words, draws, strict=True)]
            ids = list(itertools.chain.from_iterable(found))
            # One of several unknown units in a row, as in SentencePiece.
            pairs = zip(ids, [None, *ids], strict=False)
            ids = [i for i, before in pairs if not i == before == unknown]
            rows.append(
                np.array(ids if len(ids) <= longest else self._processor.encode(line), np.int32)
            )
        return rows

    def _ids_of_word(self, word: str, draw: int, alpha: float) -> tuple[int, ...]:
        units = self._draw(word, alpha, random.Random(f"{draw} {alpha} {word}"))
        return tuple(itertools.chain.from_iterable(map(self._ids_of_unit, units)))

    def _ids_of_unit(self, unit: str) -> list[int]:
        if unit in self._ids:
            return [self._ids[unit]]
        if self._falls_back:
            return [self._bytes[i] for i in unit.encode()]
        return [self._processor.unk_id()]

    def _sample_merges(self, word: str, alpha: float, generator: random.Random) -> list[str]:
        """Merges symbols, the best score first, each skipped with probability `alpha`.

        Reference: arXiv:1910.13267.
        """
        symbols = self._symbols.findall(word)
        after = list(range(1, len(symbols) + 1))
        before = list(range(-1, len(symbols) - 1))
        agenda: list[tuple[float, int, int, str]] = []

        def propose(left: int, right: int) -> None:
            if (
                left >= 0
                and right < len(symbols)
                and not {symbols[left], symbols[right]} & self._fixed
            ):
                joined = symbols[left] + symbols[right]
                if joined in self._scores:
                    heapq.heappush(agenda, (-self._scores[joined], left, right, joined))

        for left in range(len(symbols) - 1):
            propose(left, left + 1)
        while agenda:
            _, left, right, joined = heapq.heappop(agenda)
            if (
                not symbols[left]
                or symbols[left] + symbols[right] != joined
                or generator.random() < alpha
            ):
                continue
            symbols[left] = joined
            symbols[right] = ""
            after[left] = after[right]
            if after[left] < len(symbols):
                before[after[left]] = left
            propose(before[left], left)
            propose(left, after[left])
        return [symbol for symbol in symbols if symbol]

    def _sample_between_fixed(self, word: str, alpha: float, generator: random.Random) -> list[str]:
        """Draws a segmentation of what is between symbols that are never split."""
        units: list[str] = []
        for fixed, group in itertools.groupby(
            self._symbols.findall(word), self._fixed.__contains__
        ):
            symbols = list(group)
            units += symbols if fixed else self._sample_unigrams("".join(symbols), alpha, generator)
        return units

    def _sample_unigrams(self, word: str, alpha: float, generator: random.Random) -> list[str]:
        """Draws a segmentation with a probability in proportion to the power `alpha` of that of the
        unigram model.

        Sums the probabilities of all beginnings of the word, then draws units from its end on.

        Reference: Kudo (2018), arXiv:1804.10959, section 3.3.
        """
        sums = [0.0]  # logarithms, of the beginnings of the word
        ending: list[list[tuple[float, int]]] = [[]]
        for end in range(1, len(word) + 1):
            starts = range(max(0, end - self._longest), end)
            found = [(start, self._scores.get(word[start:end])) for start in starts]
            if found[-1][1] is None:
                found[-1] = (end - 1, self._least - _UNKNOWN_PENALTY)
            ending.append(
                [
                    (sums[start] + alpha * score, start)
                    for start, score in found
                    if score is not None
                ]
            )
            largest = max(ending[-1])[0]
            sums.append(largest + math.log(sum(math.exp(each - largest) for each, _ in ending[-1])))
        units = []
        end = len(word)
        while end:
            weights = [math.exp(each - sums[end]) for each, _ in ending[end]]
            _, start = generator.choices(ending[end], weights)[0]
            units.append(word[start:end])
            end = start
        return units[::-1]
