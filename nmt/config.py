"""The configuration of a training.

Every option is declared once, here, under its name in Nematus if Nematus has it.
`commands/parser.py` makes the command line of these declarations.
"""

import dataclasses
import difflib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .config_fields import (
    MOST,
    Role,
    between,
    choice,
    fraction,
    from_list,
    has_effect,
    like,
    mistakes,
    non_negative,
    only_with,
    option,
    positive,
    read_yaml,
    required_file,
    required_text,
    rnn_only,
    transformer_only,
)
from .config_rules import LOSSES, complete, conflicts
from .decoding.options import SEARCH, DecodingOptions
from .errors import UserError
from .model.registry import ARCHITECTURES
from .normalization import EPSILON, KINDS, Normalization
from .storage.files import read_json, write_json

VALID_METRICS = ("bleu", "chrf", "loss")
_APPLY = f"python patches/apply.py apply {os.path.relpath(Path(__file__).parents[1])}"

# The largest values of options: beyond them, the memory of any machine ends before a message does.
_SIZE = 100_000  # of a layer or a batch, of words or tokens, and of layers or heads
_COUNT = 10_000_000
_DEPTH = 1000
_FIXED = (Role.TEXT, Role.MODEL, Role.OPTIMIZATION)
TOKENIZERS = (
    "13a",
    "intl",
    "zh",
    "char",
    "ja-mecab",
    "ko-mecab",
    "spm",
    "flores101",
    "flores200",
    "none",
)


