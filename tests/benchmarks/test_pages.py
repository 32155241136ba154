"""The tables of the pages are those that the kept logs of the benchmarks give."""

import json
import re
from pathlib import Path
from statistics import median

import pytest

from benchmarks import backends, layer_figures, tables

pytest.importorskip("scipy")

from experiments.reporting.speed import Timed

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PERFORMANCE = "\n".join(
    (ROOT / "docs" / name).read_text("utf-8") for name in ("performance.md", "translation-speed.md")
)
PROSE = " ".join(PERFORMANCE.split())
NOT_MEASURED = ("| | largest difference |", "| arrays of the size of x")  # limits of tests, and counts


def printed(path):
    """Returns the tables of a log, or nothing if another test compares them."""
    log = json.loads(path.read_text("utf-8"))
    if log.get("benchmark") == "layer":
        return layer_figures.tables(log["figures"])
    return tables.TABLES[log["benchmark"]](log) if log.get("benchmark") in tables.TABLES else []


def page(*parts):
    """Returns a page without its line breaks."""
    return " ".join(ROOT.joinpath(*parts).read_text("utf-8").split())


LOGS = sorted(path for path in RESULTS.glob("*.json") if printed(path))


def figures(name):
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))["figures"]


def layer_ratio(mode, shape=(4096, 1024), dtype="float32", over=layer_figures.KERAS):
    """Returns the time of both passes of our layer over that of another."""
    place = {"operation": "norm", "shape": list(shape), "dtype": dtype, "mode": mode, "passes": "forward+backward"}
    (cell,) = (each for each in figures("layer") if place.items() <= each.items())
    return tables.ratio(cell["seconds"][layer_figures.OURS], cell["seconds"][over])


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_log_has_its_tables_on_the_page(path):
    for lines in printed(path):
        assert "\n".join(lines) in PERFORMANCE


def test_every_table_of_the_page_has_a_log():
    known = {"\n".join(lines) for path in LOGS for lines in printed(path)}
    found = re.findall(r"(?:^\|.*\n)+", PERFORMANCE, re.MULTILINE)
    assert known and {each.strip() for each in found if not each.startswith(NOT_MEASURED)} == known


def test_logs_name_the_machine():
    for path in LOGS:
        log = json.loads(path.read_text("utf-8"))
        assert log["machine"]["processor"] and log["machine"]["cores"] and log["versions"]["tensorflow"] and log["date"]


def test_the_page_of_the_layer_has_the_range_of_its_times():
    def told(mode):
        large = [layer_ratio(mode, shape) for shape in ((4096, 1024), (16384, 1024), (2048, 4096))]
        return f"{min(large):.2f} to {max(large):.2f}"

    eager, graph, xla = map(told, ("eager", "tf.function", "xla"))
    found = f"take {eager} of the time of Keras's layer in eager mode, {graph} in a `tf.function`, and {xla} under XLA."
    assert found in page("docs", "layer.md")


def test_the_page_of_folding_has_the_range_of_its_gains():
    two = [
        tables.ratio(mode["before"], mode["after"]) - 1
        for model in figures("convert").values()
        for mode in model["seconds"].values()
    ]
    found = page("docs", "convert.md")
    assert f"are {min(two):.0%} to {max(two):.0%} faster in inference after folding" in found
    folded, replaced = (
        [
            tables.ratio(model["seconds"]["after"], model["seconds"]["before"])
            for model in figures("fold").values()
            if model["converts"] == function and model["converted"]
        ]
        for function in ("fold_layer_norm", "replace_rms_norm")
    )
    assert f"models of KerasHub take at most {1 - min(folded):.0%} less time" in found
    assert f"folding saved at most {1 - min(folded):.0%}" in PROSE
    assert f"took {min(replaced):.2f} to {max(replaced):.2f} of its time" in PROSE
    noise = abs(tables.ratio(*(figures("fold")["BERT"]["seconds"][when] for when in ("after", "before"))) - 1)
    assert f"differences of {noise:.0%} are within the noise" in found


