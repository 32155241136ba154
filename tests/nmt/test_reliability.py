"""The commands when something goes wrong: full disks, bad texts, strange lines."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from nmt.config import make_config
from nmt.decoding.options import DecodingOptions
from nmt.decoding.scoring import Scorer
from nmt.storage.checkpoints import BEST, save_checkpoint
from nmt.storage.files import exclusive
from nmt.system import build_system, load_system, save_system
from nmt.text.batches import LONGEST
from tests.nmt.outcomes import refused

# ---- The disk ----

FULL_AT_VALIDATION = """
import resource, sacrebleu
score = sacrebleu.BLEU.corpus_score
def full_disk(*arguments, **options):
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    return score(*arguments, **options)
sacrebleu.BLEU.corpus_score = full_disk
"""


def test_a_full_disk_while_saving_leaves_the_last_good_checkpoint(
    start, trained, tmp_path, contents
):
    before = contents(tmp_path / "model")
    more = [*trained, "--finish_after", 35]
    os.mkfifo(tmp_path / "errors")  # has no limit of size
    process = start(tmp_path, more, first=FULL_AT_VALIDATION)
    said = (tmp_path / "errors").read_text()
    process.join()
    assert process.exitcode == 2
    last = said.splitlines()[-1]
    assert last.startswith("nmt: model/last.npz cannot be ") and os.strerror(errno.EFBIG) in last
    after = contents(tmp_path / "model")
    assert [after[name] == before[name] for name in ("best.npz", "last.npz")] == [True, True]
    assert after.keys() == before.keys()
    process = start(tmp_path, more, files=(os.devnull, "output", os.devnull))
    process.join()
    assert process.exitcode == 0


def test_a_full_disk_while_exporting_leaves_nothing(run, full_disk, trained, tmp_path):
    with full_disk():
        said = refused(run("export", "-m", "model", "--to", "saved/en-de/1"))
    assert said.startswith("nmt: saved/en-de/1 cannot be written: ")
    assert said.endswith(f"{os.strerror(errno.EFBIG)}\n")
    assert not (tmp_path / "saved").exists()


def test_a_locked_or_read_only_directory_is_refused(run, trained, tmp_path):
    with exclusive(tmp_path / "model"):
        assert "nmt: model is in use by another" in refused(run(*trained))
    assert "words.json cannot be written to" in refused(run(*trained, "-m", "words.json"))


# ---- Texts ----


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"train.en": b"a\n"}, "train.en has 1 lines and train.de has 64"),
        ({"train.en": b"", "train.de": b""}, "train.en and train.de are empty"),
        ({"dev.en": b"", "dev.de": b""}, "dev.en and dev.de are empty"),
        ({"train.de": b"a\n" * 63 + b"\xff\n"}, "train.de, line 64 is not UTF-8"),
        ({"dev.en": b"a\n" * 8 + b"\xff\n" + b"a\n" * 55}, "dev.en, line 9 is not UTF-8"),
        (
            {"train.en": b"a b c d a b c d\n" * 64},
            "none of the 64 sentence pairs has 1 to 7 tokens on both sides;",
        ),
    ],
)
def test_unusable_texts_are_refused(run, training, tmp_path, texts, said):
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text)
    assert refused(run(*training, "-m", "model")).startswith(f"nmt: {said}")
    assert not list(tmp_path.rglob("*.npz"))


def test_texts_with_strange_lines_are_trained_on(run, training, tmp_path):
    """A byte order mark, carriage returns and NUL do no harm.

    A line of a megabyte is counted as too long.
    """
    lines = ["\ufeffa b\r", "a\0b c\r", "\0", "", "a " * 500_000, "d"]
    for name in ("train.en", "train.de"):
        (tmp_path / name).write_bytes("\n".join(lines).encode())
    (tmp_path / "dev.en").write_bytes(b"\xef\xbb\xbfa b\r\nb a\r\n")
    (tmp_path / "dev.de").write_text("a b\na b\n")
    status, _, said = run(*training, "-m", "model", "--finish_after", 1)
    assert status == 0, said
    assert "4 of 6 sentence pairs are used; " in said
    assert "1 of the 2 validation pairs" in said


NOTE_MEMORY = """
import tensorflow
scalar = tensorflow.summary.scalar
def noted(*arguments, **options):  # called last by the validation at the end
    with open("/proc/self/status") as status, open("memory", "w") as file:
        [line] = [line for line in status if line.startswith("RssAnon:")]
        file.write(line.split()[1])
    return scalar(*arguments, **options)
