"""The pages of the layer have the tables and the figures of the kept logs of the benchmarks."""

import json
import re
from statistics import median

from benchmarks import tables
from tests.benchmarks.pages import (
    LOGS,
    PERFORMANCE,
    PROSE,
    RESULTS,
    ROOT,
    figures,
    log_of,
    page,
    page_text,
    printed,
)

SMALL_EAGER = "eager", [80, 1024]
NOT_MEASURED = ("| | largest difference |",)  # limits of tests


def layer_ratio(mode, shape=(4096, 1024), dtype="float32", over=tables.KERAS):
    """Returns the time of both passes of our layer over that of another."""
    place = {"shape": list(shape), "dtype": dtype, "mode": mode, "passes": "forward+backward"}
    (cell,) = (each for each in figures("layer") if place.items() <= each.items())
    return tables.ratio(cell["seconds"][tables.OURS], cell["seconds"][over])


def same_time():
    """Returns the table of the BLEU of each system after the same minutes."""
    rows = {}
    for each in figures("once/peers_quality"):
        row = rows.setdefault(each["minutes"], [f"{each['minutes']:g}"])
        row += [f"{each['updates']:,}", f"{each['BLEU']:.1f}"]
    heads = [f"{system}: {what}" for system in ("ours", "JoeyNMT") for what in ("updates", "BLEU")]
    return tables.markdown(["minutes", *heads], rows.values())


def test_every_table_of_the_pages_is_that_of_a_log():
    known = {"\n".join(lines) for path in LOGS for lines in printed(path)} | {
        "\n".join(same_time())
    }
    found = [each.strip() for each in re.findall(r"(?:^\|.*\n)+", PERFORMANCE, re.MULTILINE)]
    assert known and {each for each in found if not each.startswith(NOT_MEASURED)} <= known
    assert len(found) > 10


def test_a_log_is_named_or_has_a_table_on_a_page():
    named = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "experiments" / "README.md"]
    text = "\n".join(path.read_text("utf-8") for path in named)
    for path in RESULTS.glob("*.json"):
        shown = any("\n".join(lines) in text for lines in printed(path))
        assert shown or path.name in text, path
    once = (RESULTS / "once" / "README.md").read_text("utf-8")
    assert {path.name for path in (RESULTS / "once").glob("*.json")} == set(
        re.findall(r"`(\w+\.json)`", once)
    )


def test_logs_name_the_machine():
    for path in LOGS:
        log = json.loads(path.read_text("utf-8"))
        older = path.name in ("backends_jax.json", "backends_torch.json")
        assert older or (
            log["machine"]["processor"]
            and log["machine"]["cores"]
            and log["versions"]
            and log["date"]
        )


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
    text = page_text("docs", "convert.md")
    found = page("docs", "convert.md")
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
    noise = abs(
        tables.ratio(*(figures("fold")["BERT"]["seconds"][when] for when in ("after", "before")))
        - 1
    )
    assert noise < 0.01 and "so its ratio is noise: 1%" in found


def range_of(operation, mode, over):
    ratios = [
        tables.ratio(each["seconds"][tables.OURS], each["seconds"][over])
        for each in figures("once/layer_operations")
        if (each["operation"], each["passes"]) == (operation, "forward+backward")
        and mode in (None, each["mode"])
    ]
    least = f"{min(ratios):.2f}"
    most = f"{max(ratios):.2f}"
    return least if least == most else f"{least} to {most}"


def test_the_page_has_the_time_with_a_gate_and_groups():
    gate, groups = (
        [range_of(operation, mode, tables.KERAS) for mode in ("tf.function", "xla")]
        for operation in ("gate", "groups")
    )
    assert "take {} (`tf.function`) and {} (XLA) of the time of".format(*gate) in PROSE
    assert "they take {} and {} of it".format(*groups) in PROSE
    assert (
        f"but {range_of('groups', None, f'{tables.OURS}, apart')} of the time of our layer between"
        in PROSE
    )