@dataclass(frozen=True)
class Config:
    """Everything that determines a training. `None` means that an option is not given."""

    source_dataset: str | tuple[str, ...] = required_text(
        "training text, source side, one sentence a line: files or patterns such as 'train-*.en', "
        "also .gz and .zst"
    )
    target_dataset: str | tuple[str, ...] = required_text(
        "training text, target side, files in the same order"
    )
    dataset_weights: tuple[float, ...] | None = option(
        None,
        "weight of each file or pattern of --source_dataset: how often an epoch takes its pairs; "
        "by default, once",
        "above 0 and at most 1000",
        lambda value: min(value) > 0 and max(value) <= 1000,
        nargs="+",
        metavar="WEIGHT",
        role=Role.TEXT,
    )
    dictionaries: tuple[str, str] = required_file(
        "source and target vocabulary: SentencePiece .model or Nematus .json", nargs=2
    )
    source_vocab_sizes: int | None = between(
        None, "use only this many words of a .json source dictionary", 4, _COUNT, role=Role.TEXT
    )
    target_vocab_size: int | None = between(
        None, "use only this many words of a .json target dictionary", 4, _COUNT, role=Role.TEXT
    )
    valid_source_dataset: str | tuple[str, ...] = required_text("text for validation, source side")
    valid_target_dataset: str | tuple[str, ...] = required_text("text for validation, target side")
    target_prefixes: tuple[str, ...] | None = option(
        None,
        "text that begins every target of a file or pattern of --target_dataset, such as <2de> or "
        "<bt>; one for each, '' for none; `translate --target_prefix` begins translations with it",
        nargs="+",
        metavar="PREFIX",
        role=Role.TEXT,
    )
    valid_target_prefixes: tuple[str, ...] | None = option(
        None,
        "the same for --valid_target_dataset; translations there begin with it",
        nargs="+",
        metavar="PREFIX",
        role=Role.TEXT,
    )
    valid_sample: int | None = positive(
        None,
        "validate on this many pairs of each file or pattern, evenly spread; by default, on all",
        _COUNT,
        role=Role.TEXT,
    )
    maxlen: int = positive(
        100,
        "leave out training pairs with more tokens than this on either side",
        _SIZE,
        role=Role.TEXT,
    )
    max_length_ratio: float | None = option(
        None,
        "leave out training pairs whose longer side has more than this many times the tokens of "
        "the other",
        "1 or more",
        lambda value: value >= 1,
        role=Role.TEXT,
    )

    model_type: str = choice("rnn", "architecture", ARCHITECTURES, role=Role.MODEL)
    embedding_size: int = positive(
        512, "size of the word embeddings; in a Transformer, --state_size", _SIZE, role=Role.MODEL
    )
    state_size: int = positive(
        1000,
        "size of each GRU, or of a Transformer's layers, where the default is 512",
        _SIZE,
        role=Role.MODEL,
    )
    layer_normalization_type: str = choice(
        "none",
        "kind of every normalization in the model; the default of a Transformer is layernorm; "
        "`python patches/apply.py apply .` adds rmsnorm and others",
        KINDS,
        f"; `{_APPLY}` adds those of patches/nmt",
        role=Role.MODEL,
    )
    layer_normalization_center: bool | None = option(
        None,
        "give every normalization an offset (Keras: beta); by default, layernorm has one, and "
        "those of patches/nmt have none",
        role=Role.MODEL,
    )
    tie_decoder_embeddings: bool = option(
        False, "use the target embedding as the output matrix", role=Role.MODEL
    )
    tie_encoder_decoder_embeddings: bool = option(
        False, "use one embedding for both sides, as of `nmt vocab --joint`", role=Role.MODEL
    )
    output_hidden_activation: str = rnn_only(
        choice(
            "tanh",
            "activation before the output layer",
            ("tanh", "relu", "prelu", "linear"),
            role=Role.MODEL,
        )
    )
    rnn_enc_depth: int = rnn_only(positive(1, "levels of the encoder", _DEPTH, role=Role.MODEL))
    rnn_enc_transition_depth: int = rnn_only(
        positive(1, "GRUs one after another in each of its levels", _DEPTH, role=Role.MODEL)
    )
    rnn_dec_depth: int = rnn_only(
        positive(1, "levels of the decoder; the first has the attention", _DEPTH, role=Role.MODEL)
    )
    rnn_dec_base_transition_depth: int = rnn_only(
        between(
            2,
            "GRUs one after another in the first level of the decoder",
            2,
            _DEPTH,
            role=Role.MODEL,
        )
    )
    rnn_dec_high_transition_depth: int = rnn_only(
        positive(1, "GRUs one after another in each other level", _DEPTH, role=Role.MODEL)
    )
    rnn_dec_deep_context: bool = rnn_only(
        option(False, "give the attended context to the further levels too", role=Role.MODEL)
    )
    transformer_enc_depth: int = transformer_only(
        positive(6, "layers of the encoder", _DEPTH, role=Role.MODEL)
    )
    transformer_dec_depth: int = transformer_only(
        positive(6, "layers of the decoder", _DEPTH, role=Role.MODEL)
    )
    transformer_ffn_hidden_size: int = transformer_only(
        positive(2048, "inner size of the feed-forwards", _SIZE, role=Role.MODEL)
    )
    transformer_num_heads: int = transformer_only(
        positive(8, "heads of each attention", _DEPTH, role=Role.MODEL)
    )
    transformer_norm_position: str = transformer_only(
        choice(
            "pre",
            "normalize the input of each sublayer (pre) or its residual sum (post)",
            ("pre", "post"),
            role=Role.MODEL,
        )
    )
    transformer_norm_epsilon: float = transformer_only(
        positive(
            EPSILON,
            "constant inside the square root of every normalization",
            1,
            role=Role.MODEL,
        )
    )
    transformer_activation: str = transformer_only(
        choice(
            "relu",
            "activation in the feed-forwards; gelu_tanh approximates gelu",
            ("relu", "swish", "gelu", "gelu_tanh"),
            role=Role.MODEL,
        )
    )
    transformer_attention_bias: bool = transformer_only(
        option(False, "add biases to the projections of attention", role=Role.MODEL)
    )
    transformer_output_bias: bool = transformer_only(
        option(False, "add a bias to the output layer", role=Role.MODEL)
    )
    transformer_positions: str = transformer_only(
        choice(
            "tensor2tensor",
            "frequencies of the d / 2 sines of positions: 10000**(-2i / (d - 2)), as in "
            "Tensor2Tensor, Nematus and Marian, or 10000**(-2i / d), as in the paper and "
            "transformers",
            ("tensor2tensor", "paper"),
            role=Role.MODEL,
        )
    )
    transformer_padding: int = transformer_only(
        between(
            0,
            "rows of the tables after those of the words, which are never chosen nor trained and "
            "zeros at first; translations begin with the last of them, without any with id 1",
            0,
            _COUNT,
            role=Role.MODEL,
        )
    )
    transformer_alignment_layer: int | None = transformer_only(
        positive(
            None,
            "layer of the decoder that `translate --alignments` takes; by default, the last but "
            "one",
            _DEPTH,
            role=Role.VALIDATION,
        )
    )

    rnn_dropout_embedding: float = rnn_only(
        fraction(0.0, "dropout of embedding units", role=Role.OPTIMIZATION)
    )
    rnn_dropout_hidden: float = rnn_only(
        fraction(0.0, "dropout of hidden units", role=Role.OPTIMIZATION)
    )
    rnn_dropout_source: float = rnn_only(
        fraction(0.0, "dropout of whole source words", role=Role.OPTIMIZATION)
    )
    rnn_dropout_target: float = rnn_only(
        fraction(0.0, "dropout of whole target words", role=Role.OPTIMIZATION)
    )
    transformer_dropout_embeddings: float = transformer_only(
        fraction(0.1, "dropout of embeddings and positions", role=Role.OPTIMIZATION)
    )
    transformer_dropout_residual: float = transformer_only(
        fraction(0.1, "dropout of sublayer outputs", role=Role.OPTIMIZATION)
    )
    transformer_dropout_relu: float = transformer_only(
        fraction(0.1, "dropout of feed-forward network inputs", role=Role.OPTIMIZATION)
    )
    transformer_dropout_attn: float = transformer_only(
        fraction(0.1, "dropout of attention weights", role=Role.OPTIMIZATION)
    )
    transformer_drophead: float = transformer_only(
        fraction(0.0, "dropout of whole attention heads", role=Role.OPTIMIZATION)
    )
    subword_sampling: float = fraction(
        0.0,
        "split the training text at random: the probability of skipping a merge of a BPE "
        "vocabulary, or the exponent of a unigram one's probabilities; 0 turns it off",
        role=Role.OPTIMIZATION,
    )
    label_smoothing: float = fraction(
        0.0,
        "probability moved from the right word to all (Transformer: to others)",
        role=Role.OPTIMIZATION,
    )
    batch_size: int = positive(80, "sentence pairs per update", _SIZE, role=Role.OPTIMIZATION)
    token_batch_size: int | None = positive(
        None,
        "tokens per update on each side, padding counted, instead of --batch_size",
        _COUNT,
        role=Role.OPTIMIZATION,
    )
    loss_function: str = choice(
        LOSSES[0],
        "what the summed cost of a batch is divided by before its gradient is clipped. "
        "cross-entropy: its sentences. per-token-cross-entropy, the default with "
        "--token_batch_size: its target tokens, ends included",
        LOSSES,
        role=Role.OPTIMIZATION,
    )
    adam_beta1: float = fraction(0.9, "decay of Adam's first moment", role=Role.OPTIMIZATION)
    adam_beta2: float = fraction(0.999, "decay of Adam's second moment", role=Role.OPTIMIZATION)
    adam_epsilon: float = positive(1e-8, "constant in Adam's denominator", role=Role.OPTIMIZATION)
    weight_decay: float = non_negative(
        0.0,
        "AdamW: an update takes this share of each matrix away, times the learning rate; 0 turns "
        "it off",
        role=Role.OPTIMIZATION,
    )
    clip_c: float = non_negative(
        1.0, "clip the gradient to this global norm; 0 turns it off", role=Role.OPTIMIZATION
    )
    clip_counts: str = choice(
        "occurrences",
        "what the norm that --clip_c limits counts. occurrences (Nematus v0.3): each occurrence of "
        "a word in an RNN's embedding gradient. words (master, and always in a Transformer): "
        "occurrences of a word are summed first",
        ("occurrences", "words"),
        role=Role.OPTIMIZATION,
    )
    gradient_aggregation_steps: int = positive(
        1,
        "split each batch into this many parts and add up their gradients: less memory, the same "
        "update",
        role=Role.OPTIMIZATION,
    )
    exponential_smoothing: float = fraction(
        0.0,
        "validate and keep a moving average of the weights, in which the newest have this share; 0 "
        "turns it off",
        role=Role.OPTIMIZATION,
    )
    dtype: str = choice(
        "float32",
        "mixed_bfloat16 rounds the factors of the large matrix products, which some processors "
        "multiply faster",
        ("float32", "mixed_bfloat16"),
        role=Role.OPTIMIZATION,
    )
    deterministic: bool = option(
        False,
        "use deterministic operations: the same seed gives the same run on a GPU too, but slower",
        role=Role.OPTIMIZATION,
    )
    reload: str | None = option(
        None,
        "start with the weights of the best model in this directory",
        metavar="DIR",
        role=Role.START,
    )
    reload_training_progress: bool = option(
        False, "with --reload: take over optimizer and updates too", role=Role.START
    )
    reload_other_vocabularies: bool = option(
        False,
        "with --reload: take other --dictionaries than it was trained with, and keep the words "
        "that both have",
        role=Role.START,
    )
    seed: int = between(
        1234, "seed of initialisation, order and dropout", 0, MOST, role=Role.OPTIMIZATION
    )

    learning_schedule: str = choice(
        "constant",
        "learning rate over time. transformer: linear warmup to a peak that --state_size and "
        "--warmup_steps set, then inverse square root decay. warmup-plateau-decay: the same with a "
        "peak of --learning_rate and a plateau there",
        ("constant", "transformer", "warmup-plateau-decay"),
        role=Role.LEARNING_RATE,
    )
    learning_rate: float = only_with(
        positive(0.0001, "learning rate of Adam, or its peak", role=Role.LEARNING_RATE),
        learning_schedule=("constant", "warmup-plateau-decay"),
    )
    warmup_steps: int = only_with(
        positive(8000, "updates until the learning rate reaches its peak", role=Role.LEARNING_RATE),
        learning_schedule=("transformer", "warmup-plateau-decay"),
    )
    plateau_steps: int = only_with(
        non_negative(0, "updates at the peak", role=Role.LEARNING_RATE),
        learning_schedule=("warmup-plateau-decay",),
    )
    learning_rate_reduce_factor: float = fraction(
        0.0,
        "multiply the learning rate by this on a plateau of the validation loss; 0 turns it off",
        role=Role.LEARNING_RATE,
    )
    learning_rate_reduce_num_not_improved: int = positive(
        8, "validations in a row without a lower loss", role=Role.LEARNING_RATE
    )

    finish_after: int = positive(10_000_000, "stop after this many updates", role=Role.VALIDATION)
    max_epochs: int = positive(
        5000, "stop after this many passes over the training text", role=Role.VALIDATION
    )
    patience: int = positive(
        10, "stop after this many validations in a row without a better model", role=Role.VALIDATION
    )
    valid_freq: int | None = positive(
        None,
        "updates between validations, each of which saves a checkpoint; by default, those of a "
        "pass over the training text, but at least 500 and at most 10000",
        role=Role.VALIDATION,
    )
    valid_metric: str = choice(
        "bleu",
        "metric that chooses the best model, then the loss",
        VALID_METRICS,
        role=Role.VALIDATION,
    )
    valid_tokenizer: str = choice(
        "13a", "tokenizer of sacreBLEU; char suits any script", TOKENIZERS, role=Role.VALIDATION
    )
    save_freq: int | None = positive(
        None,
        "updates between further checkpoints; by default, one every 10 minutes",
        role=Role.VALIDATION,
    )
    keep: int = non_negative(
        0,
        "keep the models of this many latest validations, for `nmt average`",
        role=Role.VALIDATION,
    )
    keep_best: int = non_negative(
        0,
        "keep the models of this many best validations too, for `nmt average`",
        role=Role.VALIDATION,
    )
    summary_freq: int = positive(
        100, "updates between entries in the log for TensorBoard", role=Role.VALIDATION
    )
    valid_batch_size: int = like(DecodingOptions, "batch_size", Role.VALIDATION)
    beam_size: int = like(DecodingOptions, "beam_size", Role.VALIDATION)
    normalization_alpha: float = like(DecodingOptions, "normalization_alpha", Role.VALIDATION)
    translation_maxlen: int | None = like(DecodingOptions, "translation_maxlen", Role.VALIDATION)
    min_length: int = like(DecodingOptions, "min_length", Role.VALIDATION)
    suppress_unknown: bool = like(DecodingOptions, "suppress_unknown", Role.VALIDATION)
    no_repeat_ngram: int | None = like(DecodingOptions, "no_repeat_ngram", Role.VALIDATION)

    def fixed_options(self) -> dict[str, Any]:
        """Returns the options that have an effect and stay the same when a training resumes."""
        return self._of_roles(*_FIXED)

    @property
    def decoding(self) -> DecodingOptions:
        """How the validation text is translated."""
        search = {name: getattr(self, name) for name in SEARCH}
        return DecodingOptions(batch_size=self.valid_batch_size, **search)

    @property
    def normalization(self) -> Normalization:
        return Normalization(
            self.layer_normalization_type,
            self.layer_normalization_center,
            self.transformer_norm_epsilon,
        )

    @property
    def architecture(self) -> dict[str, Any]:
        """The options that two models must share to have the same weights."""
        return self._of_roles(Role.MODEL)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the configuration as a JSON file for `--config`."""
        write_json(path, dataclasses.asdict(self))

    def _of_roles(self, *roles: Role) -> dict[str, Any]:
        names = options_of(*roles)
        fields = [each for each in dataclasses.fields(self) if each.name in names]
        return {each.name: getattr(self, each.name) for each in fields if has_effect(each, self)}


def options_of(*roles: Role) -> tuple[str, ...]:
    """Returns the names of the options with these roles."""
    fields = dataclasses.fields(Config)
    return tuple(field.name for field in fields if field.metadata["role"] in roles)


FILES = options_of(Role.FILE)
CHANGEABLE = options_of(Role.LEARNING_RATE, Role.VALIDATION)


def read_options(path: Path) -> dict[str, Any]:
    """Returns the options in a file: YAML if its name ends in `.yaml` or `.yml`, else JSON."""
    if path.suffix in (".yaml", ".yml"):
        return read_yaml(path, dataclasses.fields(Config))
    return read_json(path)


def make_config(options: dict[str, Any]) -> Config:
    """Makes a validated configuration of options, those of their `preset`, and defaults."""
    options = complete(Config, options)
    fields = dataclasses.fields(Config)
    unknown = sorted(set(options) - {field.name for field in fields})
    if unknown:
        raise UserError("\n".join(map(_unknown, unknown)))
    for field in fields:
        value = options.get(field.name)
        if isinstance(value, list):
            options[field.name] = from_list(field, value)
    config = Config(**options)
    wrong = mistakes(config) or list(conflicts(config))
    if wrong:
        raise UserError("\n".join(wrong))
    return config


def read_config(directory: Path) -> Config:
    """Reads the configuration of a model directory; errors name its file."""
    path = directory / "config.json"
    try:
        return make_config(read_json(path, directory))
    except UserError as error:
        lines = [
            line if str(path) in line else f"{path}: {line}" for line in str(error).splitlines()
        ]
        raise UserError("\n".join(lines)) from None


def _unknown(name: str) -> str:
    names = [field.name for field in dataclasses.fields(Config)]
    close = difflib.get_close_matches(name, names, 1)
    hint = "`python -m nmt train --help` lists the options"
    if close:
        hint = f"did you mean {close[0]}?"
    return f"unknown option {name}; {hint}"