def test_the_page_of_nmt_has_the_times_over_those_of_nematus():
    updates = json.loads((RESULTS / "training_rnn.json").read_text("utf-8"))["updates"]["float32"]
    none, layernorm = (f"{updates[kind]['ratio_nematus']:.2f}" for kind in ("none", "layernorm"))
    found = f"{none} (without a norm) and {layernorm} (LayerNorm) of the time of Nematus v0.3"
    assert found in page("docs", "nmt.md")


def test_the_page_has_the_times_over_those_of_joeynmt():
    def over(model, dtype):
        times = {each["system"]: each["/ ours"] for each in figures(f"peers_{model}")}
        return f"{times[f'ours {dtype}'] / times[f'JoeyNMT {dtype}']:.2f}"

    transformer, rnn = ([over(model, dtype) for dtype in ("float32", "bfloat16")] for model in ("transformer", "rnn"))
    assert "takes {} of the time of JoeyNMT's in float32 and {} in bfloat16".format(*transformer) in PROSE
    assert "and one of an RNN {} and {}:".format(*rnn) in PROSE


LARGE = ([4096, 1024], [16384, 1024], [2048, 4096])


def norms(dtype):
    return [each for each in figures("layer") if each["dtype"] == dtype and each["shape"] in LARGE]


def test_the_page_says_how_often_the_goals_of_the_layer_are_reached():
    both = [
        tables.ratio(each["seconds"][layer_figures.OURS], each["seconds"][layer_figures.KERAS])
        for dtype in ("float32", "bfloat16")
        for each in norms(dtype)
        if (each["mode"], each["passes"]) == ("tf.function", "forward+backward")
    ]
    assert len(both) == 6 and max(both) <= 0.45
    assert (
        "the goal was 0.45 of the time of Keras's layer for both passes of the three large shapes. It is reached"
        in PROSE
    )
    reached = {
        dtype: sum(tables.ratio(each["seconds"][layer_figures.OURS], each["bound"]) <= 2.5 for each in norms(dtype))
        for dtype in ("float32", "bfloat16")
    }
    told = "{float32} of 18 float32 cells and in {bfloat16} of 18 bfloat16 cells".format(**reached)
    assert f"It is reached in {told}" in PROSE


def test_the_page_has_the_time_of_groups():
    both = [
        tables.ratio(each["seconds"][layer_figures.OURS], each["seconds"][f"{layer_figures.OURS}, apart"])
        for each in figures("layer_operations")
        if (each["operation"], each["passes"]) == ("groups", "forward+backward")
    ]
    assert f"Both passes take {min(both):.2f} to {max(both):.2f} of the time of these three" in PROSE


def test_the_page_has_the_gain_of_bfloat16_and_the_time_of_the_first_updates():
    updates = json.loads((RESULTS / "training_transformer.json").read_text("utf-8"))["updates"]
    half, single = updates["mixed_bfloat16"], updates["float32"]
    gains = [tables.ratio(half[kind]["rounds"], single[kind]["rounds"]) for kind in half]
    first = [half[kind]["first"] / single[kind]["first"] for kind in half]
    told = f"takes {min(gains):.2f} to {max(gains):.2f} of its time in float32"
    assert f"{told}. No kind" in PROSE
    assert f"{told}, and the first one of a width {min(first):.2f} to {max(first):.2f}." in PROSE
    (rnn,) = (each["/ ours"] for each in figures("peers_rnn") if each["system"] == "ours bfloat16")
    assert f"For an RNN the gain is small: {rnn:.2f} (" in PROSE


def widths(model_type, mode):
    """Returns the seconds of each kind by width."""
    return {int(width): each["seconds"][mode] for width, each in figures("widths")[model_type].items()}


def test_the_page_says_where_rmsnorm_is_faster_than_layernorm():
    """By the rule of the experiments' reports."""
    timed = {
        (model_type, mode, width): Timed("", [seconds])
        for model_type in ("rnn", "transformer")
        for mode in ("XLA", "plain")
        for width, seconds in widths(model_type, mode).items()
    }
    (faster,) = (place for place, each in timed.items() if each.verdict("rmsnorm").startswith("shown"))
    assert faster == ("rnn", "XLA", 128)
    saved = 1 - timed[faster].ratio("rmsnorm").middle
    assert f"In the RNN of 128 compiled by XLA, RMSNorm takes {saved:.0%} less time than LayerNorm" in PROSE
    assert f"At the other widths, as plain operations, and in Transformers ({len(timed) - 1} cells), no saving" in PROSE


