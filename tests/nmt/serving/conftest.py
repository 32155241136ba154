"""Services of tiny SavedModels in processes of their own, and exports of small models."""

import re
import shutil
import time

import pytest

from nmt.text.sentencepiece_training import train_sentencepiece
from nmt.text.vocabulary import Vocabularies, load_vocabulary
from tests.nmt.serving.exports import SOURCE, TARGET, make_signatures, save
from tests.nmt.serving.toy import Client, write_toy


@pytest.fixture(scope="session")
def start_service(start):
    """Starts a service of a folder of models:

    `start_service(models, *options)` returns a client.
    """

    def begin(models, *options):
        log = models.parent / f"{models.name}.log"
        files = ("/dev/null", f"{models.name}.out", log.name)
        process = start(models.parent, ["serve", models, "--port", 0, *options], files)
        end = time.monotonic() + 200
        while not (
            found := re.search(r"http://\S+:(\d+)", log.read_text() if log.exists() else "")
        ):
            assert process.is_alive() and time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        client = Client(int(found[1]), process)
        client.log = log
        return client

    return begin


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    return write_toy(tmp_path_factory.mktemp("toy") / "1")


@pytest.fixture(scope="session")
def serve_toy(toy, start_service):
    """Starts a service of the toy alone: `serve_toy(folder, *options)` returns a client."""

    def begin(folder, *options):
        shutil.copytree(toy, folder / "models" / "toy" / "1")
        return start_service(folder / "models", *options)

    return begin


@pytest.fixture(scope="module")
def service(serve_toy, tmp_path_factory):
    """A service of the toy that has one worker and a short queue, and must end in order."""
    folder = tmp_path_factory.mktemp("service")
    client = serve_toy(folder, "--workers", 1, "--queue", 100, "--timeout", 20)
    yield client
    client.process.terminate()
    client.process.join(60)
    assert client.process.exitcode == 0


@pytest.fixture
def models(toy, tmp_path):
    """A folder of models: the first version of the toy."""
    shutil.copytree(toy, tmp_path / "models" / "toy" / "1")
    return tmp_path / "models"


@pytest.fixture(scope="module")
def vocabulary_folder(tmp_path_factory):
    """SentencePiece models of two alphabets, as `source.model` and `target.model`."""
    folder = tmp_path_factory.mktemp("vocabularies")
    for name, lines in (("source", SOURCE), ("target", TARGET)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        (folder / f"{name}.model").write_bytes(train_sentencepiece(folder / name, 50))
    return folder


@pytest.fixture(scope="module")
def vocabularies(vocabulary_folder):
    names = ("source.model", "target.model")
    return Vocabularies(*(load_vocabulary(vocabulary_folder / name) for name in names))


@pytest.fixture(scope="module")
def signatures(vocabularies, request):
    return make_signatures(vocabularies, "layernorm", request.param)


@pytest.fixture(scope="module")
def saved_model(signatures, tmp_path_factory):
    return save(signatures, tmp_path_factory.mktemp("saved") / "model")
