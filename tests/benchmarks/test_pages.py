"""The tables of the pages are those that the kept logs of the benchmarks give."""

import dataclasses
import json
import re
from pathlib import Path
from statistics import median

from benchmarks import tables
from nmt.config import make_config

ROOT = Path(__file__).parents[2]
SMALL_EAGER = "eager", [80, 1024]
RESULTS = ROOT / "benchmarks" / "results"
PERFORMANCE = "\n".join(
    (ROOT / "docs" / name).read_text("utf-8") for name in ("performance.md", "translation-speed.md")
)
PROSE = " ".join(PERFORMANCE.split())
NOT_MEASURED = ("| | largest difference |",)  # limits of tests


def printed(path):
    """Returns the tables of a log, or nothing if the page that has them has a test of its own."""
    log = json.loads(path.read_text("utf-8"))
    return tables.TABLES[log["benchmark"]](log) if log.get("benchmark") in tables.TABLES else []


def page_text(*parts):
    return ROOT.joinpath(*parts).read_text("utf-8")


def page(*parts):
    """Returns a page without its line breaks."""
    return " ".join(ROOT.joinpath(*parts).read_text("utf-8").split())


LOGS = sorted(path for path in RESULTS.rglob("*.json") if printed(path))


def log_of(name):
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def figures(name):
    return log_of(name)["figures"]


def layer_ratio(mode, shape=(4096, 1024), dtype="float32", over=tables.KERAS):
    """Returns the time of both passes of our layer over that of another."""
    place = {"operation": "norm", "shape": list(shape), "dtype": dtype, "mode": mode, "passes": "forward+backward"}
    (cell,) = (each for each in figures("layer") if place.items() <= each.items())
    return tables.ratio(cell["seconds"][tables.OURS], cell["seconds"][over])


def test_every_table_of_the_pages_is_that_of_a_log():
    known = {"\n".join(lines) for path in LOGS for lines in printed(path)} | {"\n".join(same_time())}
    found = [each.strip() for each in re.findall(r"(?:^\|.*\n)+", PERFORMANCE, re.MULTILINE)]
    assert known and {each for each in found if not each.startswith(NOT_MEASURED)} <= known
    assert len(found) > 10


def same_time():
    """Returns the table of the BLEU of each system after the same minutes."""
    rows = {}
    for each in figures("once/peers_quality"):
        row = rows.setdefault(each["minutes"], [f"{each['minutes']:g}"])
        row += [f"{each['updates']:,}", f"{each['BLEU']:.1f}"]
    heads = [f"{system}: {what}" for system in ("ours", "JoeyNMT") for what in ("updates", "BLEU")]
    return tables.markdown(["minutes", *heads], rows.values())


def test_a_log_is_named_or_has_a_table_on_a_page():
    named = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "experiments" / "README.md"]
    text = "\n".join(path.read_text("utf-8") for path in named)
    for path in RESULTS.glob("*.json"):
        shown = any("\n".join(lines) in text for lines in printed(path))
        assert shown or path.name in text or "backends" in path.name or "serving" in path.name, path
    once = (RESULTS / "once" / "README.md").read_text("utf-8")
    assert {path.name for path in (RESULTS / "once").glob("*.json")} == set(re.findall(r"`(\w+\.json)`", once))


def test_logs_name_the_machine():
    for path in LOGS:
        log = json.loads(path.read_text("utf-8"))
        older = path.name in ("backends_jax.json", "backends_torch.json")
        assert older or (log["machine"]["processor"] and log["machine"]["cores"] and log["versions"] and log["date"])


def test_the_page_of_the_layer_has_the_range_of_its_times():
    def told(mode):
        large = [layer_ratio(mode, shape) for shape in ((4096, 1024), (16384, 1024), (2048, 4096))]
        return f"{min(large):.2f} to {max(large):.2f}"

    graph, eager, xla = map(told, ("tf.function", "eager", "xla"))
    found = f"take {graph} of the time of Keras's layer in a `tf.function`, {eager} in eager mode, and {xla} under XLA."
    assert found in page("docs", "layer.md")


