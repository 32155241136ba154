"""New, broken and vanished versions, while requests go on."""

import gc
import os
import shutil
import threading
import weakref

import pytest
import tensorflow as tf

from nmt.serving.service.limits import Refused
from nmt.serving.service.store import Store
from tests.nmt.serving.toy import Tiny, until, write_toy


class Callers:
    """Threads that send requests one after the other and note what comes back."""

    def __init__(self, service, count):
        self._service = service
        self._go = True
        self.found = []
        self._threads = [threading.Thread(target=self._call, args=(i,)) for i in range(count)]

    def _call(self, i):
        while self._go:
            status, answer = self._service.predict({"inputs": [f"caller {i}"]})
            self.found.append((i, status, answer))

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._go = False
        for thread in self._threads:
            thread.join()


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return write_toy(tmp_path_factory.mktemp("tiny") / "1", kind=Tiny)


@pytest.fixture(scope="module")
def newer(tmp_path_factory):
    return write_toy(tmp_path_factory.mktemp("newer") / "saved", mark="?", kind=Tiny)


def opened(models, **options):
    store = Store(models, **options)
    store.open()
    return store


def served(store):
    return {name: served.version for name, served in store.served.items()}


def version_of(service):
    status, answer = service.get("/v1/models/toy")
    return (
        {each["version"]: each["state"] for each in answer["model_version_status"]}
        if status == 200
        else status
    )


@pytest.mark.slow
def test_versions_come_and_go_without_a_failed_request(models, toy, newer, start_service, tmp_path):
    (models / "toy" / ".2.0123abcd.part").mkdir()  # an export that is being written
    (models / "not a model").mkdir()
    service = start_service(models)
    with Callers(service, 4) as callers:
        # A version whose files come one after the other is loaded when they are all there.
        partial = models / "toy" / "3"
        partial.mkdir()
        shutil.copy(newer / "saved_model.pb", partial)
        until(lambda: version_of(service) == {"1": "AVAILABLE", "3": "END"})
        shutil.copytree(newer, partial, dirs_exist_ok=True)
        until(lambda: version_of(service) == {"3": "AVAILABLE"})
        assert service.predict({"inputs": ["a"]})[1]["outputs"]["translations"] == ["A?"]
        os.rename(shutil.copytree(toy, tmp_path / "whole"), models / "toy" / "5")
        until(lambda: version_of(service) == {"5": "AVAILABLE"})
    assert len(callers.found) > 20
    for caller, status, answer in callers.found:
        assert status == 200
        assert answer["outputs"]["translations"][0] in (f"CALLER {caller}!", f"CALLER {caller}?")
    shutil.copytree(toy, models / "other" / "1")
    until(lambda: service.metric("nmt_model_version") == 5 + 1)
    assert service.predict({"inputs": ["a"]}, "other")[0] == 200
    shutil.rmtree(models / "other")
    shutil.rmtree(models / "toy")
    until(lambda: service.get("/readyz")[0] == 503)
    assert service.predict({"inputs": ["a"]})[0] == 404
    assert service.get("/healthz")[0] == 200
    until(lambda: b"nmt_model_version{" not in service.request("GET", "/metrics")[2])


def test_a_version_that_breaks_again_is_logged_again(models, newer, caplog):
    store = opened(models, retry_seconds=0)
    version = models / "toy" / "2"
    for _ in range(2):
        shutil.copytree(newer, version, dirs_exist_ok=True)
        (version / "saved_model.pb").write_bytes(b"garbage")
        for _ in range(3):
            store.refresh()
        assert [number for _, number in store.broken] == [2]
        shutil.copytree(newer, version, dirs_exist_ok=True)
        for _ in range(2):
            store.refresh()
        assert (store.served["toy"].version, store.broken) == (2, {})
    assert len([each for each in caplog.records if each.levelname == "ERROR"]) == 2


def test_a_version_is_loaded_from_where_it_was_seen_last(models, newer):
    store = opened(models)
    shutil.copytree(newer, models / "toy" / "3")
    store.refresh()
    (models / "toy" / "3").rename(models / "toy" / "03")
    store.refresh()
    assert (store.served["toy"].version, store.broken) == (3, {})


def test_a_version_with_a_broken_link_does_not_affect_others(models, toy):
    for folder in ("toy/3", "other/1"):
        shutil.copytree(toy, models / folder)
    (models / "toy" / "2").mkdir()
    (models / "toy" / "2" / "saved_model.pb").write_bytes(b"garbage")
    (models / "toy" / "2" / "assets").symlink_to("nowhere")
    store = opened(models)
    assert served(store) == {"toy": 3, "other": 1}
    shutil.copytree(models / "toy" / "2", models / "toy" / "4", symlinks=True)
    shutil.copytree(toy, models / "other" / "2")
    store.refresh()
    store.refresh()
    assert served(store) == {"toy": 3, "other": 2}
    assert set(store.broken) == {("toy", 4)}


@pytest.mark.parametrize(
    "odd", ["assets.extra/model.json", "assets.extra/tf_serving_warmup_requests", "variables/more"]
)
@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"]
)
def test_a_version_with_a_pipe_or_a_device_is_refused_and_does_not_hold_up_others(
    models, newer, odd, make
):
    shutil.copytree(newer, models / "toy" / "2")
    file = models / "toy" / "2" / odd
    file.parent.mkdir(exist_ok=True)
    make(file)
    store = opened(models)
    store.refresh()
    assert (served(store), set(store.broken)) == ({"toy": 1}, {("toy", 2)})
    assert f"{odd} is a pipe or a device" in store.broken["toy", 2]
    file.unlink()
    store.refresh()
    store.refresh()
    assert (served(store), store.broken) == ({"toy": 2}, {})


