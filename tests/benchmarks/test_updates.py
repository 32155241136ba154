import json

import pytest

from benchmarks.updates import matmul_flops, middles, new_update, real_work, width

WORDS = [f"w{number}" for number in range(20)]
OPTIONS = {"maxlen": 30, "batch_size": 2, "embedding_size": 4, "state_size": 3}


@pytest.fixture
def options(tmp_path):
    """Of a training on 60 sentences of 2 words, 30 of 9 and 10 of 20, on both sides."""
    text = "".join(
        f"{' '.join(WORDS[:length])}\n" for length, count in [(2, 60), (9, 30), (20, 10)] for _ in range(count)
    )
    (tmp_path / "text").write_text(text)
    (tmp_path / "words.json").write_text(json.dumps({word: i for i, word in enumerate(["<EOS>", "<UNK>", *WORDS])}))
    sides = ("source_dataset", "target_dataset", "valid_source_dataset", "valid_target_dataset")
    dictionaries = [str(tmp_path / "words.json")] * 2
    return {**dict.fromkeys(sides, str(tmp_path / "text")), "dictionaries": dictionaries, **OPTIONS}


def test_each_real_batch_stands_for_as_many_updates(options):
    work = real_work(options, 10)
    assert [width(batch) for batch in work.batches] == [8] * 6 + [12] * 3 + [24]
    assert work.mean_width == pytest.approx((60 * 8 + 30 * 12 + 10 * 24) / 100)
    assert all(batch.source.shape == (2, width(batch)) for batch in work.batches)


def test_the_rarest_widths_are_left_out(options):
    assert [width(batch) for batch in real_work(options, 2).batches] == [8, 12]


def test_more_middles_than_items_repeat_them():
    assert middles("ab", 4) == ["a", "a", "b", "b"]


@pytest.mark.parametrize("tied", [False, True])
def test_products_of_the_output_are_counted_whether_it_is_tied_or_not(options, tied):
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