tensorflow.summary.scalar = noted
"""


@pytest.mark.slow
def test_a_corpus_is_not_held_in_memory(start, rnn_training, tmp_path):
    """With thirty times as many pairs, memory (in KiB) grows by less than half of the additional
    text, without the pages of mapped files, which the system may drop. Memory that was freed
    counts: `nmt` keeps it.
    """
    held = []
    sizes = []
    for count in (10**5, 10**5, 3 * 10**6):  # the first one compiles, which takes more memory
        for name in ("train.en", "train.de"):
            lines = (
                f"{'a b c d '[: 2 + 2 * (i % 4)]}{i % 1009:04d}{'.' * 50}\n" for i in range(count)
            )
            (tmp_path / name).write_text("".join(lines))
        process = start(
            tmp_path,
            [*rnn_training, "-m", f"model{len(held)}", "--finish_after", 3],
            first=NOTE_MEMORY,
        )
        process.join()
        assert process.exitcode == 0, (tmp_path / "errors").read_text()
        held.append(int((tmp_path / "memory").read_text()))
        sizes.append(2 * (tmp_path / "train.en").stat().st_size / 1024)
    assert held[2] - held[1] < (sizes[2] - sizes[1]) / 2


# ---- Lines that are translated and scored ----

STRANGE = [
    *(
        b"a b c",
        b"",
        b"\xff\xfe a",
        b"a\0b",
        b"a\rb",
        "a\u2028b\x85\x0b\x0c d".encode(),
        "👍🏽 שלום".encode(),
    ),
    *(b"a " * 50_000, b"x" * 1_000_000, b" ", b"a b c", b"d ||| d"),
]


@pytest.fixture
def random_rnn(run, training, tmp_path):
    """Writes an RNN with random weights, large enough that translations differ, to `model`."""
    files = dict.fromkeys(("source_dataset", "valid_source_dataset"), "train.en")
    files |= dict.fromkeys(("target_dataset", "valid_target_dataset"), "train.de")
    sizes = {"embedding_size": 8, "state_size": 8, "translation_maxlen": 5}
    system = build_system(
        make_config({**files, **sizes, "dictionaries": ["words.json"] * 2}), ("words.json",) * 2
    )
    rng = np.random.default_rng(1)
    for variable in system.model.variables:
        variable.assign(rng.normal(size=variable.shape))
    (tmp_path / "model").mkdir()
    save_system(system, tmp_path / "model", {})
    save_checkpoint(tmp_path / "model" / BEST, system.model.variables, {}, system.fingerprint)


@pytest.mark.slow
def test_any_line_gives_one_line_and_does_not_affect_others(run, compiled, random_rnn, tmp_path):
    """Each line is translated and scored as if alone: the same words, costs up to rounding and
    six digits."""
    (tmp_path / "text").write_bytes(b"\n".join(STRANGE))
    limit = ("--translation_maxlen", 5)
    status, output, said = run(
        "translate", "-m", "model", "-i", "text", "-b", 3, "-k", 2, *limit, "-n", 0, "--n_best"
    )
    beams = [line.split(" ||| ") for line in output.removesuffix("\n").split("\n")]
    assert status == 0
    assert "warning: line 3: not UTF-8" in said
    assert f"warning: line 8: longer than {LONGEST} tokens" in said
    status, costs, said = run("score", "-m", "model", "-s", "text", "-t", "text", "-b", 3, "-n", 0)
    assert (status, costs.count("\n")) == (0, len(STRANGE))
    assert "warning: line 3: not UTF-8" in said
    assert f"warning: line 8: more than {LONGEST} tokens on a side" in said
    costs = np.array([float(cost) for cost in costs.split()])

    system = load_system(tmp_path / "model")
    options = DecodingOptions(beam_size=2, normalization_alpha=0.0, translation_maxlen=5)
    translator = system.translator(options)
    scorer = Scorer(system.vocabularies, system.model, options)
    for number, line in enumerate(STRANGE):
        (found,) = translator.lines([line])
        text = found.texts[0]
        cost = found.scores[0]
        assert next(beam[1] for beam in beams if beam[0] == str(number)) == text
        np.testing.assert_allclose(
            next(float(beam[2]) for beam in beams if beam[0] == str(number)), cost, rtol=1e-4
        )
        np.testing.assert_allclose(costs[number], scorer.scores_of([(line, line)])[0], rtol=1e-4)
    assert np.flatnonzero(np.isinf(costs)).tolist() == [7]


def test_empty_input_gives_empty_output(run, trained, tmp_path):
    (tmp_path / "empty").touch()
    assert run("translate", "-m", "model", "-i", "empty")[:2] == (0, "")
    assert run("score", "-m", "model", "-s", "empty", "-t", "empty")[:2] == (0, "")


def test_standard_input_is_translated_as_it_arrives_until_ctrl_c(start, trained, tmp_path):
    os.mkfifo(tmp_path / "input")
    os.mkfifo(tmp_path / "output")
    process = start(tmp_path, ["translate", "-m", "model", "-k", 1], ("input", "output", "errors"))
    with (
        (tmp_path / "input").open("wb", buffering=0) as text,
        (tmp_path / "output").open() as translations,
    ):
        for _ in range(2):
            text.write(b"a b\nc d\n")
            assert all(translations.readline().endswith("\n") for _ in range(2))
        os.kill(process.pid, signal.SIGINT)
        process.join()
        assert translations.read() == ""
    assert process.exitcode == 130
    assert "Traceback" not in (tmp_path / "errors").read_text()


def test_sigterm_leaves_nothing_half_written(start, trained, tmp_path):
    os.mkfifo(tmp_path / "input")
    process = start(
        tmp_path,
        ["translate", "-m", "model", "-o", "translations"],
        ("input", os.devnull, "errors"),
    )
    with (tmp_path / "input").open("wb", buffering=0) as text:
        text.write(b"a b\n")
        while not any(path.stat().st_size for path in tmp_path.glob(".translations.*.part")):
            time.sleep(0.05)
            assert process.is_alive()
        os.kill(process.pid, signal.SIGTERM)
        process.join()
    assert process.exitcode == 128 + signal.SIGTERM
    assert not list(tmp_path.glob("*translations*")) + list(tmp_path.glob(".*"))
    assert "Traceback" not in (tmp_path / "errors").read_text()


@pytest.mark.skipif(
    not Path("/proc/self/maps").exists(), reason="needs /proc to see what a process has loaded"
)
def test_ctrl_c_prints_no_traceback_while_tensorflow_loads(trained, tmp_path):
    command = [sys.executable, "-m", "nmt", "translate", "-m", tmp_path / "model"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while "libtensorflow_framework" not in Path(f"/proc/{process.pid}/maps").read_text():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait() in (-signal.SIGINT, 130)
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize(
    "command", [["translate", "-i", "many"], ["score", "-s", "many", "-t", "many"]]
)
def test_a_closed_pipe_ends_quietly(start, trained, tmp_path, command):
    (tmp_path / "many").write_text("a b\n" * 100_000)
    os.mkfifo(tmp_path / "output")
    process = start(tmp_path, [*command, "-m", "model"], (os.devnull, "output", "errors"))
    with (tmp_path / "output").open() as output:
        assert output.readline()
    process.join()
    assert process.exitcode == 1
    assert "Traceback" not in (tmp_path / "errors").read_text()
    assert "Error" not in (tmp_path / "errors").read_text()


# ---- Numerics ----


def test_deterministic_asks_tensorflow_for_it(run, training, monkeypatch):
    """The training fails after that, because a file is in place of the directory."""
    asked = []
    monkeypatch.setattr(tf.config.experimental, "enable_op_determinism", lambda: asked.append(True))
    assert run(*training, "-m", "words.json")[0] == 2
    assert not asked
    assert run(*training, "-m", "words.json", "--deterministic")[0] == 2
    assert asked


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run_with_deterministic_operations(
    start, rnn_training, tmp_path
):
    """On one machine without a GPU, runs are equal without them too, as the tests of
    interruptions show."""
    processes = [
        start(tmp_path, [*rnn_training, "-m", name, "--deterministic"])
        for name in ("first", "second")
    ]
    for process in processes:
        process.join()
        assert process.exitcode == 0, (tmp_path / "errors").read_text()
    with (
        np.load(tmp_path / "first" / "last.npz") as first,
        np.load(tmp_path / "second" / "last.npz") as second,
    ):
        assert first.files == second.files
        for name in set(first.files) - {"state"}:
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)
