"""The commands, from text to translation, and their messages about mistakes."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu
import tensorflow as tf

LINES = ["a b c d", "b c d a", "c d a b", "d a b c", "a a b b", "c c d d"]


@pytest.fixture
def train(run, write_lines, bigrams):
    """Trains a model, in `model`, for two updates; more options may be given."""

    def train(*words, model_type="bigrams"):
        for name in ("train.en", "train.de", "dev.en", "dev.de"):
            write_lines(name, LINES)
        run("vocab", "--source_dataset", "train.en", "--target_dataset", "train.de", "--to", "vocab", "--size", 10)
        files = [
            *("--source_dataset", "train.en", "--target_dataset", "train.de"),
            *("--valid_source_dataset", "dev.en", "--valid_target_dataset", "dev.de"),
            *("--dictionaries", "vocab/source.model", "vocab/target.model"),
        ]
        sizes = ["--embedding_size", 4, "--state_size", 4, "--valid_freq", 2, "--translation_maxlen", 8]
        return run("train", "-m", "model", "--model_type", model_type, *files, *sizes, "--finish_after", 2, *words)

    return train


def test_from_text_to_translations(run, train, tmp_path, write_lines):
    status, _, said = train(model_type="rnn")
    assert status == 0, said
    assert "6 of 6 sentence pairs are used" in said
    assert "warning: 6 of the 6 validation pairs are also training pairs" in said
    assert "stopped after update 2" in said
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert {"config.json", "versions.json", "source.model", "target.model", "best.npz", "last.npz"} <= names
    assert "tensorflow" in json.loads((tmp_path / "model" / "versions.json").read_text())

    text = write_lines("text", ["a b", "", *LINES])
    status, output, _ = run("translate", "-m", "model", "-i", text, "-k", 2, "-b", 3)
    lines = output.split("\n")
    assert (status, len(lines), lines[1], lines[-1]) == (0, 9, "", "")
    assert run("translate", "-m", "model", "-i", text, "-o", "out", "-k", 2)[0] == 0
    assert (tmp_path / "out").read_text() == output

    status, output, _ = run("translate", "-m", "model", "-i", text, "-k", 2, "--n_best", "-n")
    beams = [line.split(" ||| ") for line in output.splitlines()]
    assert status == 0
    assert [beam[0] for beam in beams] == sorted(beam[0] for beam in beams)
    assert [beam[1:] for beam in beams if beam[0] == "1"] == [["", "0.000000"]]
    assert {beam[0] for beam in beams} == {str(number) for number in range(8)}

    status, output, _ = run("score", "-m", "model", "-s", text, "-t", text)
    costs = np.array([float(line) for line in output.splitlines()])
    assert (status, len(costs)) == (0, 8)
    normalized = [float(line) for line in run("score", "-m", "model", "-s", text, "-t", text, "-n")[1].splitlines()]
    np.testing.assert_allclose(normalized[1], costs[1], rtol=1e-5)  # the empty line: nothing but its end
    assert (normalized[2:] < costs[2:] / 4).all()

    assert run("export", "-m", "model", "--to", "saved")[0] == 0
    assert (tmp_path / "saved" / "saved_model.pb").exists()
    status, _, said = run("export", "-m", "model", "--to", "saved")
    assert (status, said) == (2, "nmt: saved exists already; remove it or give another path\n")


def test_a_transformer_trains_resumes_and_translates(run, training, tmp_path):
    rnn = training.index("--rnn_dropout_hidden")
    words = [*training[:rnn], *training[rnn + 2 :], "-m", "model", "--model_type", "transformer"]
    words += ["--transformer_num_heads", 2, "--transformer_enc_depth", 1, "--transformer_dec_depth", 1]
    words += ["--transformer_ffn_hidden_size", 8, "--learning_schedule", "warmup-plateau-decay", "--warmup_steps", 3]
    assert run(*words, "--finish_after", 2)[0] == 0
    status, _, said = run(*words, "--finish_after", 4)
    assert (status, "stopped after update 4" in said) == (0, True)
    status, _, said = run(*words, "--transformer_ffn_hidden_size", 16)
    assert (status, "other values of transformer_ffn_hidden_size" in said) == (2, True)
    status, out, _ = run("translate", "-m", "model", "-i", "dev.en")
    assert (status, out.count("\n")) == (0, 64)


def test_a_joint_vocabulary_trains_a_model_with_one_embedding(run, training, tmp_path):
    texts = ("--source_dataset", "train.en", "--target_dataset", "train.de")
    assert run("vocab", *texts, "--joint", "--size", 8, "--to", "vocab")[0] == 0
    names = [f"vocab/{side}.model" for side in ("source", "target")]
    assert len({(tmp_path / name).read_bytes() for name in names}) == 1
    words = (*training, "--tie_encoder_decoder_embeddings", "--finish_after", 2)
    assert run(*words, "-m", "one", "--dictionaries", *names)[0] == 0
    with np.load(tmp_path / "one" / "best.npz") as saved:
        assert [name for name in saved if name.endswith("embeddings")] == ["encoder/embedding/embeddings"]
    assert run("vocab", *texts, "--size", 9, "--to", "others")[0] == 0
    status, _, said = run(*words, "-m", "two", "--dictionaries", names[0], "others/target.model")
    assert (status, said.count("\n")) == (2, 1)
    assert "--tie_encoder_decoder_embeddings needs one vocabulary" in said


def test_nematus_dictionaries_are_copied(run, dictionary, tmp_path):
    assert run("vocab", "--dictionaries", dictionary, dictionary, "--to", "vocab")[0] == 0
    for side in ("source", "target"):
        assert (tmp_path / "vocab" / f"{side}.json").read_bytes() == dictionary.read_bytes()


def test_a_training_resumes_only_with_the_same_data_and_model(train):
    assert train()[0] == 0
    status, _, said = train("--finish_after", 4)
    assert status == 0
    assert "stopped after update 4" in said
    status, _, said = train("--batch_size", 9, "--maxlen", 7)
    assert status == 2
    assert "with other values of maxlen, batch_size" in said


def test_a_training_may_resume_with_another_learning_rate(train, tmp_path):
    """Adam's steps are as large as its learning rate."""

    def table():
        with np.load(tmp_path / "model" / "last.npz") as saved:
            return saved["table"]

    assert train()[0] == 0
    before = table()
    status, _, said = train("--finish_after", 3, "--learning_rate", 0.5, "--valid_freq", 3)
    assert status == 0
    assert "resuming with --learning_rate 0.5; it was 0.0001" in said
    assert "resuming with --valid_freq 3; it was 2" in said
    assert 0.4 < np.abs(table() - before).max() < 0.6
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert (config["learning_rate"], config["valid_freq"]) == (0.5, 3)


