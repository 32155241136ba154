"""Maps Nematus's names for the options and variables of its RNN, v0.3 to master."""

import re
from collections.abc import Collection, Iterable
from typing import Any

TRANSPOSED = "decoder/next_word_predictor/hidden_to_logits/W"  # the transposed matrix is ours
# Before v0.5, GRUs without input have biases in the encoder too, which nothing reads.
UNUSED = r"encoder/(forward|backward)-stack/level\d+/gru[1-9]\d*/(gates|proposal)_bias"

DEPTHS = {
    "rnn_enc_depth": ("rnn_enc_depth", "enc_depth"),
    "rnn_enc_transition_depth": ("rnn_enc_transition_depth", "enc_recurrence_transition_depth"),
    "rnn_dec_depth": ("rnn_dec_depth", "dec_depth"),
    "rnn_dec_base_transition_depth": (
        "rnn_dec_base_transition_depth",
        "dec_base_recurrence_transition_depth",
    ),
    "rnn_dec_high_transition_depth": (
        "rnn_dec_high_transition_depth",
        "dec_high_recurrence_transition_depth",
    ),
    "rnn_dec_deep_context": ("rnn_dec_deep_context", "dec_deep_context"),
}
_RATES = ("embedding", "hidden", "source", "target")

# Our GRUs have paths such as encoder/forward2/transition1/gates_bias.
_GRU = re.compile(
    r"(?:encoder|decoder)/(forward|backward|word_gru|context_gru|high)(\d*)/(?:transition(\d+)/)?"
)
_GRUS = {
    "forward": "encoder/forward-stack/level{level}/gru{step}/",
    "backward": "encoder/backward-stack/level{level}/gru{step}/",
    "word_gru": "decoder/base/gru0/",
    "context_gru": "decoder/base/gru{after_word}/",
    "high": "decoder/high/level{level}/gru{step}/",
}
# Prefix of our other variable paths -> prefix of Nematus's names. The first match counts.
_LAYERS = {
    "decoder/attention/": "decoder/base/attention/",
    "decoder/initial_state/": "decoder/initial_state_constructor/",
    "decoder/from_word/": "decoder/next_word_predictor/prev_emb_to_hidden/",
    "decoder/from_state/": "decoder/next_word_predictor/state_to_hidden/",
    "decoder/from_context/": "decoder/next_word_predictor/attended_context_to_hidden/",
    "decoder/output_activation/": "decoder/next_word_predictor/hidden_prelu/",
    "decoder/output_": "decoder/next_word_predictor/hidden_to_logits/",
}
# Last part of our variable paths -> its names in the versions of Nematus.
_WEIGHTS = {
    "kernel": ("W",),
    "bias": ("b",),
    "gamma": ("new_std",),
    "beta": ("new_mean",),
    # RMSNorm; in v0.3, as in the models that the paper's authors publish, new_std.
    "scale": ("scale", "new_std"),
}


def given(options: dict[str, Any], spellings: Iterable[str]) -> Any:
    """Returns the value of an option under any of its names, or `None`."""
    return next((options[name] for name in spellings if options.get(name) is not None), None)


def options(nematus: dict[str, Any]) -> dict[str, Any]:
    """Returns our options of an RNN.

    In Nematus, rates of dropout above 0 have no effect unless a switch turns dropout on.
    """
    drops = given(nematus, ("rnn_use_dropout", "use_dropout"))
    rates = {
        f"rnn_dropout_{name}": given(nematus, (f"rnn_dropout_{name}", f"dropout_{name}"))
        for name in _RATES
    }
    depths = {name: given(nematus, spellings) for name, spellings in DEPTHS.items()}
    if depths["rnn_dec_depth"] in (None, 1):  # these have no effect then
        depths |= {"rnn_dec_high_transition_depth": None, "rnn_dec_deep_context": None}
    activation = {"output_hidden_activation": nematus.get("output_hidden_activation")}
    return activation | depths | (rates if drops else dict.fromkeys(rates, 0.0))


def refusals(nematus: dict[str, Any]) -> list[str]:
    """Returns why models with these options of Nematus cannot be imported."""
    found = []
    depths = {name: given(nematus, spellings) or 1 for name, spellings in DEPTHS.items()}
    is_deep = depths["rnn_dec_depth"] != 1
    if is_deep and "gradient_aggregation_steps" not in nematus:  # an option since v0.5
        found.append(
            "the decoder has several levels and comes from Nematus before v0.5, which computes "
            "them differently in training and translation; train it again with master"
        )
    if nematus.get("theano_compat") and (is_deep or depths["rnn_enc_transition_depth"] != 1):
        found.append(
            "theano_compat with transitions in the encoder or several levels in the decoder is "
            "not supported"
        )
    return found


def kind_of(names: Iterable[str]) -> str:
    """Returns the kind of normalization by the variables of a checkpoint.

    Options of the paper's authors do not name it.
    """
    weights = {name.rpartition("/")[2] for name in names}
    return "rmsnorm" if "new_std" in weights and "new_mean" not in weights else "layernorm"


def nematus_name(path: str, names: Collection[str]) -> str:
    """Returns Nematus's name of our variable.

    If versions of Nematus differ, the name among `names`.
    """
    if gru := _GRU.match(path):
        kind, *numbers = gru.groups()
        level, step = (int(number or 0) for number in numbers)
        path = _GRUS[kind].format(level=level, step=step, after_word=step + 1) + path[gru.end() :]
    elif beginning := next((each for each in _LAYERS if path.startswith(each)), None):
        path = _LAYERS[beginning] + path.removeprefix(beginning)
    layer, _, weight = path.rpartition("/")
    spellings = [
        f"{layer.removesuffix('/norm')}/{name}" for name in _WEIGHTS.get(weight, (weight,))
    ]
    return next((name for name in spellings if name in names), spellings[0])
