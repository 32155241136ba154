"""`python -m nmt train`: resuming with the same or other options and files, and the messages of
the command."""

import gzip
import json
import sys

import numpy as np
import pytest

from tests.nmt.conftest import LINES
from tests.nmt.outcomes import refused, weights


def test_a_training_resumes_only_with_the_same_data_and_model(train, tmp_path):
    assert train()[0] == 0
    status, _, said = train("--finish_after", 4)
    assert status == 0
    assert "stopped after update 4: " in said
    status, _, said = train("--batch_size", 9, "--maxlen", 7)
    assert status == 2
    assert "--maxlen 100, not 7; --batch_size " in said
    assert "--reload model --reload_training_p" in said
    before = (tmp_path / "model" / "config.json").read_bytes()
    assert "4 updates, and --finish_after 3" in refused(train("--finish_after", 3))
    assert (tmp_path / "model" / "config.json").read_bytes() == before


def test_a_training_may_resume_with_other_options(train, tmp_path):
    """Adam's steps are as large as its learning rate."""
    assert train()[0] == 0
    before = weights(tmp_path / "model" / "last.npz")["table"]
    options = {
        "learning_rate": 0.5,
        "valid_freq": 3,
        "translation_maxlen": 9,
        "beam_size": 2,
        "normalization_alpha": 0.5,
        "valid_batch_size": 3,
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    status, _, said = train("--finish_after", 3, *words)
    assert status == 0, said
    assert "resumes after update 2\n" in said
    assert "--learning_rate 0.5; it was 0.0001" in said
    assert "--translation_maxlen 9; it was 8" in said
    assert 0.4 < np.abs(weights(tmp_path / "model" / "last.npz")["table"] - before).max() < 0.6
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert {name: config[name] for name in options} == options


@pytest.mark.slow
def test_smoothed_weights_are_validated_and_kept(train, tmp_path):
    """The best model has them; the training resumes from both."""

    options = ("--exponential_smoothing", 0.01, "--learning_rate", 0.1)
    for name, updates in (("at once", 4), ("resumed", 2), ("resumed", 4)):
        assert train(*options, "-m", name, "--finish_after", updates)[0] == 0
    last = weights(tmp_path / "at once/last.npz")
    best = weights(tmp_path / "at once/best.npz")
    np.testing.assert_array_equal(best["table"], last["smoothed/table"])
    assert np.abs(last["table"] - best["table"]).max() > 1e-3
    resumed = weights(tmp_path / "resumed/last.npz")
    assert last.keys() == resumed.keys()
    assert all(np.array_equal(last[name], resumed[name]) for name in last)


def test_a_diverging_training_is_reported(train):
    status, _, said = train("--learning_rate", 1e6)
    assert status == 2
    assert "nmt: the training diverges: " in said
    assert "and guessing alone would give 2.3" in said  # log 10


@pytest.mark.slow
def test_text_without_spaces_needs_another_tokenizer(train, write_lines):
    write_lines("japanese", ["これはペンです", "猫が好きです"])
    texts = ("--valid_source_dataset", "japanese", "--valid_target_dataset", "japanese")
    assert "give --valid_tokenizer char" in train(*texts)[2]
    assert (
        "--valid_tokenizer char" not in train(*texts, "--valid_tokenizer", "char", "-m", "other")[2]
    )


@pytest.mark.slow
def test_a_training_resumes_if_its_files_have_moved(train, write_lines):
    assert train()[0] == 0
    write_lines("moved.en", LINES)
    gone = [
        "--dictionaries",
        "gone/source.model",
        "gone/target.model",
    ]  # the training has its own copies
    status, _, said = train("--finish_after", 4, "--source_dataset", "moved.en", *gone)
    assert (status, "stopped after update 4" in said) == (0, True)
    write_lines("moved.en", LINES[::-1])
    assert "other contents of source_dataset" in refused(
        train("--finish_after", 6, "--source_dataset", "moved.en")
    )
    said = train("--finish_after", 6, "--dictionaries", "words.json", "words.json")[2]
    assert ", not words.json words.json" in said


@pytest.mark.slow
def test_shards_train_the_same_model_and_resume(train, tmp_path):
    """Compressed ones, named by a pattern."""
    assert train("--learning_rate", 0.1, "--finish_after", 4)[0] == 0
    for side in ("en", "de"):
        for number, lines in enumerate((LINES[:2], LINES[2:])):
            content = "".join(f"{line}\n" for line in lines).encode()
            (tmp_path / f"part-{number}.{side}.gz").write_bytes(gzip.compress(content))
    texts = ("--source_dataset", "part-*.en.gz", "--target_dataset", "part-*.de.gz")
    shards = ("-m", "shards", "--learning_rate", 0.1, *texts)
    for updates in (2, 4):
        assert train(*shards, "--finish_after", updates)[0] == 0
    np.testing.assert_array_equal(
        *(weights(tmp_path / name / "last.npz")["table"] for name in ("shards", "model"))
    )
    assert "--dataset_weights None, not 2.0; " in refused(train(*shards, "--dataset_weights", 2))


@pytest.mark.slow
def test_a_training_without_checkpoints_may_restart_with_other_vocabularies(run, train, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "source.model").write_text("what another training left")
    assert train()[0] == 0
    assert run("translate", "-m", "model", "-i", "train.en", "-k", 1)[0] == 0


@pytest.mark.slow
def test_a_transformer_with_one_embedding_trains_resumes_and_translates(run, training, tmp_path):
    texts = ("--source_dataset", "train.en", "--target_dataset", "train.de")
    assert run("vocab", *texts, "--joint", "--size", 8, "--to", "vocab")[0] == 0
    names = [f"vocab/{side}.model" for side in ("source", "target")]
    assert len({(tmp_path / name).read_bytes() for name in names}) == 1
    words = [
        *training,
        "--model_type",
        "transformer",
        "-m",
        "model",
        "--tie_encoder_decoder_embeddings",
    ]
    words += [
        "--transformer_num_heads",
        2,
        "--transformer_enc_depth",
        1,
        "--transformer_dec_depth",
        1,
    ]
    words += [
        "--transformer_ffn_hidden_size",
        8,
        "--learning_schedule",
        "warmup-plateau-decay",
        "--warmup_steps",
        3,
    ]
    assert run(*words, "--dictionaries", *names, "--finish_after", 2)[0] == 0
    with np.load(tmp_path / "model" / "best.npz") as saved:
        assert [name for name in saved if name.endswith("embeddings")] == [
            "encoder/embedding/embeddings"
        ]
    status, _, said = run(*words, "--dictionaries", *names, "--finish_after", 4)
    assert (status, "stopped after update 4" in said) == (0, True)
    status, _, said = run(*words, "--dictionaries", *names, "--transformer_ffn_hidden_size", 16)
    assert (
        status,
        "_ffn_hidden_size 8, not 16; " in said,
    ) == (
        2,
        True,
    )
    status, out, _ = run("translate", "-m", "model", "-i", "dev.en")
    assert (status, out.count("\n")) == (0, 64)


def test_one_embedding_needs_one_vocabulary(run, training):
    texts = ("--source_dataset", "train.en", "--target_dataset", "train.de")
    assert run("vocab", *texts, "--size", 9, "--to", "others")[0] == 0
    names = ("others/source.model", "words.json")
    status, _, said = run(
        *training, "--tie_encoder_decoder_embeddings", "-m", "model", "--dictionaries", *names
    )
    assert (status, said.count("\n")) == (2, 1)
    assert "_decoder_embeddings needs the same" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--valid_tokenizer", "ja-mecab"), "nmt: --valid_tokenizer ja-mecab cannot be used"),
        (
            ("--valid_target_prefixes", "a a a a a a"),
            "nmt: --valid_target_prefixes has 'a a a a a a', of 6 tokens, and",
        ),
        (
            ("--target_prefixes", "a", "b"),
            "nmt: --target_prefixes has 2 values and --target_dataset 1 files",
        ),
    ],
)
def test_mistakes_in_options_are_named_before_texts_are_read(
    run, training, tmp_path, monkeypatch, options, said
):
    (tmp_path / "train.de").write_bytes(b"\xff\n")
    monkeypatch.setitem(sys.modules, "MeCab", None)
    status, _, message = run(*training, "-m", "model", *options)
    assert (status, message.count("\n")) == (2, 1)
    assert said in message


def test_texts_that_cannot_be_learned_from_are_warned_of(run, training, tmp_path):
    (tmp_path / "dev.en").write_text("x y a\n" * 64)
    (tmp_path / "train.en").write_text("x y z a\n" * 64)
    (tmp_path / "dev.de").write_text("\n" * 64)
    texts = (
        "--valid_source_dataset",
        "dev.en",
        "dev.en",
        "--valid_target_dataset",
        "dev.de",
        "dev.de",
    )
    prefixes = ("--target_prefixes", "a <bt>", "--valid_target_prefixes", "a", " a")
    status, _, said = run(*training, "-m", "model", "--finish_after", 1, *texts, *prefixes)
    assert status == 0, said
    assert said.count("_prefixes has ' a', which has") == 1
    assert said.count("_prefixes has") == 3
    assert "--target_prefixes has 'a <bt>'" in said
    assert "warning: all target lines of " in said
    assert "warning: 67% of the tokens " in said
    assert "warning: 75% of the tokens " in said
    assert "target side of the" not in said