def test_a_diverging_training_is_reported(train):
    status, _, said = train("--learning_rate", 1e6)
    assert status == 2
    assert "nmt: the training diverges: the validation loss is " in said
    assert "and guessing alone would give 2.3" in said  # log 10


def test_text_without_spaces_needs_another_tokenizer(train, write_lines):
    write_lines("japanese", ["これはペンです", "猫が好きです"])
    texts = ("--valid_source_dataset", "japanese", "--valid_target_dataset", "japanese")
    assert "give --valid_tokenizer char or --valid_metric chrf" in train(*texts)[2]
    assert "--valid_tokenizer char" not in train(*texts, "--valid_tokenizer", "char", "-m", "other")[2]


def test_a_training_resumes_if_its_files_have_moved(train, write_lines):
    assert train()[0] == 0
    write_lines("moved.en", LINES)
    gone = ["--dictionaries", "gone/source.model", "gone/target.model"]  # the training has its own copies
    status, _, said = train("--finish_after", 4, "--source_dataset", "moved.en", *gone)
    assert (status, "stopped after update 4" in said) == (0, True)
    write_lines("moved.en", LINES[::-1])
    status, _, said = train("--finish_after", 6, "--source_dataset", "moved.en")
    assert status == 2
    assert "model holds a training with other contents of source_dataset; give the same" in said
    other_kind = ["--dictionaries", "words.json", "words.json"]
    assert "with other values of dictionaries" in train("--finish_after", 6, *other_kind)[2]


def test_missing_digests_are_written_when_a_training_resumes(train, tmp_path):
    assert train()[0] == 0
    digests = (tmp_path / "model" / "files.json").read_bytes()
    (tmp_path / "model" / "files.json").unlink()
    assert train("--finish_after", 4)[0] == 0
    assert (tmp_path / "model" / "files.json").read_bytes() == digests


def test_a_training_without_its_best_model_says_so(train, tmp_path, monkeypatch):
    falling = (SimpleNamespace(score=score) for score in (2.0, 1.0))
    monkeypatch.setattr(sacrebleu.BLEU, "corpus_score", lambda *_: next(falling))
    monkeypatch.setattr(sacrebleu.BLEU, "get_signature", lambda _: "scripted")
    assert "model/best.npz keeps it" in train("--finish_after", 4)[2]
    (tmp_path / "model" / "best.npz").unlink()
    status, _, said = train("--finish_after", 4)
    assert (status, "after update 2; there is no model/best.npz" in said) == (0, True)


