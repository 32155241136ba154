"""The command line, without Beam."""

import configparser
import re
from pathlib import Path

import pytest

from nmt.bulk.__main__ import parse

ROOT = Path(__file__).parents[3]
WORDS = ["--export", "model", "--input", "a", "b", "--output", "out"]


def test_options_that_are_not_ours_are_left_for_beam():
    arguments, rest = parse([*WORDS, "--direct_num_workers", "2", "--runner=FlinkRunner"])
    assert (arguments.input, arguments.chunk_lines, arguments.max_bytes) == (["a", "b"], 2000, 4000)
    assert rest == ["--direct_num_workers", "2", "--runner=FlinkRunner"]


@pytest.mark.parametrize(
    "words, said",
    [
        (WORDS[2:], "the following arguments are required: --export"),
        (
            [*WORDS[2:], "--direct_num_workers", "2"],
            "the following arguments are required: --export",
        ),
        ([*WORDS, "--chunk_lines", "0"], "'0' is not a whole number above 0"),
        ([*WORDS, "--max_bytes", "1e3"], "'1e3' is not a whole number above 0"),
        ([*WORDS, "--chunk_lines", "9", "c"], "unrecognized arguments: c;"),
        ([*WORDS, "--runner=Direct", "c"], "unrecognized arguments: c;"),
        (
            [*WORDS, "--model_timeout", "1000001"],
            "'1000001' is not a whole number above 0 and at most 1000000",
        ),
    ],
)
def test_a_mistake_is_one_line(words, said, capsys):
    with pytest.raises(SystemExit, match="2"):
        parse(words)
    errors = capsys.readouterr().err
    assert said in errors
    assert errors.count("\n") == 1


def test_the_help_needs_no_beam(capsys):
    with pytest.raises(SystemExit, match="0"):
        parse(["--help"])
    said = capsys.readouterr().out
    assert "--direct_num_workers" in said
    assert "_bulk/failed" in said


def packages(lines):
    """Returns the names of packages, as they are imported."""
    names = (re.match(r"[\w-]+", line.strip()) for line in lines)
    return {name[0].lower().replace("-", "_") for name in names if name}


def test_the_program_starts_with_nothing_but_its_extra(run_python):
    """All packages of the extra `nmt` are absent that its own extra does not bring."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    of_nmt = packages(config["options.extras_require"]["nmt"].splitlines())
    absent = of_nmt - packages((ROOT / "constraints-bulk.txt").read_text().splitlines())
    assert "tqdm" in absent
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    script += f"sys.modules.update(dict.fromkeys({sorted(absent)!r}))\n"
    done = run_python(script + "from nmt.bulk.__main__ import main; main()", "--help")
    assert (done.returncode, done.stderr) == (0, "")


def test_without_beam_the_program_says_what_is_missing(run_python):
    script = "import sys; sys.modules['apache_beam'] = None; sys.path.insert(0, {!r})\n"
    script += "from nmt.bulk.__main__ import main; main()"
    done = run_python(script.format(str(ROOT)), *WORDS)
    assert done.returncode == 2
    assert done.stderr.startswith("nmt.bulk: apache_beam is missing; ")
    assert done.stderr.count("\n") == 1