def test_the_page_of_folding_has_the_range_of_its_gains():
    two = [
        tables.ratio(mode["before"], mode["after"]) - 1
        for model in figures("once/convert").values()
        for mode in model["seconds"].values()
    ]
    text, found = page_text("docs", "convert.md"), page("docs", "convert.md")
    assert all("\n".join(lines) in text for lines in tables.fold(log_of("fold")))
    assert f"are {min(two):.0%} to {max(two):.0%} faster in inference after folding" in found
    folded, replaced = (
        [
            tables.ratio(model["seconds"]["after"], model["seconds"]["before"])
            for model in figures("fold").values()
            if model["converts"] == function and model["converted"]
        ]
        for function in ("fold_layer_norm", "replace_rms_norm")
    )
    assert f"folding saved at most {1 - min(folded):.0%}" in found
    assert f"took {min(replaced):.2f} to {max(replaced):.2f} of its time" in found
    noise = abs(tables.ratio(*(figures("fold")["BERT"]["seconds"][when] for when in ("after", "before"))) - 1)
    assert noise < 0.01 and "so its ratio is noise: 1%" in found


def test_the_page_of_nmt_has_the_times_over_those_of_nematus():
    updates = log_of("once/training_rnn")["updates"]["float32"]
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


def range_of(operation, mode, over):
    ratios = [
        tables.ratio(each["seconds"][tables.OURS], each["seconds"][over])
        for each in figures("layer_operations")
        if (each["operation"], each["passes"]) == (operation, "forward+backward") and mode in (None, each["mode"])
    ]
    least, most = f"{min(ratios):.2f}", f"{max(ratios):.2f}"
    return least if least == most else f"{least} to {most}"


def test_the_page_has_the_time_with_a_gate_and_groups():
    gate, groups = (
        [range_of(operation, mode, tables.KERAS) for mode in ("tf.function", "xla")] for operation in ("gate", "groups")
    )
    assert "take {} (`tf.function`) and {} (XLA) of the time of".format(*gate) in PROSE
    assert "they take {} and {} of it".format(*groups) in PROSE
    assert f"but {range_of('groups', None, f'{tables.OURS}, apart')} of the time of our layer between" in PROSE


def test_the_page_has_the_gain_of_bfloat16():
    updates = log_of("once/training_transformer")["updates"]
    half, single = updates["mixed_bfloat16"], updates["float32"]
    gains = [tables.ratio(half[kind]["rounds"], single[kind]["rounds"]) for kind in half]
    (rnn,) = (each["/ ours"] for each in figures("peers_rnn") if each["system"] == "ours bfloat16")
    told = f"takes {min(gains):.2f} to {max(gains):.2f} of a Transformer's time in float32, and {rnn:.2f} of an RNN's"
    assert told in PROSE


def widths(model_type, mode):
    """Returns the seconds of each kind by width."""
    return {int(width): each["seconds"][mode] for width, each in figures("once/widths")[model_type].items()}


def test_the_page_says_where_rmsnorm_is_faster_than_layernorm():
    seconds = widths("rnn", "XLA")[128]
    saved = 1 - tables.ratio(seconds["rmsnorm"], seconds["layernorm"])
    assert f"in the RNN of 128 compiled by XLA, RMSNorm takes {saved:.0%} less time than LayerNorm" in PROSE


def share(seconds):
    """Returns the part of LayerNorm's time that exceeds the time without a norm."""
    return tables.added(seconds["layernorm"], seconds["none"]) / median(seconds["layernorm"])


def test_the_page_has_the_share_of_the_norms():
    by_mode = [widths(model_type, mode) for model_type in ("rnn", "transformer") for mode in ("XLA", "plain")]
    for found in by_mode:
        shares = [share(each) for each in found.values()]
        assert shares == sorted(shares, reverse=True)
    large = [share(each) for found in by_mode[2:] for width, each in found.items() if width >= 512]
    assert f"in Transformers of 512 and 1,024 at most {max(large):.1%};" in PROSE
    middle = [share(found[width]) for found in by_mode[:2] for width in (512, 1024)]
    assert f"in RNNs of 512 and 1,024 they take {min(middle):.0%} to {max(middle):.0%} of an update" in PROSE


