"""The curves of the Transformer on Multi30k."""

import dataclasses
import importlib.util
import json
from pathlib import Path

from nmt.config import make_config

ROOT = Path(__file__).parents[2]


def test_the_table_of_the_docs_is_that_of_the_kept_figures():
    spec = importlib.util.spec_from_file_location("kept_models", ROOT / "benchmarks" / "kept_models.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    figures = json.loads((ROOT / "benchmarks" / "results" / "transformer_multi30k.json").read_text())
    rows = [module.table_row(name, each) for name, found in figures.items() for each in found["validations"]]
    assert len(rows) > 10
    assert "\n".join(rows) in (ROOT / "docs" / "transformer.md").read_text()


def test_the_options_of_the_example_are_those_of_the_kept_trainings():
    given = json.loads((ROOT / "examples" / "transformer-multi30k.json").read_text())
    example = json.loads(json.dumps(dataclasses.asdict(make_config(given))))
    figures = json.loads((ROOT / "benchmarks" / "results" / "transformer_multi30k.json").read_text())
    for found in figures.values():
        # One training went on after its end, the kinds differ, and the batches of validation change speed alone.
        free = {"finish_after", "layer_normalization_type", "valid_batch_size"}
        named = example.keys() & found["options"].keys() - free
        assert len(named) > 40
        assert {name: found["options"][name] for name in named} == {name: example[name] for name in named}
