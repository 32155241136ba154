"""Small models with random weights, and strings to translate with their exports."""

import random

import numpy as np
import pytest
import tensorflow as tf

from nmt.config import Config
from nmt.decoding.options import DecodingOptions
from nmt.decoding.translator import Translator
from nmt.model.registry import build_model
from nmt.serving.saved_model import save_signatures
from nmt.serving.signatures import Signatures
from nmt.text.batches import LONGEST

SOURCE = [
    "Größe, so viel wie möglich!",
    "Das ist ein Haus.",
    "Ein Haus ist das?",
    "viel Haus, 42 Wege",
    "שלום 世界",
]
TARGET = []
for i in range(20):
    TARGET.append("".join(chr(0x430 + (i * i + j) % 32) for j in range(i + 3)) + " дом жук щи")


ARCHITECTURES = {
    "rnn": {},
    "transformer": {
        "transformer_ffn_hidden_size": 12,
        "transformer_num_heads": 2,
        "transformer_enc_depth": 2,
        "transformer_dec_depth": 2,
    },
}


def make_model(vocabularies, kind, architecture="rnn"):
    """Makes a model with random weights, large enough that translations differ.

    The same at every call.
    """
    sizes = {"embedding_size": 8, "state_size": 8, **ARCHITECTURES[architecture]}
    config = Config(model_type=architecture, layer_normalization_type=kind, **sizes)
    model = build_model(config, *(vocabulary.size for vocabulary in vocabularies))
    rng = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(rng.normal(0.0, 1.0, size=weight.shape))
    return model


def make_signatures(vocabularies, kind, architecture="rnn"):
    model = make_model(vocabularies, kind, architecture)
    translator = Translator(
        vocabularies, model, DecodingOptions(beam_size=2, translation_maxlen=10)
    )
    return Signatures(vocabularies, model, translator)


def save(signatures, path):
    assert save_signatures(signatures, path, {"name": "test"}, signatures.sentences((3, 5)))
    return path


def models(*quick):
    """Runs a test on these models and, as a slow test, on the others."""
    params = [
        name if name in quick else pytest.param(name, marks=pytest.mark.slow)
        for name in ARCHITECTURES
    ]
    return pytest.mark.parametrize("signatures", params, indirect=True, scope="module")


def strange_strings(count, seed=1):
    """Draws strings of all kinds, some of them twice."""
    draw = random.Random(seed)
    letters = [
        "abcdefgh Größe,!",
        "👍🏽👩‍👩‍👧 ",
        "שלום\u200f\u202e ",
        "\0\r\n\t\x7f\u2028",
        "日本語ﷺｱ",
        " ",
        "".join(SOURCE),
    ]

    def one():
        kind = draw.random()
        if kind < 0.1:
            return draw.randbytes(draw.randrange(40))  # rarely UTF-8
        if kind < 0.15:
            return b""
        if kind < 0.16:
            return "".join(draw.choices(draw.choice(letters), k=LONGEST)).encode()
        return "".join(draw.choices(draw.choice(letters), k=draw.randrange(40))).encode()

    strings = [one() for _ in range(count * 9 // 10)]
    strings += [
        *draw.choices(strings, k=count - len(strings) - 2),
        b"a" * 100_000,
        "ß ".encode() * 50_000,
    ]
    return draw.sample(strings, len(strings))


def in_batches(strings, size):
    return [strings[start : start + size] for start in range(0, len(strings), size)]


def best(signatures, strings):
    return signatures.serve(tf.constant(strings, tf.string))["translations"].numpy().tolist()
