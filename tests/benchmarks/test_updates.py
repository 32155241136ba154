import numpy as np
import pytest

from benchmarks.updates import matmul_flops, middles, new_update, real_work, width
from nmt.text.batches import Batch


def test_each_batch_represents_the_same_number_of_updates(options):
    work = real_work(options, 10)
    assert [width(batch) for batch in work.batches] == [8] * 6 + [12] * 3 + [24]
    assert all(batch.source.shape == (2, width(batch)) for batch in work.batches)


def test_the_rarest_widths_are_left_out(options):
    assert [width(batch) for batch in real_work(options, 2).batches] == [8, 12]


def test_items_repeat_if_there_are_fewer_than_parts():
    assert middles("ab", 4) == ["a", "a", "b", "b"]


@pytest.mark.parametrize("tied", [False, True])
def test_flops_of_the_matrix_products(options, tied):
    work = real_work({**options, "tie_decoder_embeddings": tied}, 1)
    _, model = new_update(work, "none")
    rows, time, words, state, embedding = 2, 8, 22, 3, 4
    gru = 3 * state * (embedding + state)
    second_gru = 3 * state * (2 * state + state)
    attention = (state + 2 * state) * 2 * state
    output = (embedding + state + 2 * state + words) * embedding
    once = 2 * state * state  # the decoder's first state
    pairs = time * time * (2 * state + 2 * state)  # scores, and the weighted mean of the context
    products = time * (3 * gru + second_gru + attention + output) + once + pairs
    assert matmul_flops(model, work.batches[0]) == 3 * 2 * rows * products


@pytest.mark.parametrize("tied", [False, True])
def test_flops_of_a_transformer(options, tied):
    sizes = {"embedding_size": 4, "state_size": 4, "transformer_ffn_hidden_size": 6, "transformer_num_heads": 2}
    depths = {"transformer_enc_depth": 2, "transformer_dec_depth": 3}
    given = {**options, "model_type": "transformer", **sizes, **depths, "tie_decoder_embeddings": tied}
    _, model = new_update(real_work(given, 1), "none")
    rows, source_time, target_time, words, units, inner = 2, 5, 7, 22, 4, 6
    batch = Batch(*(np.zeros([rows, time]) for time in (source_time, source_time, target_time, target_time)))
    square, feed = units * units, 2 * units * inner
    encoder = source_time * (4 * square + feed) + source_time**2 * 2 * units  # attention: scores, then weighted values
    own = target_time * 4 * square + target_time**2 * 2 * units
    cross = (2 * target_time + 2 * source_time) * square + target_time * source_time * 2 * units
    products = 2 * encoder + 3 * (own + cross + target_time * feed) + target_time * units * words
    assert matmul_flops(model, batch) == 3 * 2 * rows * products
