import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = (
    "import sys; from nmt.commands.streams import with_bar; print(*with_bar([1, 2], sys.stdout))"
)


@pytest.mark.slow
def test_tqdm_disable_hides_the_bar(capsys):
    """In a process of its own, because `tqdm` reads it when it is imported."""
    exec(PROGRAM)
    shown = capsys.readouterr()
    assert (shown.out, "2/2" in shown.err) == ("1 2\n", True)
    hidden = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "TQDM_DISABLE": "1"},
        capture_output=True,
        text=True,
    )
    assert (hidden.stdout, "2/2" in hidden.stderr) == ("1 2\n", False)
