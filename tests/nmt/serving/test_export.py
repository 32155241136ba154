"""From `python -m nmt export` to the responses of `python -m nmt serve`."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the operations of the tokenizer

from nmt.serving.service.loaded_model import load_export

GOLDEN = Path(__file__).parents[2] / "data" / "golden" / "models"
LINES = [
    (GOLDEN / f"test.{language}").read_text("utf-8").splitlines()[:12] for language in ("en", "de")
]


@pytest.mark.slow
def test_the_service_answers_what_the_signatures_of_the_export_compute(
    run, start_service, tmp_path
):
    export = tmp_path / "models" / "demo" / "1"
    status, _, said = run(
        "export",
        "-m",
        GOLDEN / "layernorm",
        "--to",
        export,
        "-n",
        "-k",
        3,
        "--languages",
        "en",
        "de",
    )
    assert (status, "models/demo/1 holds the SavedModel" in said) == (0, True), said
    service = start_service(tmp_path / "models")
    signatures = tf.saved_model.load(str(export)).signatures
    assert set(signatures) == {
        "serving_default",
        "n_best",
        "with_prefix",
        "score",
        "tokens",
        "attention",
    }
    functions = load_export(export).signatures
    joined = {name for name, function in functions.items() if function.joinable}
    assert joined == {*signatures} - {"attention"}  # its padding follows from all rows
    for name, function in signatures.items():
        inputs = dict(zip(("sources", "targets", "prefixes"), (*LINES, LINES[1]), strict=True))
        inputs = {each: inputs[each] for each in function.structured_input_signature[1]}
        expected = function(**{each: tf.constant(lines) for each, lines in inputs.items()})
        status, answer = service.predict({"signature_name": name, "inputs": inputs}, "demo")
        assert status == 200, answer
        found = (
            answer["outputs"] if len(expected) > 1 else {next(iter(expected)): answer["outputs"]}
        )
        assert set(found) == set(expected)
        for key, values in expected.items():
            if values.dtype == tf.string:
                assert np.char.encode(found[key], "utf-8").tolist() == values.numpy().tolist()
            else:
                np.testing.assert_allclose(
                    found[key], values, rtol=1e-4, atol=1e-6, err_msg=f"{name} {key}"
                )

    with ThreadPoolExecutor(len(LINES[0])) as callers:
        answers = list(
            callers.map(lambda line: service.predict({"instances": [line]}, "demo"), LINES[0])
        )
    best = (
        signatures["serving_default"](sources=tf.constant(LINES[0]))["translations"]
        .numpy()
        .tolist()
    )
    assert [answer["predictions"][0]["translations"].encode() for _, answer in answers] == best


@pytest.mark.slow
def test_the_service_shows_the_model_card(run, start_service, tmp_path):
    words = ["export", "-m", GOLDEN / "layernorm", "--to"]
    assert (
        run(*words, tmp_path / "models" / "named" / "1", "-k", 3, "--languages", "Pirate", "nds")[0]
        == 0
    )
    assert run(*words, tmp_path / "models" / "other" / "7")[0] == 0
    named, other = start_service(tmp_path / "models").get("/v1/models")[1]["models"]
    assert (named["name"], named["version"], other["name"], other["version"]) == (
        "named",
        "1",
        "other",
        "7",
    )
    assert named["card"]["languages"] == {"source": "Pirate", "target": "nds"}
    assert other["card"]["languages"] == {
        "source": "en",
        "target": "de",
    }  # the endings of the training texts
    assert (named["card"]["search"]["beam_size"], other["card"]["search"]["beam_size"]) == (3, 5)
    for model in (named, other):
        assert model["signatures"] == [
            "attention",
            "n_best",
            "score",
            "serving_default",
            "tokens",
            "with_prefix",
        ]
        assert (model["card"]["architecture"], model["card"]["normalization"]) == (
            "rnn",
            "layernorm",
        )
        assert model["card"]["sizes"]["state"] == 12
        assert model["card"]["limits"]["sentence_tokens"] == 1000
        assert model["card"]["models"][0]["validation"]["update"] == 150