def test_other_files_in_logs_are_kept(train, tmp_path):
    (tmp_path / "model" / "logs").mkdir(parents=True)
    (tmp_path / "model" / "logs" / "notes").write_text("mine")
    for _ in range(2):
        assert train()[0] == 0
    names = [path.name for path in (tmp_path / "model" / "logs").iterdir()]
    assert sorted(name.split(".")[0] for name in names) == ["events", "notes"]


def test_a_training_that_fails_at_once_leaves_no_directory(train, tmp_path):
    status, _, said = train("--valid_source_dataset", "nowhere")
    assert status == 2
    assert "the text nowhere does not exist; give a text file" in said
    assert not (tmp_path / "model").exists()


def test_output_goes_into_a_pipe_and_through_a_link(run, trained, tmp_path):
    (tmp_path / "text").write_text("a b\n")
    assert run("translate", "-m", "model", "-i", "text", "-o", "plain")[0] == 0
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    read = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    assert run("translate", "-m", "model", "-i", "text", "-o", "pipe")[0] == 0
    expected = (tmp_path / "plain").read_bytes()
    assert read.communicate(timeout=60)[0] == expected
    assert (tmp_path / "pipe").is_fifo()
    assert run("translate", "-m", "model", "-i", "text", "-o", "link")[0] == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == expected


