"""A new architecture needs one module and one line in the registry; then it trains, translates and
exports.
"""

import pytest
import tensorflow as tf


@pytest.mark.slow
def test_a_new_architecture_trains_scores_translates_and_exports(
    bigrams, run, write_lines, dictionary, tmp_path
):
    for name, lines in {
        "train.en": ["a", "b"],
        "train.de": ["d c b"] * 2,
        "dev.en": ["c"],
        "dev.de": ["d c b"],
    }.items():
        write_lines(name, lines)
    texts = [f"--{text}_dataset" for text in ("source", "target", "valid_source", "valid_target")]
    names = ["train.en", "train.de", "dev.en", "dev.de"]
    status, _, said = run(
        *(
            "train",
            "-m",
            "model",
            "--model_type",
            "bigrams",
            "--dictionaries",
            dictionary,
            dictionary,
        ),
        *(word for pair in zip(texts, names, strict=True) for word in pair),
        *(
            "--finish_after",
            60,
            "--learning_rate",
            0.1,
            "--translation_maxlen",
            5,
            "--batch_size",
            2,
            "--maxlen",
            7,
        ),
    )
    assert status == 0, said
    status, _, said = run("translate", "-m", "model", "-i", "dev.en", "-o", "out")
    assert status == 0, said
    assert (tmp_path / "out").read_text() == "d c b\n"
    assert run("score", "-m", "model", "-s", "dev.en", "-t", "dev.de", "-o", "costs")[0] == 0
    assert 0 < float((tmp_path / "costs").read_text()) < 1
    assert run("export", "-m", "model", "--to", "saved")[0] == 0
    serve = tf.saved_model.load(tmp_path / "saved").signatures["serving_default"]
    assert serve(sources=tf.constant(["a"]))["translations"].numpy().tolist() == [b"d c b"]
