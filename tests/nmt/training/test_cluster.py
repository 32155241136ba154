"""The processes that TF_CONFIG names."""

import json

import pytest

from nmt.errors import UserError
from nmt.training.cluster import read_cluster


@pytest.mark.parametrize(("task", "index", "rank"), [("chief", 0, 0), ("worker", 0, 1), ("worker", 1, 2)])
def test_workers_are_counted_after_the_chief(monkeypatch, task, index, rank):
    cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": task, "index": index}}))
    assert read_cluster() == (["a:1", "b:1", "c:1"], rank)


@pytest.mark.parametrize("config", ["", "{}", '{"cluster": {}}'])
def test_a_process_may_have_no_cluster(monkeypatch, config):
    monkeypatch.setenv("TF_CONFIG", config)
    assert read_cluster() == ([], 0)


@pytest.mark.parametrize(
    "config",
    [
        "worker 0",
        "[]",
        "[" * 100_000,
        '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1e999}}',
        '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 2}}',
        '{"cluster": {"worker": [1, 2]}, "task": {"type": "worker", "index": 0}}',
        '{"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}}',
    ],
)
def test_a_damaged_cluster_is_refused(monkeypatch, config):
    monkeypatch.setenv("TF_CONFIG", config)
    with pytest.raises(UserError, match="it must look like"):
        read_cluster()