def test_the_pages_have_the_time_and_the_memory_at_the_papers_size():
    found = log_of("training_paper")["updates"]["float32"]
    memory = f"{found['rmsnorm']['mib'] / 1024:.1f} GiB"
    told = f"| peak memory of this update with RMSNorm, on two processor cores | {memory} |"
    assert told in page("experiments", "README.md")
    none, layernorm, rmsnorm = (f"{median(found[kind]['rounds']):.1f} s" for kind in ("none", "layernorm", "rmsnorm"))
    assert f"{none} without a norm, {layernorm} with LayerNorm and {rmsnorm} with RMSNorm, in {memory}," in PROSE


def test_the_page_has_the_time_of_large_texts():
    found = figures("once/corpora")[-1]
    cold, warm, train = (f"{found[name]:.0f} s" for name in ("prepare, first: s", "prepare, second: s", "train: s"))
    most = max(value for name, value in found.items() if name.endswith(": MiB")) / 1024
    assert f"(633 MiB), `vocab` takes {found['vocab: s']:.0f} s" in PROSE and f"{found['text, MiB']:.0f}" == "633"
    told = f"scanning the text {cold} with an empty cache and {warm} with a full one, and 300 updates of a small RNN"
    assert f"{told} {train}; no process had more than {most:.1f} GiB" in PROSE


def test_the_page_has_the_errors_of_sums():
    errors = figures("once/limits")["errors"]
    columns = ("y", "dx", "dscale of as many rows", "y of constant rows")
    worst = {mode: [max(each[name] for each in by.values()) for name in columns] for mode, by in errors.items()}
    ours = [max(worst[mode][at] for mode in worst if not mode.startswith("keras")) for at in range(4)]
    told = page("docs", "maintainers", "sums.md")
    for sentence, found in (("y of normal", ours), ("under XLA: {}", worst["keras, XLA"])):
        bounds = [float(each) for each in re.findall(r"\de-\d", told[told.index(sentence.partition("{")[0]) - 12 :])][
            :4
        ]
        assert all(value <= bound <= 2.5 * value for value, bound in zip(found, bounds, strict=True))


def test_the_page_of_bulk_has_the_figures_of_its_log():
    found = log_of("once/bulk")
    text = (ROOT / "docs" / "bulk.md").read_text("utf-8")
    for number, each in found["processes"].items():
        share, rest = f"{each['share']:.1%}", f"{1 - each['share']:.1%}"
        assert f"| {number} | {each['speed']:.1f} | {share} | {each['speed_with_start']:.1f} | {rest} |" in text
    assert f"Two processes reach {found['speedup']:.2f} times the lines/s of one." in text


def test_the_page_of_transformers_has_the_validations_of_its_log():
    rows = []
    for name, found in log_of("once/transformer_multi30k").items():
        for each in found["validations"]:
            test = f"{each['test_bleu']:.1f}" if "test_bleu" in each else ""
            minutes, loss = f"{each['seconds'] / 60:.0f}", f"{each['valid_loss']:.2f}"
            rows.append(f"| {name} | {each['update']:,} | {minutes} | {loss} | {each['bleu']:.1f} | {test} |")
    assert len(rows) > 10 and "\n".join(rows) in (ROOT / "docs" / "transformer.md").read_text("utf-8")


def test_the_options_of_the_example_are_those_of_its_log():
    given = json.loads((ROOT / "examples" / "transformer-multi30k.json").read_text("utf-8"))
    example = json.loads(json.dumps(dataclasses.asdict(make_config(given))))
    for found in log_of("once/transformer_multi30k").values():
        # One training went on after its end, the kinds differ, and the batches of validation change speed alone.
        free = {"finish_after", "layer_normalization_type", "valid_batch_size"}
        named = example.keys() & found["options"].keys() - free
        assert len(named) > 40
        assert {name: found["options"][name] for name in named} == {name: example[name] for name in named}


def test_the_page_of_the_service_has_the_tables_of_its_logs():
    text = (ROOT / "docs" / "serving.md").read_text("utf-8")
    for name in ("rnn", "transformer"):
        for lines in tables.serving(log_of(f"serving_{name}")):
            assert "\n".join(lines) in text


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
    other = next(name for name in bleu if "int8, patience 2" in name)
    equal = [found["translations"][name]["equal"] for name in (same, other)]
    assert "({} of 1,000 in float32, and {} in int8, in".format(*equal) in told
    assert "int8 changes BLEU by less than 0.2" in told
    alone = [median(found["latency"][name]) / median(found["latency"]["ours"]) for name in (single, same)]
    assert 0.3 < min(alone) < max(alone) < 0.36 and "One sentence alone takes it a third of the time" in PROSE


