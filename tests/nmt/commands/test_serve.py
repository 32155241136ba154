"""Mistakes in the command that serves."""

import socket

from tests.nmt.outcomes import refused


def test_mistakes_are_one_line(run, tmp_path):
    status, _, said = run("serve", "absent")
    assert (status, said.count("\n")) == (2, 1)
    assert "absent does not exist, or holds no NAME/VERSION" in said
    (tmp_path / "empty").mkdir()
    assert "empty does not exist, or holds no NAME/VERSION" in refused(run("serve", "empty"))
    (tmp_path / "models" / "toy" / "1").mkdir(parents=True)
    (tmp_path / "models" / "toy" / "1" / "saved_model.pb").write_bytes(b"garbage")
    status, _, said = run("serve", "models", "--port", 0)
    assert (status, said.splitlines()[-1].startswith("nmt: models/toy/1 cannot be loaded")) == (
        2,
        True,
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, _, said = run("serve", "models", "--port", taken.getsockname()[1])
    assert (status, "give another --host or --port" in said) == (2, True)
    assert "'70000' is not a whole number" in refused(run("serve", "models", "--port", 70000))
    assert "'0' is not a whole number above 0" in refused(run("serve", "models", "--workers", 0))