@pytest.mark.parametrize("again, expected", [(0.0, 2), (60.0, 1)])
def test_a_version_that_could_not_be_loaded_is_tried_again(models, newer, again, expected):
    """Stands for a failure that has nothing to do with the files: they look the same before and
    after."""
    shutil.copytree(newer, models / "toy" / "2")
    file = models / "toy" / "2" / "saved_model.pb"
    good = file.read_bytes()
    status = file.stat()
    file.write_bytes(b"x" * len(good))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    store = opened(models, retry_seconds=again)
    assert (served(store), set(store.broken)) == ({"toy": 1}, {("toy", 2)})
    file.write_bytes(good)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    store.refresh()
    assert (served(store), bool(store.broken)) == ({"toy": expected}, expected == 1)


def test_files_that_arrive_late_or_change_are_loaded(models):
    version = models / "toy" / "1"
    store = opened(models)
    first = store.find("toy", "1").model
    assert first.card is None
    (version / "assets.extra").mkdir()
    (version / "assets.extra" / "model.json").write_text('{"loss": NaN}')
    store.refresh()
    assert store.find("toy", "1").model is first  # it may still be changing
    store.refresh()
    assert store.find("toy", "1").model.card == {"loss": None}
    good = (version / "saved_model.pb").read_bytes(), (version / "saved_model.pb").stat()
    (version / "saved_model.pb").write_bytes(b"garbage")
    for _ in range(3):
        store.refresh()
    assert store.find("toy", "1").model.card == {"loss": None}
    assert set(store.broken) == {("toy", 1)}
    (version / "saved_model.pb").write_bytes(good[0])
    os.utime(version / "saved_model.pb", ns=(good[1].st_atime_ns, good[1].st_mtime_ns))
    store.refresh()
    assert not store.broken


def test_a_card_that_cannot_be_shown_is_left_out(toy, start_service, tmp_path):
    cards = ['{"good": 1}', '{"loss": 1e999}', '{"name": "\\ud800"}', "{", "[" * 100_000]
    cards += ['{"a":' * depth + "1" + "}" * depth for depth in range(900, 1000, 5)]
    for number, card in enumerate(cards):
        version = shutil.copytree(toy, tmp_path / "models" / f"model{number}" / "1")
        (version / "assets.extra").mkdir()
        (version / "assets.extra" / "model.json").write_text(card)
    status, _, body = start_service(tmp_path / "models").request("GET", "/v1/models")
    assert status == 200
    assert b'{"good":1}' in body
    assert body.count(b'"card":null') >= 4


def test_going_back_to_an_older_version(models, newer):
    shutil.copytree(newer, models / "toy" / "2")
    store = opened(models)
    assert served(store) == {"toy": 2}
    for other in ("1", "3", "02", "two"):
        with pytest.raises(Refused):
            store.find("toy", other)
    shutil.rmtree(models / "toy" / "2")
    store.refresh()
    assert served(store) == {"toy": 1}
    shutil.rmtree(models / "toy" / "1")
    store.refresh()
    assert served(store) == {}


def test_only_folders_with_plain_numbers_are_versions(models, toy):
    for version in ("\u0663", "-2", "4.5", "v6"):  # the first of the others is an Arabic digit
        shutil.copytree(toy, models / "toy" / version)
    store = opened(models)
    store.refresh()
    assert (served(store), store.broken) == ({"toy": 1}, {})


def test_files_of_another_time_are_loaded(models):
    store = opened(models)
    first = store.find("toy", None).model
    os.utime(models / "toy" / "1" / "saved_model.pb")
    for _ in range(2):
        store.refresh()
    assert store.find("toy", None).model is not first


def graphs():
    gc.unfreeze()  # else they are not among the objects
    return weakref.WeakSet(x for x in gc.get_objects() if issubclass(type(x), tf.Graph))


def test_a_dropped_version_leaves_the_memory(models, newer):
    before = graphs()
    store = opened(models)
    old = weakref.WeakSet(graphs() - before)
    gc.freeze()
    assert len(old) > 4
    signature = store.find("toy", "1").model.signatures["add"]  # of a request in progress
    shutil.copytree(newer, models / "toy" / "2")
    store.refresh()
    store.refresh()
    assert served(store) == {"toy": 2}
    assert len(old) > 0
    del signature
    store.refresh()
    assert len(old) == 0


def test_the_status_says_why_a_version_is_not_served(models, toy, start_service):
    for name, version in (("toy", "2"), ("broken", "1")):
        shutil.copytree(toy, models / name / version)
        (models / name / version / "saved_model.pb").write_bytes(b"garbage")
    service = start_service(models)

    def states(path):
        status, found = service.get(path)
        return status, [(each["version"], each["state"]) for each in found["model_version_status"]]

    assert states("/v1/models/toy") == (200, [("1", "AVAILABLE"), ("2", "END")])
    assert states("/v1/models/toy/versions/1") == (200, [("1", "AVAILABLE")])
    assert states("/v1/models/toy/versions/2") == (200, [("2", "END")])
    assert states("/v1/models/broken") == (200, [("1", "END")])
    (state,) = service.get("/v1/models/broken")[1]["model_version_status"]
    assert "broken/1" in state["status"]["error_message"]
    assert service.get("/v1/models/broken/versions/2")[0] == 404
