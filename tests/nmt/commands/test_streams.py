import os
import subprocess
import sys
from pathlib import Path

PROGRAM = (
    "import sys; from nmt.commands.streams import with_bar; print(*with_bar([1, 2], sys.stdout))"
)


def test_tqdm_disable_hides_the_bar():
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", PROGRAM]
    shown = {name: value for name, value in os.environ.items() if name != "TQDM_DISABLE"}
    usual, hidden = (
        subprocess.run(command, cwd=root, env=given, capture_output=True, text=True)
        for given in (shown, {**shown, "TQDM_DISABLE": "1"})
    )
    assert (usual.stdout, hidden.stdout) == ("1 2\n", "1 2\n")
    assert "2/2" in usual.stderr
    assert "2/2" not in hidden.stderr
