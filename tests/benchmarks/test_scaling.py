"""The estimate of many GPUs: its sizes are those of the real models, and the page shows what the script prints."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.scaling import (
    Assumptions,
    Case,
    most_gpus_for_rows,
    rnn_sizes,
    transformer_size,
    update_time,
)
from nmt.config import make_config
from nmt.model.registry import build_model

ROOT = Path(__file__).parents[2]
FILES = dict.fromkeys(("source_dataset", "target_dataset", "valid_source_dataset", "valid_target_dataset"), "-")


def weights(words, **options):
    """Returns the number of weights of a real model, and of those in its embeddings."""
    model = build_model(make_config({**FILES, "dictionaries": ["-", "-"], **options}), words, words)
    sizes = {variable.path: variable.numpy().size for variable in model.trainable_variables}
    return sum(sizes.values()), sum(size for path, size in sizes.items() if path.endswith("embedding/embeddings"))


def test_the_tables_of_the_page_are_those_of_the_script():
    script = ROOT / "benchmarks" / "scaling.py"
    printed = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    page = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    parts = printed.strip().split("\n\n")
    assert len(parts) == 4
    for part in parts:
        assert part in page


def test_sizes_of_the_rnn():
    others, embeddings = rnn_sizes(11, 5, 7)
    assert (others + embeddings, embeddings) == weights(11, embedding_size=5, state_size=7)


def test_size_of_a_transformer():
    sizes = {"embedding_size": 8, "state_size": 8, "transformer_ffn_hidden_size": 9, "transformer_num_heads": 2}
    depths = {"transformer_enc_depth": 2, "transformer_dec_depth": 2}
    tied = {"tie_decoder_embeddings": True, "tie_encoder_decoder_embeddings": True}
    given = {"model_type": "transformer", "layer_normalization_type": "none", **sizes, **depths, **tied}
    found, _ = weights(11, **given)
    assert transformer_size(11, 8, 9, 2) == found


def test_rows_are_fewer_bytes_until_the_batch_has_twice_the_tokens_of_the_vocabulary():
    rows, words, units = 10, 100, 8
    most = most_gpus_for_rows(rows, words, units)
    sent = [
        ((gpus - 1) * rows * (4 * units + 4), 2 * (gpus - 1) / gpus * words * 4 * units) for gpus in (most, most + 1)
    ]
    assert sent[0][0] < sent[0][1]
    assert sent[1][0] >= sent[1][1]


@pytest.mark.parametrize(
    ("gpus", "gbits", "expected"),
    [
        (1, 8, (1.0, 0.0, 0.0, 0.0)),
        (2, 8, (1.0, 5e-9, 2.5e-9, 3e-6)),  # by NVLink, 2e9 * 0.5 bytes/s
        (16, 8, (1.0, 2 * 15 / 16 * 5 / 5e8, 15 * 2.5 / 5e8, 45 * 10e-6)),  # by the network, 1e9 * 0.5 bytes/s
        (16, 800, (1.0, 2 * 15 / 16 * 5 / 1e9, 15 * 2.5 / 1e9, 45 * 10e-6)),  # NVLink is the slower
    ],
)
def test_time_of_an_update(gpus, gbits, expected):
    given = Assumptions(nvlink=2.0, reached=0.5, latency=10.0, inside_latency=1.0)
    assert update_time(Case("", 1.0, 5, 2.5), gpus, gbits, given) == pytest.approx(expected)


def test_the_bound_is_the_largest_part():
    given = Assumptions(reached=1.0, latency=0.0)
    for seconds, rows, bound in ((1.0, 0, "compute"), (0.1, 0, "dense"), (0.1, 10**9, "rows")):
        time = update_time(Case("", seconds, 5 * 10**8, rows), 64, 8, given)
        assert time.bound == bound
    assert time.speed(64) == pytest.approx(64 * 0.1 / sum(time))
