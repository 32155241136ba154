"""The pages of translation have the figures of the kept logs of the benchmarks."""

import dataclasses
import json
from statistics import median

from benchmarks import tables
from nmt.config import make_config
from tests.benchmarks.pages import PROSE, ROOT, figures, log_of, page


def test_the_page_of_nmt_has_the_times_over_those_of_nematus():
    updates = log_of("once/training_rnn")["updates"]["float32"]
    none, layernorm = (f"{updates[kind]['ratio_nematus']:.2f}" for kind in ("none", "layernorm"))
    found = f"{none} (without a norm) and {layernorm} (LayerNorm) of the time of Nematus v0.3"
    assert found in page("docs", "nmt.md")


def test_the_page_has_the_times_over_those_of_joeynmt():
    def over(model, ours, theirs):
        found = figures(f"peers_{model}")
        return f"{tables.ratio(found[f'ours {ours}']['rounds'], found[f'JoeyNMT {theirs}']['rounds']):.2f}"

    transformer, rnn = (
        [over(model, d, d) for d in ("float32", "bfloat16")] for model in ("transformer", "rnn")
    )
    assert (
        "takes {} of the time of JoeyNMT's in float32 and {} in bfloat16".format(*transformer)
        in PROSE
    )
    assert "and one of an RNN {} and {}.".format(*rnn) in PROSE
    compiled = [over(model, "float32", "compiled") for model in ("transformer", "rnn")]
    assert "Over JoeyNMT compiled by PyTorch, the ratios are {} and {}.".format(*compiled) in PROSE


def test_the_page_has_the_gain_of_bfloat16():
    updates = log_of("once/training_transformer")["updates"]
    half = updates["mixed_bfloat16"]
    single = updates["float32"]
    gains = [tables.ratio(half[kind]["rounds"], single[kind]["rounds"]) for kind in half]
    rnn = tables.ratio(
        *(figures("peers_rnn")[f"ours {dtype}"]["rounds"] for dtype in ("bfloat16", "float32"))
    )
    told = f"takes {min(gains):.2f} to {max(gains):.2f} of a Transformer's time in float32, and {rnn:.2f} of an RNN's"
    assert told in PROSE


def widths(model_type, mode):
    """Returns the seconds of each kind by width."""
    return {
        int(width): each["seconds"][mode]
        for width, each in figures("once/widths")[model_type].items()
    }


def test_the_page_says_where_rmsnorm_is_faster_than_layernorm():
    seconds = widths("rnn", "XLA")[128]
    saved = 1 - tables.ratio(seconds["rmsnorm"], seconds["layernorm"])
    assert (
        f"in the RNN of 128 compiled by XLA, RMSNorm takes {saved:.0%} less time than LayerNorm"
        in PROSE
    )


def share(seconds):
    """Returns the part of LayerNorm's time that exceeds the time without a norm."""
    return tables.added(seconds["layernorm"], seconds["none"]) / median(seconds["layernorm"])


def test_the_page_has_the_share_of_the_norms():
    by_mode = [
        widths(model_type, mode)
        for model_type in ("rnn", "transformer")
        for mode in ("XLA", "plain")
    ]
    for found in by_mode:
        shares = [share(each) for each in found.values()]
        assert shares == sorted(shares, reverse=True)
    large = [share(each) for found in by_mode[2:] for width, each in found.items() if width >= 512]
    assert f"in Transformers of 512 and 1,024 at most {max(large):.1%};" in PROSE
    middle = [share(found[width]) for found in by_mode[:2] for width in (512, 1024)]
    assert (
        f"in RNNs of 512 and 1,024 they take {min(middle):.0%} to {max(middle):.0%} of an update"
        in PROSE
    )


def test_the_pages_have_the_time_and_the_memory_at_the_papers_size():
    found = log_of("once/training_paper")["updates"]["float32"]
    memory = f"{found['rmsnorm']['mib'] / 1024:.1f} GiB"
    told = f"| peak memory of this update with RMSNorm, on two processor cores | {memory} |"
    assert told in page("experiments", "README.md")
    none, layernorm, rmsnorm = (
        f"{median(found[kind]['rounds']):.1f} s" for kind in ("none", "layernorm", "rmsnorm")
    )
    assert (
        f"{none} without a norm, {layernorm} with LayerNorm and {rmsnorm} with RMSNorm, in {memory},"
        in PROSE
    )


def test_the_page_has_the_time_of_large_texts():
    found = figures("once/corpora")[-1]
    cold, warm, train = (
        f"{found[name]:.0f} s" for name in ("prepare, first: s", "prepare, second: s", "train: s")
    )
    most = max(value for name, value in found.items() if name.endswith(": MiB")) / 1024
    assert (
        f"(633 MiB), `vocab` takes {found['vocab: s']:.0f} s" in PROSE
        and f"{found['text, MiB']:.0f}" == "633"
    )
    told = f"scanning the text {cold} with an empty cache and {warm} with a full one, and 300 updates of a small RNN"
    assert f"{told} {train}; no process had more than {most:.1f} GiB" in PROSE


