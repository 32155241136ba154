"""Conversion of random models: whatever is folded, the outputs agree."""

import keras
import numpy as np
import pytest

from rmsnorm_tf import fold_layer_norm
from tests.folding import dense, fold, layers, norm
from tests.parameters import slow


def random_model(seed):
    """Returns a graph of random layers, most of which keep the width, with one to three outputs."""
    rng = np.random.default_rng(seed)
    x = keras.Input((4, 6), name="x")
    tensors = [dense("first", use_bias=bool(rng.integers(2)))(x)]

    def pick():
        return tensors[rng.integers(max(0, len(tensors) - 3), len(tensors))]

    def over_time(i):
        """A map or a norm that sees time as channels, as in an MLP-Mixer."""
        inner = (
            norm(f"time_norm_{i}", center=False)
            if rng.integers(2)
            else dense(f"time_dense_{i}", units=4)
        )
        swaps = [layers.Permute((2, 1), name=f"{way}_{i}") for way in ("there", "back")]
        return lambda t: swaps[1](inner(swaps[0](t)))

    shared = [dense("shared_dense"), norm("shared_norm")]
    makers = [
        lambda i: dense(f"dense_{i}")(pick()),
        lambda i: dense(f"relu_{i}", activation="relu")(pick()),
        lambda i: norm(f"norm_{i}")(pick()),
        lambda i: norm(f"norm_{i}")(dense(f"dense_{i}")(pick())),
        lambda i: norm(f"norm_{i}", scale=False, center=bool(rng.integers(2)))(pick()),
        lambda i: pick() + pick(),
        lambda i: layers.Add(name=f"sum_{i}")([pick(), pick()]),
        lambda i: layers.Dropout(rng.choice([0.0, 0.2]), name=f"dropout_{i}")(pick()),
        lambda i: layers.Identity(name=f"identity_{i}")(pick()),
        lambda i: layers.Conv1D(6, 2, padding="same", name=f"conv_{i}")(pick()),
        lambda i: layers.MultiHeadAttention(2, 2, name=f"attention_{i}")(pick(), pick()),
        lambda i: shared[rng.integers(2)](pick()),
        lambda i: over_time(i)(pick()),
    ]
    for i in range(rng.integers(4, 12)):
        tensors.append(makers[rng.integers(len(makers))](i))
    outputs = [norm(f"last_{i}")(pick()) for i in range(rng.integers(1, 3))]
    return keras.Model(x, outputs + ([pick()] if rng.integers(4) == 0 else []))


@pytest.mark.parametrize("seed", [*range(5), *slow(*range(5, 25))])
def test_random_models(seed, policy):
    fold(random_model(seed))


@pytest.mark.slow
def test_random_models_are_of_both_kinds():
    entries = [entry for seed in range(15) for entry in fold_layer_norm(random_model(seed)).entries]
    folded = sum(entry.converted for entry in entries)
    assert folded > 10
    assert len(entries) - folded > 10