def test_the_page_has_the_time_of_one_sentence_by_threads():
    found = figures("once/one_sentence")
    two, one = found["TensorFlow's threads"], found["one thread of an operation, one between operations"]
    assert f"translates a sentence in {one['median']:.1f} ms instead of {two['median']:.1f}" in PROSE


def test_the_page_compares_decoding_with_nematus():
    found = figures("once/decoding_rnn")
    assert f"translates {tables.ratio(found['speeds']['ours'], found['speeds']['Nematus']):.1f} times as many" in PROSE
    assert f"{found['translations']['Nematus']['equal']} of the 1,000 translations are equal" in PROSE


def test_the_page_of_the_layer_has_the_steps_of_fit():
    log = log_of("fit")
    text = page_text("docs", "layer.md")
    assert "\n".join(tables.fit(log)[0]) in text

    def told(mode):
        steps = [modes[mode] for modes in log["figures"].values() if mode in modes]
        ratios = [tables.ratio(seconds[tables.OURS], seconds[tables.KERAS]) for seconds in steps]
        return f"{min(ratios):.2f} to {max(ratios):.2f}"

    default, compiled, eager = map(told, ("default", "jit_compile=True", "run_eagerly=True"))
    assert f"takes {default} of its time with `keras.layers.RMSNormalization` by default, {compiled} with" in page(
        "docs", "layer.md"
    )
    assert f"{eager} in eager mode" in text


def test_the_page_of_other_backends_has_the_range_of_its_logs():
    """Our time over that of Keras's layer, apart for eager calls with small inputs on PyTorch."""
    text = " ".join((ROOT / "docs" / "backends.md").read_text("utf-8").split())

    def over(backend, small):
        rows = [row for row in figures(f"backends_{backend}") if ((row["mode"], row["shape"]) == SMALL_EAGER) == small]
        found = [tables.ratio(row["seconds"][tables.OURS], row["seconds"][tables.KERAS]) for row in rows]
        return f"{min(found):.2f} to {max(found):.2f}"

    for backend, name in (("jax", "JAX"), ("torch", "PyTorch")):
        versions = json.loads((RESULTS / f"backends_{backend}.json").read_text("utf-8"))["versions"]
        assert f"{over(backend, False)} on {name} {versions[backend].split('+')[0]}" in text
    assert f"Only eager calls with [80, 1024] on PyTorch take {over('torch', True)} of it" in text


def test_the_pages_have_the_ratios_of_a_gpu():
    rnn, transformer, *_ = (each["kinds"] for each in log_of("gpu")["groups"])
    rounds = {name: each["rounds"] for name, each in rnn.items()}
    assert f"RNN takes {tables.ratio(rounds['rmsnorm'], rounds['layernorm']):.2f} of its time" in page("README.md")
    shares = []
    for kinds in (rnn, transformer):
        none, layernorm, rmsnorm = (median(kinds[name]["rounds"]) for name in ("none", "layernorm", "rmsnorm"))
        shares.append(f"{(layernorm - rmsnorm) / (layernorm - none):.0%}")
    assert "saves {} of what LayerNorm adds to the RNN, and {} in the Transformer".format(*shares) in PROSE
    text = page("docs", "backends.md")
    for backend, mode in (("jax", "jit"), ("torch", "torch.compile"), ("torch", "eager")):
        rows = [row["seconds"] for row in figures(f"backends_{backend}_h100") if row["mode"] == mode]
        found = [tables.ratio(row[tables.OURS], row[tables.KERAS]) for row in rows]
        assert f"{min(found):.2f} to {max(found):.2f} " in text
    backward = [each["kinds"] for each in log_of("gpu")["groups"] if each["group"]["passes"] == "backward"]
    found = [kinds[tables.OURS]["busy"] / kinds[tables.KERAS]["busy"] for kinds in backward]
    assert f"ours takes {min(found):.2f} to {max(found):.2f} of Keras's time" in PROSE
