"""A patched v0.3 reads models made by the recipe of the paper's authors.

It needs what test_nematus_live.py needs, with a checkout of v0.3.
"""

import json
import shutil
from pathlib import Path

import pytest
import tensorflow as tf

from tests.patches.test_nematus_live import Nematus, pytestmark  # noqa: F401 (skips as there)

# What the recipe does to v0.3, written such that it runs on the tag: a gain in the place of
# LayerNorm's, and no mean.
RECIPE = """

class LayerNormLayer(object):
    def __init__(self, layer_size, eps=1e-5):
        self.gain, self.eps = tf.Variable(tf.ones([layer_size]), name="new_std"), eps

    def forward(self, x, input_is_3d=False):
        return x * tf.rsqrt(tf.expand_dims(tf.reduce_mean(x * x, -1), -1) + self.eps) * self.gain
"""


@pytest.fixture(scope="module")
def patched(tmp_path_factory):
    nematus = Nematus(tmp_path_factory.mktemp("patched"))
    if nematus.version != "v0.3":
        pytest.skip("the recipe is for v0.3")
    return nematus


@pytest.fixture(scope="module")
def recipe(patched, tmp_path_factory):
    """The costs and translations of a model, and its path; made without our patch."""
    nematus = Nematus(tmp_path_factory.mktemp("recipe"))
    nematus.patch("revert")
    with (nematus.tree / "nematus/layers.py").open("a") as file:
        file.write(RECIPE)
    model = nematus.train("rnn", "unpatched")
    return nematus.score(model), nematus.translate(model), model


def with_options(model, copy, **options):
    """Copies a model, with more options in its JSON file."""
    for file in model.parent.glob(f"{model.name}.*"):
        shutil.copy(file, copy.parent / file.name.replace(model.name, copy.name))
    written = json.loads(Path(f"{model}.json").read_text()) | options
    Path(f"{copy}.json").write_text(json.dumps(written))
    return copy


@pytest.mark.parametrize(
    "options", [{}, {"layer_normalization_type": "rmsnorm"}], ids=["as it is", "named"]
)
def test_reads_a_model_of_the_recipe(patched, recipe, tmp_path, options):
    costs, translations, model = recipe
    copy = with_options(model, tmp_path / "copy", **options)
    assert patched.score(copy) == [pytest.approx(row, rel=1e-5) for row in costs]
    assert patched.translate(copy) == translations


def test_writes_the_names_of_the_recipe(patched, recipe):
    ours = patched.train("rnn", "rmsnorm")
    assert tf.train.list_variables(str(ours)) == tf.train.list_variables(str(recipe[2]))