def test_closed_standard_streams_are_refused(run, trained, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert run("translate", "-m", "model")[::2] == (2, "nmt: standard input is closed; give --input FILE\n")


def test_the_command_line_overrides_the_config_file(train, tmp_path):
    (tmp_path / "options.json").write_text('{"finish_after": 9, "maxlen": 50}')
    assert train("--config", "options.json")[0] == 0
    saved = json.loads((tmp_path / "model" / "config.json").read_text())
    assert (saved["finish_after"], saved["maxlen"]) == (2, 50)


def test_a_missing_kind_names_the_patch_command(run, train):
    """A kind that no tree has is refused as `rmsnorm` is in the pristine tree."""
    status, _, said = train("--layer_normalization_type", "spectralnorm")
    assert status == 2
    assert "python patches/apply.py apply" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("translate -m nowhere", "nmt: nowhere holds no model"),
        ("score -m nowhere -s a -t b", "nmt: nowhere holds no model"),
        ("export -m nowhere --to there", "nmt: nowhere holds no model"),
        ("vocab --source_dataset a --target_dataset b --to v", "nmt: there is no text a"),
        ("translate -m nowhere -n nan", "argument -n/--normalization_alpha: 'nan' is not a number of at least 0"),
        ("vocab --dictionaries words.json words.json --to words.json", "nmt: FileExistsError"),
        ("vocab --dictionaries a.json b.json --joint --to v", "nmt: --joint trains a vocabulary and --dictionaries"),
        ("vocab --source_dataset a --to v", "nmt: give --source_dataset and --target_dataset, or --dictionaries"),
        ("vocab --dictionaries a.json b.json --to v", "nmt: there is no vocabulary a.json"),
        ("train -m model --config none.json", "nmt: none.json cannot be read"),
        ("train -m model --batch_size many", "python -m nmt train: argument --batch_size: invalid int value: 'many'"),
        ("translate -m model -k 0", "argument -k/--beam_size: '0' is not a whole number above 0"),
        ("translate -m one -m two", "argument -m/--model: it was given twice; give it once"),
        ("translate -m nowhere --beem 3", "unrecognized arguments: --beem 3; see python -m nmt translate --help"),
        ("corpus other --to there", "argument name: invalid choice: 'other'"),
        ("", "the following arguments are required: COMMAND"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(run, dictionary, tmp_path, words, said):
    status, output, error = run(*words.split())
    assert (status, output) == (2, "")
    assert said in error
    assert error.count("\n") == 1
    assert not list(tmp_path.rglob("*.npz"))


def test_a_model_without_its_best_checkpoint_is_refused(run, trained, tmp_path):
    (tmp_path / "model" / "best.npz").unlink()
    status, _, said = run("translate", "-m", "model")
    assert status == 2
    assert said.startswith("nmt: there is no checkpoint")


def test_a_model_without_its_last_checkpoint_is_not_overwritten(run, trained, tmp_path):
    (tmp_path / "model" / "last.npz").unlink()
    best = (tmp_path / "model" / "best.npz").read_bytes()
    status, _, said = run(*trained)
    assert (status, (tmp_path / "model" / "best.npz").read_bytes()) == (2, best)
    assert "holds a model but no last.npz" in said


def test_a_training_without_checkpoints_may_restart_with_other_vocabularies(run, train, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "source.model").write_text("what another training left")
    assert train()[0] == 0
    assert run("translate", "-m", "model", "-i", "train.en", "-k", 1)[0] == 0


@pytest.mark.parametrize(
    ("output", "said"), [(".", ". is a directory"), ("no/where", "no/where cannot be written: No such file")]
)
def test_a_bad_output_path_leaves_no_output(run, trained, tmp_path, output, said):
    before = sorted(path for path in tmp_path.rglob("*"))
    status, _, error = run("translate", "-m", "model", "-i", "train.en", "-o", output)
    assert status == 2
    assert said in error
    assert "Traceback" not in error
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_a_missing_input_leaves_no_output(run, trained, tmp_path):
    status, _, said = run("translate", "-m", "model", "-i", "none", "-o", "out")
    assert (status, said) == (2, "nmt: the text none does not exist; give a text file\n")
    assert not list(tmp_path.glob("out*"))


def test_a_training_begins_with_the_weights_of_another(train, dictionary, tmp_path):
    def table(path):
        with np.load(tmp_path / path) as saved:
            return saved["table"]

    assert train("--learning_rate", 0.1)[0] == 0
    assert train("--reload", "model", "-m", "tuned", "--learning_rate", 1e-4, "--batch_size", 3)[0] == 0
    moved = np.abs(table("tuned/last.npz") - table("model/best.npz"))
    assert 0 < moved.max() < 3e-4  # two updates
    status, _, said = train("--reload", "nowhere", "-m", "other")
    assert (status, "there is no checkpoint nowhere/best.npz" in said) == (2, True)
    words = ("--dictionaries", dictionary, dictionary)
    status, _, said = train("--reload", "model", "-m", "other", *words)
    assert (status, "was made with another source vocabulary, another target vocabulary" in said) == (2, True)


def test_an_ensemble_translates_scores_and_is_exported(run, train, tmp_path):
    assert train()[0] == 0
    assert train("-m", "other", "--seed", 2, "--learning_rate", 0.1)[0] == 0
    costs = []
    for models in (["model"], ["other"], ["model", "other"]):
        status, output, _ = run("score", "-m", *models, "-s", "dev.en", "-t", "dev.de")
        assert status == 0
        costs.append([float(line) for line in output.splitlines()])
    np.testing.assert_allclose(costs[2], np.add(*costs[:2]), rtol=1e-5)
    assert run("translate", "-m", "model", "other", "-i", "dev.en", "-o", "out")[0] == 0
    assert run("export", "-m", "model", "other", "--to", "saved")[0] == 0
    serve = tf.saved_model.load(tmp_path / "saved").signatures["serving_default"]
    served = serve(sources=tf.constant(LINES))["translations"].numpy()
    assert [line.decode() for line in served] == (tmp_path / "out").read_text().splitlines()


def test_models_of_an_ensemble_need_the_same_vocabularies(run, train, dictionary):
    assert train()[0] == 0
    assert train("-m", "other", "--dictionaries", dictionary, dictionary)[0] == 0
    status, _, said = run("translate", "-m", "model", "other", "-i", "dev.en")
    assert (status, "model and other have different vocabularies" in said) == (2, True)


def test_kept_models_are_averaged(run, train, tmp_path):
    def table(path):
        with np.load(tmp_path / path) as saved:
            return saved["table"]

    assert train("--keep", 2, "--finish_after", 6, "--learning_rate", 0.1)[0] == 0
    kept = sorted(path.name for path in (tmp_path / "model" / "kept").iterdir())
    assert kept == ["4.npz", "6.npz"]
    assert run("average", "-m", "model", "--to", "mean")[::2] == (0, "mean: the average of updates 4, 6\n")
    expected = (table("model/kept/4.npz") + table("model/kept/6.npz")) / 2
    np.testing.assert_allclose(table("mean/best.npz"), expected, rtol=1e-6)
    assert run("translate", "-m", "mean", "-i", "dev.en", "-o", "out")[0] == 0
    said = run("average", "-m", "model", "--last", 3, "--to", "other")
    assert said[::2] == (2, "nmt: model holds 2 kept models; train with --keep 3\n")


def test_curves_are_drawn_side_by_side(run, trained, tmp_path):
    pytest.importorskip("matplotlib")
    assert run("curves", "model", "model", "--to", "curves.svg")[0] == 0
    assert (tmp_path / "curves.svg").read_bytes().startswith(b"<?xml")
    assert run("curves", "nowhere", "--to", "curves.png")[::2] == (
        2,
        "nmt: nowhere has no validations: its progress.json is missing or damaged\n",
    )
    assert run("curves", "model", "--to", "curves.txt")[::2] == (2, "nmt: curves.txt must end in .png or .svg\n")
