"""Each extra in an environment of its own: what it brings starts.

Needs gigabytes, so NMT_EXTRAS=1 asks for it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("NMT_EXTRAS"), reason="needs NMT_EXTRAS=1"),
]
COMMANDS = ("corpus", "vocab", "train", "average", "translate", "score", "export")
GOLDEN = ROOT / "tests" / "data" / "golden" / "models"
# Extras -> file of their locked versions and what must run with them alone.
EXTRAS = {
    "nmt": ("constraints.txt", [["-c", f"import nmt.commands.{command}"] for command in COMMANDS]),
    "nmt,serving": (
        "constraints.txt",
        [["-c", "import nmt.commands.serve, nmt.serving.service.server"]],
    ),
    "nmt,zstd": (
        "constraints.txt",
        [["-c", "from backports import zstd; import nmt.text.parallel_text"]],
    ),
    "nmt,ctranslate2": (
        "constraints.txt",
        [["-c", "import ctranslate2, nmt.serving.ctranslate2_model"]],
    ),
    "bulk": (
        "constraints-bulk.txt",
        [
            ["-m", "nmt.bulk", "--help"],
            [
                "-m",
                "nmt.bulk",
                "--export",
                "saved_model",
                "--input",
                GOLDEN / "test.en",
                "--output",
                "out",
            ],
        ],
    ),
}


@pytest.mark.parametrize("extras", EXTRAS)
def test_what_an_extra_brings_is_enough(extras, tmp_path):
    constraints, programs = EXTRAS[extras]
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    install = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--constraint",
        ROOT / constraints,
        f"{ROOT}[{extras}]",
    ]
    subprocess.run(install, check=True, cwd=tmp_path)
    shutil.unpack_archive(GOLDEN / "saved_model.zip", tmp_path / "saved_model")
    for words in programs:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [python, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, (words, done.stderr)
