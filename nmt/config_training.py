"""Declares the other options of a training, in groups by what happens when it resumes."""

from dataclasses import dataclass

from .config_fields import (
    MOST,
    between,
    choice,
    fraction,
    like,
    non_negative,
    only_with,
    option,
    positive,
    required_file,
    required_text,
    rnn_only,
    transformer_only,
)
from .config_rules import LOSSES
from .decoding.options import DecodingOptions

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

# The largest values: beyond them, the memory of any machine ends before a message does.
_SIZE = 100_000  # sentences in a batch, tokens in a sentence
_COUNT = 10_000_000


@dataclass(frozen=True)
class FileOptions:
    """Name files, which may move."""

    source_dataset: str | tuple[str, ...] = required_text(
        "training text, source side, one sentence a line: files or patterns such as 'train-*.en', "
        "also .gz and .zst"
    )
    target_dataset: str | tuple[str, ...] = required_text(
        "training text, target side, files in the same order"
    )
    dictionaries: tuple[str, str] = required_file(
        "source and target vocabulary: SentencePiece .model or Nematus .json", nargs=2
    )
    valid_source_dataset: str | tuple[str, ...] = required_text("text for validation, source side")
    valid_target_dataset: str | tuple[str, ...] = required_text("text for validation, target side")


@dataclass(frozen=True)
class TextOptions:
    """Decide which pairs are read. They stay the same."""

    dataset_weights: tuple[float, ...] | None = option(
        None,
        "weight of each file or pattern of --source_dataset: how often an epoch takes its pairs; "
        "by default, once",
        "above 0 and at most 1000",
        lambda value: min(value) > 0 and max(value) <= 1000,
        nargs="+",
        metavar="WEIGHT",
    )
    source_vocab_sizes: int | None = between(
        None, "use only this many words of a .json source dictionary", 4, _COUNT
    )
    target_vocab_size: int | None = between(
        None, "use only this many words of a .json target dictionary", 4, _COUNT
    )
    target_prefixes: tuple[str, ...] | None = option(
        None,
        "text that begins every target of a file or pattern of --target_dataset, such as <2de> or "
        "<bt>; one for each, '' for none; `translate --target_prefix` begins translations with it",
        nargs="+",
        metavar="PREFIX",
    )
    valid_target_prefixes: tuple[str, ...] | None = option(
        None,
        "the same for --valid_target_dataset; translations there begin with it",
        nargs="+",
        metavar="PREFIX",
    )
    valid_sample: int | None = positive(
        None,
        "validate on this many pairs of each file or pattern, evenly spread; by default, on all",
        _COUNT,
    )
    maxlen: int = positive(
        100, "leave out training pairs with more tokens than this on either side", _SIZE
    )
    max_length_ratio: float | None = option(
        None,
        "leave out training pairs whose longer side has more than this many times the tokens of "
        "the other",
        "1 or more",
        lambda value: value >= 1,
    )


@dataclass(frozen=True)
class OptimizationOptions:
    """Decide what an update does. They stay the same."""

    rnn_dropout_embedding: float = rnn_only(fraction(0.0, "dropout of embedding units"))
    rnn_dropout_hidden: float = rnn_only(fraction(0.0, "dropout of hidden units"))
    rnn_dropout_source: float = rnn_only(fraction(0.0, "dropout of whole source words"))
    rnn_dropout_target: float = rnn_only(fraction(0.0, "dropout of whole target words"))
    transformer_dropout_embeddings: float = transformer_only(
        fraction(0.1, "dropout of embeddings and positions")
    )
    transformer_dropout_residual: float = transformer_only(
        fraction(0.1, "dropout of sublayer outputs")
    )
    transformer_dropout_relu: float = transformer_only(
        fraction(0.1, "dropout of feed-forward network inputs")
    )
    transformer_dropout_attn: float = transformer_only(
        fraction(0.1, "dropout of attention weights")
    )
    transformer_drophead: float = transformer_only(
        fraction(0.0, "dropout of whole attention heads")
    )
    subword_sampling: float = fraction(
        0.0,
        "split the training text at random: the probability of skipping a merge of a BPE "
        "vocabulary, or the exponent of a unigram one's probabilities; 0 turns it off",
    )
    label_smoothing: float = fraction(
        0.0, "probability moved from the right word to all (Transformer: to others)"
    )
    batch_size: int = positive(80, "sentence pairs per update", _SIZE)
    token_batch_size: int | None = positive(
        None, "tokens per update on each side, padding counted, instead of --batch_size", _COUNT
    )
    loss_function: str = choice(
        LOSSES[0],
        "what the summed cost of a batch is divided by before its gradient is clipped. "
        "cross-entropy: its sentences. per-token-cross-entropy, the default with "
        "--token_batch_size: its target tokens, ends included",
        LOSSES,
    )
    adam_beta1: float = fraction(0.9, "decay of Adam's first moment")
    adam_beta2: float = fraction(0.999, "decay of Adam's second moment")
    adam_epsilon: float = positive(1e-8, "constant in Adam's denominator")
    weight_decay: float = non_negative(
        0.0,
        "AdamW: an update takes this share of each matrix away, times the learning rate; 0 turns "
        "it off",
    )
    clip_c: float = non_negative(1.0, "clip the gradient to this global norm; 0 turns it off")
    clip_counts: str = choice(
        "occurrences",
        "what the norm that --clip_c limits counts. occurrences (Nematus v0.3): each occurrence of "
        "a word in an RNN's embedding gradient. words (master, and always in a Transformer): "
        "occurrences of a word are summed first",
        ("occurrences", "words"),
    )
    gradient_aggregation_steps: int = positive(
        1,
        "split each batch into this many parts and add up their gradients: less memory, the same "
        "update",
    )
    exponential_smoothing: float = fraction(
        0.0,
        "validate and keep a moving average of the weights, in which the newest have this share; 0 "
        "turns it off",
    )
    dtype: str = choice(
        "float32",
        "mixed_bfloat16 rounds the factors of the large matrix products, which some processors "
        "multiply faster",
        ("float32", "mixed_bfloat16"),
    )
    deterministic: bool = option(
        False,
        "use deterministic operations: the same seed gives the same run on a GPU too, but slower",
    )
    seed: int = between(1234, "seed of initialisation, order and dropout", 0, MOST)