def share(seconds):
    """Returns the part of LayerNorm's time that exceeds the time without a norm."""
    return tables.added(seconds["layernorm"], seconds["none"]) / median(seconds["layernorm"])


def test_the_page_has_the_share_of_the_norms():
    by_mode = [widths(model_type, mode) for model_type in ("rnn", "transformer") for mode in ("XLA", "plain")]
    for found in by_mode:
        shares = [share(each) for each in found.values()]
        assert shares == sorted(shares, reverse=True)
    large = [share(each) for found in by_mode[2:] for width, each in found.items() if width >= 512]
    assert f"In the Transformers of 512 and 1,024 it is at most {max(large):.1%}" in PROSE
    middle = [share(found[width]) for found in by_mode[:2] for width in (512, 1024)]
    assert f"In the RNNs of 512 and 1,024 they take {min(middle):.0%} to {max(middle):.0%} here" in PROSE


def test_the_page_of_the_experiments_has_the_memory_at_the_papers_size():
    found = json.loads((RESULTS / "training_paper.json").read_text("utf-8"))["updates"]["float32"]["rmsnorm"]
    told = f"| peak memory of this update with RMSNorm, on two processor cores | {found['mib'] / 1024:.1f} GiB |"
    assert told in page("experiments", "README.md")


def test_the_page_compares_decoding_with_ctranslate2():
    found = figures("decoding_transformer")
    (single, same), (int8, _) = (
        [next(name for name in found["speeds"] if f"{dtype}, patience {patience}" in name) for patience in (1, 2)]
        for dtype in ("float32", "int8")
    )
    over = {name: tables.ratio(each, found["speeds"]["ours"]) for name, each in found["speeds"].items()}
    assert f"in float32 translates {over[same]:.2f} times as many" in PROSE
    assert (
        f"default it translates {over[single]:.2f} times as many, and {over[int8]:.2f} times as many in int8" in PROSE
    )
    bleu = {name: each["bleu"] for name, each in found["translations"].items()}
    lost = max(abs(bleu[name] - bleu["ours"]) for name in bleu if "int8" in name)
    assert lost < 0.2 and "changes BLEU by less than 0.2 in the table" in PROSE
    told = page("docs", "nmt.md")
    assert (
        f"({found['translations'][same]['equal']} of 1,000 in" in told and "int8 changes BLEU by less than 0.2" in told
    )
    alone = [median(found["latency"][name]) / median(found["latency"]["ours"]) for name in (single, same)]
    assert 0.3 < min(alone) < max(alone) < 0.36 and "One sentence alone takes it a third of the time" in PROSE


def test_the_page_compares_decoding_with_nematus():
    found = figures("decoding_rnn")
    assert f"translates {tables.ratio(found['speeds']['ours'], found['speeds']['Nematus']):.1f} times as many" in PROSE
    assert f"{found['translations']['Nematus']['equal']} of the 1,000 translations are equal" in PROSE


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_the_page_of_other_backends_has_the_tables_of_its_logs(backend):
    log = json.loads((RESULTS / f"backends_{backend}.json").read_text("utf-8"))
    text = (ROOT / "docs" / "backends.md").read_text("utf-8")
    assert backends.table(log) in text
    assert log["versions"][backend].split("+")[0] in text


def test_the_layer_is_as_fast_as_that_of_keras_on_other_backends():
    """What the page says: not faster, and slower in eager calls with small inputs on PyTorch alone."""
    for backend in ("jax", "torch"):
        for row in figures(f"backends_{backend}"):
            seconds = row["seconds"]
            over = tables.ratio(seconds[backends.OURS], seconds[backends.KERAS])
            assert 0.9 < over < (1.3 if (row["mode"], row["shape"]) == ("eager", "80x1024") else 1.1)
