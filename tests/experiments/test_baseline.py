import pytest

from experiments.baseline import commit_of, execute, make_baseline
from experiments.place import Place
from nmt.errors import UserError


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "work", tmp_path / "logs")


def test_the_copy_has_the_kinds_of_the_patches_and_of_the_rows(place, tmp_path):
    make_baseline(place)
    output = tmp_path / "output.txt"
    script = (
        "import nmt, nmt.normalization as seam, rmsnorm_tf\n"
        "print(*seam.KINDS)\n"
        "print(seam.build_normalization('partial-0.125', 8, 'norm').partial)\n"
        "print(nmt.__file__, rmsnorm_tf.__file__, sep='\\n')\n"
    )
    execute(place, "-c", script, output=output)
    kinds, partial, *files = output.read_text().splitlines()[-4:]
    assert {"none", "layernorm", "rmsnorm", "prmsnorm", "l2norm", "partial-0.125"} <= set(kinds.split())
    assert partial == "0.125"
    assert all(file.startswith(str(place.baseline)) for file in files)


def test_a_copy_replaces_the_last_and_says_what_it_was_made_of(place):
    for _ in range(2):
        make_baseline(place)
        (place.baseline / "nmt" / "left_over.py").touch()
    make_baseline(place)
    assert not (place.baseline / "nmt" / "left_over.py").exists()
    assert commit_of(place).rstrip("+")


def test_what_fails_is_named_with_where_it_says_why(place, tmp_path):
    place.baseline.mkdir(parents=True)
    output = tmp_path / "output.txt"
    with pytest.raises(UserError, match=rf"python -c .* ended with status 3; {output} says why"):
        execute(place, "-c", "print('because'); raise SystemExit(3)", output=output)
    assert output.read_text() == "because\n"


def test_a_process_is_ended_with_what_waits_for_it(place, tmp_path):
    place.baseline.mkdir(parents=True)
    script = f"""
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(open({str(tmp_path / "saved")!r}, "w").close()))
time.sleep(60)
"""

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(place, "-c", script, watch=interrupt)
    assert (tmp_path / "saved").exists()
