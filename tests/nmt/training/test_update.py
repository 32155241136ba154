"""One update: its results, its precision, and a loss or gradient that is not finite."""

import json
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from nmt.config import Config, make_config
from nmt.model.registry import build_model
from nmt.text.batches import Batch
from nmt.training.update import Update, clip_mean, sum_gradients
from tests.nmt.bigrams import Bigrams
from tests.nmt.pairs import encode_pairs
from tests.nmt.training.scripted import BATCH, FILES, TRANSFORMER
from tests.parameters import slow


def test_returns_loss_tokens_and_norm(make_update, bigrams):
    update, model = make_update(model_type="bigrams")
    expected = float(tf.reduce_sum(model.costs(*BATCH)))
    loss, tokens, norm = update(BATCH, 1)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert tokens == 7
    assert norm > 0


@pytest.mark.slow
@pytest.mark.parametrize("options", [TRANSFORMER, {}], ids=["transformer", "rnn"])
def test_bfloat16_changes_only_the_products(make_update, options):
    """Factors keep eight bits; weights stay float32."""
    results = {}
    for dtype in ("float32", "mixed_bfloat16"):
        update, model = make_update(dtype=dtype, learning_rate=0.01, **options)
        results[dtype] = [update(BATCH, number)[0] for number in range(1, 6)]
        assert all(variable.dtype == "float32" for variable in model.variables)
    np.testing.assert_allclose(results["mixed_bfloat16"], results["float32"], rtol=0.01)
    assert results["mixed_bfloat16"] != results["float32"]
    assert results["float32"][-1] < results["float32"][0]


PROGRAMS = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from nmt.load_tensorflow import load_tensorflow
tf = load_tensorflow()
import numpy as np
from nmt.config import make_config
from nmt.model.registry import build_model
from nmt.text.batches import Batch
from nmt.training.update import Update

config = make_config(json.loads(sys.argv[2]))
update = Update(build_model(config, 6, 6), config)
# A first program, which shows that the cache is in use.
tf.function(lambda x: x + 1, jit_compile=True)(tf.ones([]))
found = []
for number, width in enumerate((2, 4, 2), 1):
    ids, mask = np.full([3, width], 2, "int32"), np.ones([3, width], "float32")
    update(Batch(ids, mask, ids, mask), number)
    found.append(len(list(Path(sys.argv[3]).rglob("*.pb"))))
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "dtype", "programs"),
    [
        (TRANSFORMER, "float32", 1),  # the gradients
        (TRANSFORMER, "mixed_bfloat16", 0),
        ({}, "mixed_bfloat16", 6),  # three recurrences, forwards and backwards
    ],
    ids=["float32", "transformer", "rnn"],
)
def test_xla_compiles_all_gradients_in_float32_and_else_the_loops_of_the_rnn(
    run_python, tmp_path, options, dtype, programs
):
    """Counts the programs in the cache after two widths and one of them again."""
    given = json.dumps(
        {**FILES, "dictionaries": ["-", "-"], "state_size": 7, "dtype": dtype, **options}
    )
    flags = f"--tf_xla_persistent_cache_directory={tmp_path}"
    done = run_python(PROGRAMS, Path(__file__).parents[3], given, tmp_path, TF_XLA_FLAGS=flags)
    assert json.loads(done.stdout) == [1 + programs, 1 + 2 * programs, 1 + 2 * programs], (
        done.stderr
    )


TRACED_EARLY = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from nmt.load_tensorflow import load_tensorflow
tf = load_tensorflow()
from nmt.config import Config
from nmt.training.update import Update
from tests.nmt.bigrams import Bigrams
from tests.nmt.training.scripted import BATCH

update = Update(Bigrams(Config(), 6, 6), Config())
update.trace()
for _ in range(int(sys.argv[2])):  # a checkpoint, or other texts
    tf.function(lambda x: x + 1)(tf.ones([]))