def test_the_page_of_bulk_has_the_figures_of_its_log():
    found = log_of("once/bulk")
    text = (ROOT / "docs" / "bulk.md").read_text("utf-8")
    for number, each in found["processes"].items():
        share = f"{each['share']:.1%}"
        rest = f"{1 - each['share']:.1%}"
        assert (
            f"| {number} | {each['speed']:.1f} | {share} | {each['speed_with_start']:.1f} | {rest} |"
            in text
        )
    assert f"Two processes reach {found['speedup']:.2f} times the lines/s of one." in text


def test_the_page_of_transformers_has_the_validations_of_its_log():
    rows = []
    for name, found in log_of("once/transformer_multi30k").items():
        for each in found["validations"]:
            test = f"{each['test_bleu']:.1f}" if "test_bleu" in each else ""
            minutes = f"{each['seconds'] / 60:.0f}"
            loss = f"{each['valid_loss']:.2f}"
            rows.append(
                f"| {name} | {each['update']:,} | {minutes} | {loss} | {each['bleu']:.1f} | {test} |"
            )
    assert len(rows) > 10 and "\n".join(rows) in (ROOT / "docs" / "transformer.md").read_text(
        "utf-8"
    )


def test_the_options_of_the_example_are_those_of_its_log():
    given = json.loads((ROOT / "examples" / "transformer-multi30k.json").read_text("utf-8"))
    example = json.loads(json.dumps(dataclasses.asdict(make_config(given))))
    for found in log_of("once/transformer_multi30k").values():
        # One training went on after its end, the kinds differ, and the batches of validation change
        # speed alone.
        free = {"finish_after", "layer_normalization_type", "valid_batch_size"}
        named = example.keys() & found["options"].keys() - free
        assert len(named) > 40
        assert {name: found["options"][name] for name in named} == {
            name: example[name] for name in named
        }


def test_the_page_of_the_service_has_the_tables_of_its_logs():
    text = (ROOT / "docs" / "serving.md").read_text("utf-8")
    for name in ("rnn", "transformer"):
        for lines in tables.serving(log_of(f"serving_{name}")):
            assert "\n".join(lines) in text


def test_the_page_compares_decoding_with_ctranslate2():
    found = figures("decoding_transformer")
    (single, same), (int8, _) = (
        [
            next(name for name in found["speeds"] if f"{dtype}, patience {patience}" in name)
            for patience in (1, 2)
        ]
        for dtype in ("float32", "int8")
    )
    over = {
        name: tables.ratio(each, found["speeds"]["ours"]) for name, each in found["speeds"].items()
    }
    assert f"in float32 translates {over[same]:.2f} times as many" in PROSE
    assert (
        f"default it translates {over[single]:.2f} times as many, and {over[int8]:.2f} times as many in int8"
        in PROSE
    )
    bleu = {name: each["bleu"] for name, each in found["translations"].items()}
    lost = max(abs(bleu[name] - bleu["ours"]) for name in bleu if "int8" in name)
    assert lost < 0.2 and "changes BLEU by less than 0.2 in the table" in PROSE
    told = page("docs", "nmt.md")
    other = next(name for name in bleu if "int8, patience 2" in name)
    equal = [found["translations"][name]["equal"] for name in (same, other)]
    assert "({} of 1,000 in float32, and {} in int8, in".format(*equal) in told
    assert "int8 changes BLEU by less than 0.2" in told
    alone = [
        median(found["latency"][name]) / median(found["latency"]["ours"]) for name in (single, same)
    ]
    assert (
        0.3 < min(alone) < max(alone) < 0.36
        and "One sentence alone takes it a third of the time" in PROSE
    )


def test_the_page_has_the_time_of_one_sentence_by_threads():
    one = "one thread of an operation"
    both = "one thread of an operation, one between operations"
    kept = figures("once/one_sentence")
    found = [kept[model] for model in ("RNN", "Transformer")]
    served, given, alone = (
        [f"{median(each['one'][n]):.1f}" for each in found]
        for n in (one, "TensorFlow's threads", both)
    )
    assert (
        "takes {} ms (RNN) and {} (Transformer) instead of {} and {}.".format(*served, *given)
        in PROSE
    )
    at_once = [
        f"{tables.ratio(each['two at once'][both], each['two at once'][one]):.1f}" for each in found
    ]
    told = "takes {} and {} ms, but two requests at once then take {} and {} times as long"
    assert told.format(*alone, *at_once) in PROSE


def test_the_page_compares_decoding_with_nematus():
    found = figures("once/decoding_rnn")
    assert (
        f"translates {tables.ratio(found['speeds']['ours'], found['speeds']['Nematus']):.1f} times as many"
        in PROSE
    )
    assert (
        f"{found['translations']['Nematus']['equal']} of the 1,000 translations are equal" in PROSE
    )