def test_the_page_has_the_errors_of_sums():
    errors = figures("once/limits")["errors"]
    columns = ("y", "dx", "dscale of as many rows", "y of constant rows")
    worst = {
        mode: [max(each[name] for each in by.values()) for name in columns]
        for mode, by in errors.items()
    }
    ours = [
        max(worst[mode][at] for mode in worst if not mode.startswith("keras")) for at in range(4)
    ]
    told = page("docs", "maintainers", "sums.md")
    for sentence, found in (("y of normal", ours), ("under XLA: {}", worst["keras, XLA"])):
        bounds = [
            float(each)
            for each in re.findall(r"\de-\d", told[told.index(sentence.partition("{")[0]) - 12 :])
        ][:4]
        assert all(
            value <= bound <= 2.5 * value for value, bound in zip(found, bounds, strict=True)
        )


def test_the_page_of_the_layer_has_the_steps_of_fit():
    log = log_of("fit")
    text = page_text("docs", "layer.md")

    def told(mode):
        steps = [modes[mode] for modes in log["figures"].values() if mode in modes]
        ratios = [tables.ratio(seconds[tables.OURS], seconds[tables.KERAS]) for seconds in steps]
        return f"{min(ratios):.2f} to {max(ratios):.2f}"

    default, compiled, eager = map(told, ("default", "jit_compile=True", "run_eagerly=True"))
    assert (
        f"takes {default} of its time with `keras.layers.RMSNormalization` by default, {compiled} with"
        in page("docs", "layer.md")
    )
    assert f"{eager} in eager mode" in text


def test_the_page_of_other_backends_has_the_range_of_its_logs():
    """Our time over that of Keras's layer, apart for eager calls with small inputs on PyTorch."""
    text = " ".join((ROOT / "docs" / "backends.md").read_text("utf-8").split())

    def over(backend, small):
        rows = [
            row
            for row in figures(f"once/backends_{backend}")
            if ((row["mode"], row["shape"]) == SMALL_EAGER) == small
        ]
        found = [
            tables.ratio(row["seconds"][tables.OURS], row["seconds"][tables.KERAS]) for row in rows
        ]
        return f"{min(found):.2f} to {max(found):.2f}"

    for backend, name in (("jax", "JAX"), ("torch", "PyTorch")):
        versions = json.loads((RESULTS / "once" / f"backends_{backend}.json").read_text("utf-8"))[
            "versions"
        ]
        assert f"{over(backend, False)} on {name} {versions[backend].split('+')[0]}" in text
    assert f"Only eager calls with [80, 1024] on PyTorch take {over('torch', True)} of it" in text


def test_the_pages_have_the_ratios_of_a_gpu():
    rnn, transformer, *_ = (each["kinds"] for each in log_of("gpu")["groups"])
    rounds = {name: each["rounds"] for name, each in rnn.items()}
    assert (
        f"RNN takes {tables.ratio(rounds['rmsnorm'], rounds['layernorm']):.2f} of its time"
        in page("README.md")
    )
    shares = []
    for kinds in (rnn, transformer):
        none, layernorm, rmsnorm = (
            median(kinds[name]["rounds"]) for name in ("none", "layernorm", "rmsnorm")
        )
        shares.append(f"{(layernorm - rmsnorm) / (layernorm - none):.0%}")
    assert (
        "saves {} of what LayerNorm adds to the RNN, and {} in the Transformer".format(*shares)
        in PROSE
    )
    text = page("docs", "backends.md")
    for backend, mode in (("jax", "jit"), ("torch", "torch.compile"), ("torch", "eager")):
        rows = [
            row["seconds"]
            for row in figures(f"once/backends_{backend}_h100")
            if row["mode"] == mode
        ]
        found = [tables.ratio(row[tables.OURS], row[tables.KERAS]) for row in rows]
        assert f"{min(found):.2f} to {max(found):.2f} " in text
    backward = [
        each["kinds"] for each in log_of("gpu")["groups"] if each["group"]["passes"] == "backward"
    ]
    found = [kinds[tables.OURS]["busy"] / kinds[tables.KERAS]["busy"] for kinds in backward]
    assert f"ours takes {min(found):.2f} to {max(found):.2f} of Keras's time" in PROSE
