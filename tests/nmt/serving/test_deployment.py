"""The files that put an export behind a server: they agree with each other and with the checkout."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SERVING = ROOT / "serving" / "tensorflow_serving"


def words(text):
    """Returns the words of a configuration without its comments."""
    return re.sub(r"#.*", "", text).split()


def test_tensorflow_serving_can_read_the_models_configuration():
    config = pytest.importorskip("tensorflow_serving.config.model_server_config_pb2")
    from google.protobuf import text_format

    found = text_format.Parse((SERVING / "models.config").read_text(), config.ModelServerConfig())
    models = found.model_config_list.config
    assert [(model.base_path, model.model_platform) for model in models] == [
        (f"/models/{model.name}", "tensorflow") for model in models
    ]


@pytest.mark.parametrize("name", ["models.config", "batching.config", "monitoring.config"])
def test_kubernetes_has_the_configuration_of_the_compose_file(name):
    manifest = (SERVING / "kubernetes.yaml").read_text()
    (block,) = re.findall(rf"^  {re.escape(name)}: \|\n((?:    .*\n)+)", manifest, re.MULTILINE)
    assert words(block) == words((SERVING / name).read_text())
    assert f"/config/{name}" in manifest
    assert f"/config/{name}" in (SERVING / "compose.yaml").read_text()


def test_the_image_gets_the_files_that_it_copies():
    allowed = (ROOT / ".dockerignore").read_text().split()
    copied = re.findall(r"^COPY (.+) \S+$", (ROOT / "serving" / "Dockerfile").read_text(), re.MULTILINE)
    sources = [source for line in copied for source in line.split()]
    assert len(sources) > 4
    for source in sources:
        assert (ROOT / source).exists()
        assert f"!{source}" in allowed
