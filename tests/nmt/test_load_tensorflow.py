"""What happens before TensorFlow is loaded: where compiled programs are kept, and its settings."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from nmt.load_tensorflow import LARGE


@pytest.mark.parametrize(
    ("place", "free", "kept"),
    [
        ("compiled", 2**40, True),
        ("compiled", 2**20, False),
        ("com piled", 2**40, False),
        ("file", 2**40, False),
    ],
    ids=["usual", "full", "space", "no directory"],
)
def test_compiled_programs_are_kept_where_xla_can_write(
    run, monkeypatch, tmp_path, place, free, kept
):
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("TF_XLA_FLAGS")
    monkeypatch.setenv("NMT_XLA_CACHE", str(tmp_path / place))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    run("translate", "-m", "nowhere")
    directories = list(tmp_path.glob("compiled/*"))
    flags = [f"--tf_xla_persistent_cache_directory={each}" for each in directories if kept]
    assert os.environ.get("TF_XLA_FLAGS", "").split() == flags


def test_flags_of_the_user_hold(run, monkeypatch):
    monkeypatch.setenv("TF_XLA_FLAGS", "file of flags")
    run("translate", "-m", "nowhere")
    assert os.environ["TF_XLA_FLAGS"] == "file of flags"


@pytest.mark.slow
def test_another_seed_finds_the_compiled_programs(write_lines, dictionary, tmp_path):
    """Although its first batch has another width: the programs do not depend on the order of the
    widths."""
    text = write_lines("text", [*["a b c"] * 32, *["a b c d a b c d a"] * 32])
    files = [
        word
        for side in ("source", "target")
        for word in (f"--{side}_dataset", text, f"--valid_{side}_dataset", text)
    ]
    sizes = [
        "--embedding_size",
        4,
        "--state_size",
        4,
        "--batch_size",
        16,
        "--maxlen",
        10,
        "--finish_after",
        4,
    ]
    train = [*("-m", "nmt", "train"), *files, "--dictionaries", dictionary, dictionary, *sizes]
    environment = {
        **os.environ,
        "NMT_XLA_CACHE": str(tmp_path / "compiled"),
        "NMT_TEXT_CACHE": "off",
    }
    environment.pop("TF_XLA_FLAGS")
    widths = []
    programs = []
    for seed in (1, 3):
        words = map(str, [*train, "--model", tmp_path / f"model{seed}", "--seed", seed])
        done = subprocess.run(
            [sys.executable, *words], env=environment, capture_output=True, text=True, check=True
        )
        widths.append(
            list(dict.fromkeys(re.findall(r"compiling, .*? of \d+, (\d+) tokens\)", done.stderr)))
        )
        programs.append(sorted((tmp_path / "compiled").rglob("*.pb")))
    assert widths[0] == widths[1][::-1] != widths[1]
    assert programs[0] == programs[1] != []


@pytest.mark.slow
def test_garbage_is_collected_again_after_the_imports(run_python):
    """But not in what they made."""
    script = """
import gc, sys
sys.path.insert(0, sys.argv[1])
from nmt.load_tensorflow import load_tensorflow
load_tensorflow()
print(gc.isenabled(), gc.get_freeze_count() > 100_000)
"""
    assert run_python(script, Path(__file__).parents[2]).stdout == "True True\n"


@pytest.mark.parametrize(
    ("command", "given", "expected"),
    [
        ("translate -m a", None, "0"),
        ("translate -m small large", None, "1"),
        ("translate -m small", None, "0"),
        ("serve a", None, "0"),
        ("serve exports", None, "1"),
        ("translate -m a", "1", "1"),
        ("translate -m large", "0", "0"),
        ("train -m a", None, None),
        ("score -m a -s b -t c", None, None),
    ],
)
def test_only_large_models_are_translated_with_onednn(
    run_python, monkeypatch, tmp_path, command, given, expected
):
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    if given:
        monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", given)
    card = "exports/en-de/1/assets.extra/model.json"
    files = {
        "small/config.json": {"state_size": LARGE - 1},
        "large/config.json": {"state_size": LARGE},
        card: {"sizes": {"state": [8, LARGE]}},
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(json.dumps(content))
    script = """
import os, sys
root, *sys.argv[1:] = sys.argv[1:]
sys.path.insert(0, root)
import nmt.__main__ as program

class Stub:
    def __getattr__(self, name):
        print(os.environ.get("TF_ENABLE_ONEDNN_OPTS"), flush=True)
        os._exit(0)

sys.modules["tensorflow"] = Stub()
program.main()
"""
    assert run_python(script, Path(__file__).parents[2], *command.split()).stdout == f"{expected}\n"