update(BATCH, 1)
print(len(list(Path(sys.argv[3]).rglob("*.pb"))))
"""


@pytest.mark.slow
def test_what_happens_after_the_trace_compiles_nothing_again(run_python, tmp_path):
    flags = f"--tf_xla_persistent_cache_directory={tmp_path}"
    for others in (0, 3):
        done = run_python(
            TRACED_EARLY, Path(__file__).parents[3], others, tmp_path, TF_XLA_FLAGS=flags
        )
        assert done.stdout == "1\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("options", [TRANSFORMER, {}], ids=["transformer", "rnn"])
def test_an_update_in_bfloat16_gives_the_same_when_it_is_repeated(make_update, options):
    """So a resumed run equals an uninterrupted one.

    The products are large enough for several threads.
    """
    sizes = {"state_size": 256, "embedding_size": 256}
    update, _ = make_update(dtype="mixed_bfloat16", **{**options, **sizes})
    large = Batch(*(tf.repeat(x, 40, axis=0) for x in BATCH))
    update(Batch(*(x[:, :2] for x in large)), 1)
    before = [variable.numpy() for variable in update.variables]
    found = []
    for _ in range(3):
        for variable, value in zip(update.variables, before, strict=True):
            variable.assign(value)
        returned = update(large, 1)
        found.append([*returned, *(variable.numpy() for variable in update.variables)])
    for again in found[1:]:
        assert all(map(np.array_equal, found[0], again))


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_an_update_is_traced_once_for_all_widths(make_update, bigrams, monkeypatch, dtype):
    update, model = make_update(model_type="bigrams", dtype=dtype)
    calls = []
    total_cost = model.total_cost
    monkeypatch.setattr(
        model,
        "total_cost",
        lambda *pairs, **options: calls.append(1) or total_cost(*pairs, **options),
    )
    for width in (2, 4, 2):
        update(Batch(*(x[:, :width] for x in BATCH)), 1)
    assert len(calls) == 1


@pytest.mark.parametrize("loss", ["per-token-cross-entropy", *slow("cross-entropy")])
@pytest.mark.parametrize("norm", ["occurrences", *slow("words")])
def test_the_parts_of_a_batch_give_the_update_of_the_whole(make_bigrams_update, norm, loss):
    """Up to rounding, where clipping is active and the last of the parts is filled up."""
    batch = Batch(*(tf.repeat(x, 2, 0) for x in BATCH))
    found = {}
    for steps in (1, 3):
        options = {"clip_counts": norm, "loss_function": loss, "clip_c": 0.01}
        update, _ = make_bigrams_update(**options, gradient_aggregation_steps=steps)
        found[steps] = [
            *update(batch, 1),
            *update(batch, 2),
            *(each.numpy().copy() for each in update.variables),
        ]
    assert found[1][2] > 0.01
    for whole, parts in zip(found[1], found[3], strict=True):
        np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("norm", ["occurrences", *slow("words")])
def test_a_limit_of_0_clips_nothing(make_bigrams_update, norm):
    found = {}
    for limit in (0.0, 1e6, 0.01):
        update, model = make_bigrams_update(clip_c=limit, clip_counts=norm)
        found[limit] = [update(BATCH, 1)[2], update(BATCH, 2)[0], model.table.numpy()]
    for unclipped, off in zip(found[1e6], found[0.0], strict=True):
        np.testing.assert_allclose(off, unclipped, rtol=1e-6)
    assert found[0.0][0] > 0.01


@pytest.mark.slow
def test_the_clipped_norm_counts_occurrences_or_words(make_bigrams_update):
    """Of two occurrences of a word, Nematus v0.3 counts two rows, and master their sum."""
    norms = {
        norm: make_bigrams_update(clip_counts=norm)[0](BATCH, 1)[2]
        for norm in ("occurrences", "words")
    }
    _, model = make_bigrams_update()
    with tf.GradientTape() as tape:
        cost = tf.reduce_mean(model.costs(*BATCH))
    gradient = tape.gradient(cost, model.table.value)
    assert norms["words"] == pytest.approx(float(tf.norm(tf.convert_to_tensor(gradient))), rel=1e-5)
    assert norms["occurrences"] == pytest.approx(float(tf.norm(gradient.values)), rel=1e-5)
    assert abs(norms["words"] / norms["occurrences"] - 1) > 1e-3


@pytest.mark.parametrize(("loss", "count"), [("cross-entropy", 2), ("per-token-cross-entropy", 7)])
def test_the_gradient_is_that_of_the_mean_cost_of_a_sentence_or_of_a_token(
    make_bigrams_update, loss, count
):
    """With the table at zero, each of 7 tokens adds 1/6 to the gradient of its row's six logits,
    less 1 to its own."""
    gradient = np.zeros([6, 6])
    for before, word in [(0, 2), (2, 3), (3, 4), (4, 0), (0, 5), (5, 2), (2, 0)]:
        gradient[before] += 1 / 6
        gradient[before, word] -= 1
    update, _ = make_bigrams_update(loss_function=loss, clip_counts="words", clip_c=100.0)
    assert update(BATCH, 1)[2] == pytest.approx(np.linalg.norm(gradient) / count, rel=1e-5)


def test_per_token_the_norm_of_a_gradient_hardly_depends_on_the_width_of_a_batch():
    """Batches of 1,024 tokens; a wider one has fewer sentences, and each has more words."""
    keras.utils.set_random_seed(1)
    options = {**TRANSFORMER, "layer_normalization_type": "layernorm"}
    config = make_config({**FILES, "dictionaries": ["-", "-"], **options})
    model = build_model(config, 50, 50)
    norms = {"cross-entropy": [], "per-token-cross-entropy": []}
    for width in (8, 32, 128):
        ids = tf.random.stateless_uniform([1024 // width, width], [1, width], 2, 50, tf.int32)
        sums = sum_gradients(
            model, Batch(ids, tf.ones(ids.shape), ids, tf.ones(ids.shape)), 0.1, None
        )
        for loss, found in norms.items():
            found.append(float(clip_mean(sums, replace(config, loss_function=loss))[1]))
    sentence, token = norms.values()
    assert max(token) < 1.3 * min(token)
    assert sentence[2] > 10 * sentence[0]


def test_smoothed_weights_follow_the_weights(make_bigrams_update):
    """The share of the newest is 9 / (t + 9) at first, then the option's."""
    update, model = make_bigrams_update(exponential_smoothing=0.8)
    average = model.table.numpy().copy()
    newest = []
    for number, share in enumerate((0.9, 9 / 11, 0.8), 1):
        update(BATCH, number)
        newest.append(model.table.numpy().copy())
        average = (1 - share) * average + share * newest[-1]
    with update.smoothed.swapped():
        np.testing.assert_allclose(model.table, average, rtol=1e-5)
    np.testing.assert_array_equal(model.table, newest[-1])
    assert np.abs(average - newest[-1]).max() > 1e-3


