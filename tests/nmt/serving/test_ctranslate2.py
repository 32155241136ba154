"""Models of CTranslate2 compute what ours compute."""

import numpy as np
import pytest

from nmt.__main__ import main
from nmt.config import Config
from nmt.decoding.options import DecodingOptions
from nmt.decoding.scoring import Scorer
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.model.transformer import Transformer
from nmt.serving.ctranslate2_model import save_ctranslate2
from tests.nmt.serving.exports import SOURCE, TARGET, make_model

pytestmark = pytest.mark.slow

PAIRS = [(source.encode(), target.encode()) for source in SOURCE for target in TARGET[:4]]


@pytest.fixture
def ctranslate2():
    return pytest.importorskip("ctranslate2", reason="needs the extra `ctranslate2`")


MARIAN = {
    "transformer_activation": "swish",
    "transformer_attention_bias": True,
    "transformer_output_bias": True,
    "transformer_positions": "paper",
}


def make_transformer(kind, position, vocabularies, **options):
    """Makes a model with random weights, those of its norms included, and other depths on both sides."""
    config = Config(
        state_size=16,
        layer_normalization_type=kind,
        transformer_ffn_hidden_size=24,
        transformer_num_heads=4,
        transformer_norm_position=position,
        transformer_enc_depth=2,
        transformer_dec_depth=3,
        **options,
    )
    model = Transformer(config, *(vocabulary.size for vocabulary in vocabularies))
    rng = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(weight + rng.normal(0.0, 0.5, size=weight.shape))
    return model


def pieces(vocabulary, line):
    return [token.decode() for token in vocabulary.tokens(vocabulary.encode([line])[0]).numpy()]


@pytest.mark.parametrize(
    ("position", "parts"),
    [("pre", {}), ("post", {}), ("post", MARIAN)],
    ids=["pre", "post", "marian"],
)
def test_costs_and_translations_are_ours(
    kind, position, parts, vocabularies, tmp_path, ctranslate2
):
    model = make_transformer(kind, position, vocabularies, **parts)
    if kind not in ("layernorm", "rmsnorm"):
        with pytest.raises(UserError, match="normalizes in another way"):
            save_ctranslate2(model, vocabularies, tmp_path / "model")
        return
    save_ctranslate2(model, vocabularies, tmp_path / "model")
    engine = ctranslate2.Translator(str(tmp_path / "model"), compute_type="float32")

    sides = zip(vocabularies, zip(*PAIRS, strict=True), strict=True)
    found = engine.score_batch(
        *([pieces(vocabulary, line) for line in lines] for vocabulary, lines in sides)
    )
    costs = [-sum(each.log_probs) for each in found]
    np.testing.assert_allclose(
        costs,
        Scorer(vocabularies, model, DecodingOptions(normalization_alpha=0.0)).costs(PAIRS),
        rtol=1e-4,
    )

    lines = [line.encode() for line in SOURCE]
    translator = Translator(
        vocabularies, model, DecodingOptions(beam_size=1, translation_maxlen=12)
    )
    sources = [pieces(vocabularies[0], line) for line in lines]
    theirs = engine.translate_batch(
        sources, beam_size=1, max_decoding_length=12, min_decoding_length=0
    )
    words = ["".join(each.hypotheses[0]).replace("▁", " ").strip() for each in theirs]
    assert words == translator.best(lines)


def test_an_rnn_is_refused(vocabularies, tmp_path):
    with pytest.raises(UserError, match="CTranslate2 runs one Transformer"):
        save_ctranslate2(make_model(vocabularies, "layernorm"), vocabularies, tmp_path / "model")


@pytest.mark.parametrize("option", ["-k 3", "-n", "--languages en de"])
def test_options_of_a_savedmodel_are_refused(tmp_path, capsys, monkeypatch, option):
    words = [
        "nmt",
        "export",
        "--model",
        "m",
        "--to",
        str(tmp_path / "x"),
        "--format",
        "ctranslate2",
        *option.split(),
    ]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "--format ctranslate2 takes no --" in capsys.readouterr().err