@dataclass(frozen=True)
class StartOptions:
    """Have no effect once the training has begun."""

    reload: str | None = option(
        None, "start with the weights of the best model in this directory", metavar="DIR"
    )
    reload_training_progress: bool = option(
        False, "with --reload: take over optimizer and updates too"
    )
    reload_other_vocabularies: bool = option(
        False,
        "with --reload: take other --dictionaries than it was trained with, and keep the words "
        "that both have",
    )


@dataclass(frozen=True)
class LearningRateOptions:
    """Decide the learning rate. They may change."""

    learning_schedule: str = choice(
        "constant",
        "learning rate over time. transformer: linear warmup to a peak that --state_size and "
        "--warmup_steps set, then inverse square root decay. warmup-plateau-decay: the same with a "
        "peak of --learning_rate and a plateau there",
        ("constant", "transformer", "warmup-plateau-decay"),
    )
    learning_rate: float = only_with(
        positive(0.0001, "learning rate of Adam, or its peak"),
        learning_schedule=("constant", "warmup-plateau-decay"),
    )
    warmup_steps: int = only_with(
        positive(8000, "updates until the learning rate reaches its peak"),
        learning_schedule=("transformer", "warmup-plateau-decay"),
    )
    plateau_steps: int = only_with(
        non_negative(0, "updates at the peak"),
        learning_schedule=("warmup-plateau-decay",),
    )
    learning_rate_reduce_factor: float = fraction(
        0.0,
        "multiply the learning rate by this on a plateau of the validation loss; 0 turns it off",
    )
    learning_rate_reduce_num_not_improved: int = positive(
        8, "validations in a row without a lower loss"
    )


@dataclass(frozen=True)
class ValidationOptions:
    """Decide when a training validates and ends. They may change."""

    finish_after: int = positive(10_000_000, "stop after this many updates")
    max_epochs: int = positive(5000, "stop after this many passes over the training text")
    patience: int = positive(10, "stop after this many validations in a row without a better model")
    valid_freq: int | None = positive(
        None,
        "updates between validations, each of which saves a checkpoint; by default, those of a "
        "pass over the training text, but at least 500 and at most 10000",
    )
    valid_metric: str = choice(
        "bleu", "metric that chooses the best model, then the loss", ("bleu", "chrf", "loss")
    )
    valid_tokenizer: str = choice(
        "13a", "tokenizer of sacreBLEU; char suits any script", TOKENIZERS
    )
    save_freq: int | None = positive(
        None, "updates between further checkpoints; by default, one every 10 minutes"
    )
    keep: int = non_negative(
        0, "keep the models of this many latest validations, for `nmt average`"
    )
    keep_best: int = non_negative(
        0, "keep the models of this many best validations too, for `nmt average`"
    )
    summary_freq: int = positive(100, "updates between entries in the log for TensorBoard")
    transformer_alignment_layer: int | None = transformer_only(
        positive(
            None,
            "layer of the decoder that `translate --alignments` takes; by default, the last but "
            "one",
            1000,
        )
    )
    valid_batch_size: int = like(DecodingOptions, "batch_size")
    beam_size: int = like(DecodingOptions, "beam_size")
    normalization_alpha: float = like(DecodingOptions, "normalization_alpha")
    translation_maxlen: int | None = like(DecodingOptions, "translation_maxlen")
    min_length: int = like(DecodingOptions, "min_length")
    suppress_unknown: bool = like(DecodingOptions, "suppress_unknown")
    no_repeat_ngram: int | None = like(DecodingOptions, "no_repeat_ngram")
