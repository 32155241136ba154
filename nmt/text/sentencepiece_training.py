"""Trains SentencePiece models on texts of any size."""

import collections
import io
import os
import re
from collections.abc import Sequence

import sentencepiece

from ..errors import UserError
from .lines import count_lines, read_lines, spread
from .parallel_text import Files, all_shards, as_list
from .vocabulary import END


def train_sentencepiece(
    texts: str | os.PathLike | Sequence[Files],
    size: int,
    *,
    kind: str = "bpe",
    sample_lines: int | None = None,
    character_coverage: float = 1.0,
    byte_fallback: bool = False,
    user_symbols: Sequence[str] = (),
    normalization_rule: str = "nmt_nfkc",
    split_digits: bool = False,
    begin_symbol: bool = False,
) -> bytes:
    """Returns a SentencePiece model of texts, each one or several files.

    The options are those of `vocab`.
    """
    units = {"<unk>", "</s>", *(["<s>"] if begin_symbol else [])}
    units |= {f"<0x{i:02X}>" for i in range(256)} if byte_fallback else set()
    for symbol in user_symbols:
        if not symbol or any(map(str.isspace, symbol)) or list(user_symbols).count(symbol) > 1:
            raise UserError(
                f"--user_symbols has {symbol!r}; each must be given once and have no white space"
            )
        if symbol in units:
            raise UserError(
                f"--user_symbols has {symbol}, which the vocabulary has anyway; leave it out"
            )
    texts = [all_shards(text) for text in as_list(texts)]
    counts = [sum(map(count_lines, paths)) for paths in texts]
    for paths, count in zip(texts, counts, strict=True):
        if not count:
            raise UserError(f"the text {' and '.join(map(str, paths))} is empty")
    samples = (
        spread(read_lines(*paths), *each, sample_lines)
        for paths, *each in zip(texts, counts, strict=True)
    )
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(line.decode() for sample in samples for line in sample),
            model_writer=model,
            vocab_size=size,
            model_type=kind,
            character_coverage=character_coverage,
            byte_fallback=byte_fallback,
            user_defined_symbols=list(user_symbols),
            normalization_rule_name=normalization_rule,
            split_digits=split_digits,
            max_sentence_length=2**30,  # by default it skips lines of more than 4192 bytes
            eos_id=END,
            unk_id=2 if begin_symbol else 1,
            bos_id=1 if begin_symbol else -1,
            pad_id=-1,
            minloglevel=2,
        )
    except RuntimeError as error:
        names = " and ".join(str(path) for paths in texts for path in paths)
        raise UserError(
            f"cannot make a vocabulary of {size} units from {names}: {_explain(str(error))}"
        ) from None
    return model.getvalue()


def changed_characters(text: Files, rule: str, sample_lines: int | None = None) -> dict[str, int]:
    """Returns how often a text, or its sample, has each character that a normalization rule
    changes, the most frequent first.
    """
    if rule == "identity":  # SentencePiece would print a message about it
        return {}
    paths = all_shards(text)
    found: collections.Counter[str] = collections.Counter()
    for line in spread(read_lines(*paths), sum(map(count_lines, paths)), sample_lines):
        found.update(line.decode())
    normalizer = sentencepiece.SentencePieceNormalizer(
        rule_name=rule,
        add_dummy_prefix=False,
        escape_whitespaces=False,
        remove_extra_whitespaces=False,
    )
    return {each: n for each, n in found.most_common() if normalizer.normalize(each) != each}


def _explain(error: str) -> str:
    """Returns the cause of a SentencePiece error, and what to do."""
    if found := re.search(r"required_chars\. \d+ vs (\d+)", error):
        least = f"give a --size of at least {found[1]}"
        return f"characters, bytes (if any) and symbols need {found[1]}; {least}"
    if found := re.search(r"too high .* <= (\d+)", error):
        return f"the words yield only {found[1]}; give a --size of at most {found[1]}"
    if "sentences_.empty()" in error or "all_chars_count" in error:
        return "there are no words; give a text with words"
    return error.splitlines()[-1]
