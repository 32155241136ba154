"""The tables that are made of the logs of benchmarks."""

from benchmarks import tables

HALF = {"before": [0.002, 0.004, 0.008], "after": [0.001, 0.002, 0.008]}  # ratios 1/2, 1/2 and 1


def test_recurrent_layers_are_compared_with_keras_and_with_layernorm():
    """RMSNorm adds 1 s and LayerNorm 4 s to a GRU that takes half of Keras's time."""
    seconds = {"keras GRU": [4.0, 8.0], "none": [2.0, 4.0], "layer": [6.0, 8.0], "rms": [3.0, 5.0]}
    ((_, _, none, layer, rms, partial),) = tables.recurrent(
        {"figures": {"graph": {**seconds, "partial rms": seconds["none"]}}}
    )
    assert none == "| `normalization=None` | 0.50 |"
    assert layer == '| `"layer"` | 1.25 / 1.00 |'
    assert rms == '| `"rms"` | 0.69 / 0.25 |'
    assert partial == '| `"rms"`, partial | 0.50 / 0.00 |'


def test_folded_and_replaced_models_have_a_table_each():
    one = {"converts": "fold_layer_norm", "converted": 7, "left": 3}
    two = {"converts": "replace_rms_norm", "converted": 9, "left": 0}
    rest = {"difference": 1.5e-6, "seconds": HALF}
    folded, replaced = tables.fold({"figures": {"A": {**one, **rest}, "B": {**two, **rest}}})
    assert folded[2:] == ["| A | 7 | 3 | 4.0 | 2.0 | 0.50 | 1.5e-06 |"]
    assert replaced[2:] == ["| B | 9 | 0 | 4.0 | 2.0 | 0.50 | 1.5e-06 |"]


def test_columns_without_figures_are_left_out_of_the_table_of_updates():
    entry = {"rounds": [0.4, 0.5, 0.6], "share": 0.75, "mib": None}
    none = {**entry, "rounds": [0.4] * 3}
    (lines,) = tables.training({"updates": {"mixed_bfloat16": {"none": none, "rmsnorm": entry}}})
    assert lines[0] == "|  | seconds | over none | share of the product's rate |"
    assert lines[2:] == [
        "| none, bfloat16 | 0.400 | 1.000 ± 0.000 | 0.75 |",
        "| rmsnorm, bfloat16 | 0.500 | 1.250 ± 0.125 | 0.75 |",
    ]
    (lines,) = tables.training(
        {"updates": {"float32": {"l2norm": {**entry, "mib": 2000.0, "mib_start": 500.0}}}}
    )
    assert lines[2:] == ["| l2norm, float32 | 0.500 | 0.75 | 2,000 (500) |"]


def cell(mode):
    seconds = {tables.OURS: [0.5, 1.0, 3.0], tables.KERAS: [2.0] * 3, tables.LAYERNORM: [4.0] * 3}
    return {
        "shape": [8, 16],
        "dtype": "float32",
        "mode": mode,
        "passes": "forward",
        "seconds": seconds,
    }


def test_the_layer_is_compared_with_keras():
    (norm,) = tables.layer({"figures": [cell("eager"), cell("xla")]})
    assert norm == [
        "| float32 | eager, forward | XLA, forward |",
        "| --- | --- | --- |",
        "| [8, 16] | 0.50 / 2.00 | 0.50 / 2.00 |",
    ]


MODEL = {"model_type": "rnn", "state_size": 128, "layer_normalization_type": "rmsnorm"}


def test_the_speed_of_translation_is_compared_with_that_of_nematus():
    figures = {
        "speeds": {"ours": [8.0, 12.0, 10.0], "Nematus": [4.0, 3.0, 2.0]},
        "latency": {"ours": [0.25, 0.5, 0.1]},
    }
    (lines,) = tables.decoding({"figures": figures, "options": MODEL})
    assert lines[0] == "| RNN of 128, rmsnorm | sentences/s | over Nematus | one sentence, ms |"
    assert lines[2:] == [
        "| `python -m nmt translate` | 10 | 4.00 | 250 |",
        "| Nematus, `translate.py` | 3 | 1.00 |  |",
    ]


def test_the_translations_and_the_speed_of_ctranslate2_are_compared_with_ours():
    speeds = {"ours": [8.0, 12.0], "CTranslate2": [16.0, 18.0]}
    texts = {"ours": {"equal": 4, "bleu": 37.5}, "CTranslate2": {"equal": 3, "bleu": 37.25}}
    (lines,) = tables.decoding(
        {"figures": {"speeds": speeds, "translations": texts}, "options": MODEL}
    )
    assert (
        lines[0] == "| RNN of 128, rmsnorm | sentences/s | over ours | equal translations | BLEU |"
    )
    assert lines[2] == "| `python -m nmt translate` | 10 | 1.00 | 4 | 37.50 |"
    assert lines[3] == "| CTranslate2 | 17 | 1.75 | 3 | 37.25 |"


def test_a_step_of_fit_has_its_ratio_and_the_range_of_the_processes():
    seconds = {
        tables.OURS: [0.5, 0.5, 0.8, 1.4],
        tables.KERAS: [1.0, 1.0, 2.0, 2.0],
    }  # two rounds in each process
    seconds |= {tables.NONE: [0.25, 0.25], tables.LAYERNORM: [2.0, 4.0]}
    log = {"figures": {"64": {"default": seconds, "eager": seconds}, "8": {"default": seconds}}}
    ((heads, _, both, one),) = tables.fit(
        {**log, "options": {"rounds": {"64": 2, "8": 2}, "depths": {"64": 6, "8": 2}}}
    )
    assert heads.startswith(
        "| units (layers) | ours over Keras, default | ours over Keras, eager | no norm, ms |"
    )
    assert (
        both
        == "| 64 (6) | 0.50 (0.50 to 0.55) | 0.50 (0.50 to 0.55) | 250.0 | 650.0 | 1500.0 | 3000.0 |"
    )
    assert one.startswith("| 8 (2) | 0.50 (0.50 to 0.55) |  | ")