def infinite_gradient(cost, weight):
    """Adds the square root of zero."""
    return cost + tf.sqrt(tf.reduce_sum(weight) * 0.0)


BROKEN = [
    lambda cost, weight: cost * np.nan,
    lambda cost, weight: cost * np.inf,
    infinite_gradient,
    lambda cost, weight: cost,  # in order
]


def test_a_loss_or_a_gradient_that_is_not_finite_changes_nothing(vocabulary):
    """Weights, moments and Adam's count of updates stay the same."""
    model = Bigrams(Config(), 6, 6)
    total_cost = model.total_cost
    weight = model.trainable_variables[0]

    def broken_cost(*batch, dropout_seed, **options):
        right = total_cost(*batch, dropout_seed=dropout_seed, **options)
        return tf.switch_case(
            dropout_seed[1],
            [lambda change=change: change(right, weight) for change in BROKEN],
        )

    model.total_cost = broken_cost
    update = Update(model, Config())
    before = [variable.numpy() for variable in update.variables]
    batch = encode_pairs([(b"a b", b"c"), (b"d", b"d a")], vocabulary, vocabulary)
    for number in range(len(BROKEN)):
        loss, tokens, norm = update(batch, number)
        in_order = number == len(BROKEN) - 1
        assert tokens == 2 + 3
        assert np.isfinite([loss, norm]).all() == in_order
        assert all(map(np.array_equal, before, update.variables)) != in_order


def test_each_part_of_each_update_has_a_dropout_of_its_own(make_bigrams_update):
    """The cost of a part is a power of two, so the gradient has a bit for the seed of each."""
    update, model = make_bigrams_update(gradient_aggregation_steps=3)

    def total_cost(*_, dropout_seed, **__):
        return tf.reduce_sum(model.table.value) * 2.0 ** tf.cast(dropout_seed[1], tf.float32)

    model.total_cost = total_cost
    first, second = (int(update.gradients(BATCH, number).gradients[0][0, 0]) for number in (1, 2))
    assert (first.bit_count(), second.bit_count(), first & second) == (3, 3, 0)
