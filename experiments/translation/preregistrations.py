"""Declares the preregistrations of PLAN.md, PLAN-pre-norm.md and PLAN-biases.md."""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import mean

from ..reporting.judging import Hypothesis, Question
from .claims import MARGIN, MEASURES, Contrast, questions, shared_seeds
from .preregistration import Preregistration
from .results import Result

_PAIRS = (  # corpus, model, kind, its name, and the number of seeds
    ("multi30k_rnn", "RNN", "rmsnorm", "RMSNorm", 8),
    ("multi30k_rnn", "RNN", "prmsnorm", "pRMSNorm", 8),
    ("multi30k_pre", "Transformer, pre-norm", "rmsnorm", "RMSNorm", 5),
    ("multi30k_pre", "Transformer, pre-norm", "prmsnorm", "pRMSNorm", 3),
    ("multi30k_post", "Transformer, post-norm", "rmsnorm", "RMSNorm", 6),
)


def _planned(results: Sequence[Result]) -> list[Question]:
    """Returns the claims of PLAN.md, each with the BLEU at which its kinds were compared."""
    found = []
    for corpus, model, kind, name, count in _PAIRS:
        conditions = (f"{corpus}-{kind}", f"{corpus}-layernorm")
        is_first = (corpus, kind) == ("multi30k_rnn", "rmsnorm")
        bleu = [each.bleu for each in results if each.condition.name == conditions[1]]
        note = f"LayerNorm at {mean(bleu):.0f} BLEU, still improving" if bleu else ""
        for outcome, words, label in (
            ("not lower", "is not worse than", "P1"),
            ("equal", "is equal to", "P2"),
        ):
            claim = f"{label}: " * is_first + f"{name} {words} LayerNorm, {model}"
            family = label if is_first else outcome
            asked = Hypothesis(*conditions, outcome, claim, "", MARGIN, count, family, note=note)
            found.append(asked)
    claim = "D1: RMSNorm is worse than LayerNorm, Transformer, post-norm"
    found.append(Hypothesis(*conditions, "lower", claim, "", planned=6, family="D1", note=note))
    conditions = ("multi30k_rnn-rmsnorm", "multi30k_rnn-layernorm")
    claim = "Secondary: RMSNorm's validation loss is equal to LayerNorm's, RNN"
    nats = {"margin": 0.065, "measure": "valid_loss"}
    found.append(Hypothesis(*conditions, "equal", claim, "", planned=8, family="loss", **nats))
    return questions(results, found)


def _on_training_loss(
    claims: Mapping[str, tuple[Contrast, str]],
    contrasts: Sequence[Contrast],
    margin: float,
    results: Sequence[Result],
) -> list[Question]:
    """Returns claims on the training loss, over the seeds that all conditions have.

    Args:
        claims: The contrast and the outcome of each, by its words.
        contrasts: The contrasts of a preregistration, which name all its conditions.
        margin: The margin of all claims.
        results: The trainings that are done.
    """
    seeds = shared_seeds(results, set().union(*(contrast.weights for contrast in contrasts)))
    whole = [each for each in results if each.seed in seeds]
    measure = MEASURES["train_loss"]
    return [
        Question(
            one="",
            other="",
            outcome=outcome,
            claim=claim,
            margin=margin,
            planned=4,
            pair=contrast.label,
            differences=contrast.differences(whole, measure.value),
            unit=measure.unit,
            digits=measure.digits + 1,
        )
        for claim, (contrast, outcome) in claims.items()
    ]


def _contrast(label: str, corpus: str, weight: float = 1, **kinds: int) -> Contrast:
    """Returns a contrast of kinds on a corpus, each 1 or -1; `_` in a name stands for `-`."""
    names = {kind: f"{corpus}-{kind.replace('_', '-')}" for kind in kinds}
    return Contrast(label, {names[kind]: weight * sign for kind, sign in kinds.items()})


_PRE_NORM = "multi30k_pre_norm"
_CAUSES = {  # claims: a cause lowers the training loss
    "C1: the offset lowers the loss": _contrast(
        "C1: with the offset minus without",
        _PRE_NORM,
        0.5,
        rmsnorm_offset=1,
        rmsnorm=-1,
        layernorm=1,
        layernorm_no_offset=-1,
    ),
    "C2: centring lowers the loss": _contrast(
        "C2: with centring minus without",
        _PRE_NORM,
        0.5,
        layernorm=1,
        rmsnorm_offset=-1,
        layernorm_no_offset=1,
        rmsnorm=-1,
    ),
    "C3: centred positions lower the loss": _contrast(
        "C3: RMSNorm with centred sinusoids minus RMSNorm",
        _PRE_NORM,
        rmsnorm_centred_positions=1,
        rmsnorm=-1,
    ),
}
_PRE_NORM_CONTRASTS = [
    *_CAUSES.values(),
    _contrast("RMSNorm with an offset minus RMSNorm", _PRE_NORM, rmsnorm_offset=1, rmsnorm=-1),
    _contrast(
        "LayerNorm minus LayerNorm without offset", _PRE_NORM, layernorm=1, layernorm_no_offset=-1
    ),
    _contrast("LayerNorm minus RMSNorm with an offset", _PRE_NORM, layernorm=1, rmsnorm_offset=-1),
    _contrast(
        "LayerNorm without offset minus RMSNorm", _PRE_NORM, layernorm_no_offset=1, rmsnorm=-1
    ),
    _contrast("RMSNorm minus LayerNorm", _PRE_NORM, rmsnorm=1, layernorm=-1),
    _contrast(
        "Interaction: the offset's effect in RMSNorm minus that in LayerNorm",
        _PRE_NORM,
        rmsnorm_offset=1,
        rmsnorm=-1,
        layernorm=-1,
        layernorm_no_offset=1,
    ),
]
_BIASES = "multi30k_biases"
_BIASES_CONTRASTS = [
    _contrast("RMSNorm with biases minus RMSNorm", _BIASES, rmsnorm_biases=1, rmsnorm=-1),
    _contrast(
        "RMSNorm with biases minus LayerNorm with biases",
        _BIASES,
        rmsnorm_biases=1,
        layernorm_biases=-1,
    ),
    _contrast(
        "RMSNorm, offset in the last norm, minus RMSNorm",
        _BIASES,
        rmsnorm_last_offset=1,
        rmsnorm=-1,
    ),
    _contrast(
        "RMSNorm, offset in the last norm, minus RMSNorm with biases",
        _BIASES,
        rmsnorm_last_offset=1,
        rmsnorm_biases=-1,
    ),
]
_BIASES_CLAIMS = {
    "B1: biases lower RMSNorm's loss, by more than 0.005": (_BIASES_CONTRASTS[0], "lower"),
    "B2: with biases, RMSNorm's loss is not higher than LayerNorm's": (
        _BIASES_CONTRASTS[1],
        "not higher",
    ),
}

PREREGISTRATIONS = {  # by the names of their kept reports
    "planned": Preregistration(
        title="RMSNorm and LayerNorm in translation, as planned",
        page="experiments/PLAN.md of commit 3a11b52",
        corpora=("multi30k_rnn", "multi30k_post", "multi30k_pre"),
        about=(
            "Stand-in data, small models, short trainings: Multi30k, 29,000 descriptions of "
            "images, in place of WMT14; states of 128; 1,800 updates, and 6,000 of the pre-norm "
            "Transformer. In all trainings the last validation is the best: the models still "
            "improve when they are compared. On the RNN, LayerNorm's seeds 101 and 102 are of "
            "commit be525537, all its other trainings of 1abc458c; without these two pairs, "
            "RMSNorm minus LayerNorm is +0.37 [+0.01, +0.73] BLEU."
        ),
        text=(
            "P1 and P2 are tested in this order without a correction; the other claims that a "
            "kind is not worse are corrected together, and those that it is equal. BLEU is that "
            "of the checkpoint with the lowest validation loss, over the three test sets, "
            "weighted by sentences. Secondary measures change no verdict."
        ),
        questions=_planned,
        contrasts=[
            *(
                _contrast(f"{name} minus LayerNorm, {model}", corpus, **{kind: 1}, layernorm=-1)
                for corpus, model, kind, name, _ in _PAIRS
            ),
            *(
                _contrast(
                    f"RMSNorm with an offset minus {other}, Transformer, pre-norm",
                    "multi30k_pre",
                    rmsnorm_offset=1,
                    **{other.lower(): -1},
                )
                for other in ("LayerNorm", "RMSNorm")
            ),
        ],
        measures=("bleu", "chrf", "valid_loss", "train_loss"),
        note=(
            "The training loss, over the updates since the validation before the last, is no "
            "measure of the plan. RMSNorm with an offset is explored as "
            "experiments/PLAN-pre-norm.md announces."
        ),
    ),
    _PRE_NORM: Preregistration(
        title=(
            "Why RMSNorm's training loss is higher in the pre-norm Transformer: planned trainings"
        ),
        page="experiments/PLAN-pre-norm.md of commit b2c92ac8",
        corpora=(_PRE_NORM,),
        about=(
            "Stand-in data, a small model, short trainings: the pre-norm Transformer of "
            "`multi30k_pre` with 3,000 updates. LayerNorm and RMSNorm differ in the offset and in "
            "centring; the claims say which of them, or the mean of the sinusoids, explains "
            "RMSNorm's higher loss."
        ),
        text=(
            "The training loss is in nats per token, with smoothed labels and dropout, over the "
            "updates 2,001 to 3,000. A claim is shown if the difference is shown and below 0; "
            "above 0, the verdict is the opposite."
        ),
        questions=partial(
            _on_training_loss,
            {claim: (contrast, "lower") for claim, contrast in _CAUSES.items()},
            _PRE_NORM_CONTRASTS,
            0.0,
        ),
        contrasts=_PRE_NORM_CONTRASTS,
        measures=("train_loss", "valid_loss", "bleu", "chrf"),
        note=(
            "BLEU and chrF are those of the checkpoint with the lowest validation loss, over the "
            "three test sets, weighted by sentences."
        ),
    ),
    _BIASES: Preregistration(
        title="Biases in the place of offsets: planned trainings",
        page="experiments/PLAN-biases.md of commit 0a07d81f",
        corpora=(_BIASES,),
        about=(
            "Stand-in data, a small model, short trainings: the pre-norm Transformer of "
            "`multi30k_pre_norm` with 3,000 updates. Does RMSNorm need an offset there, or does "
            "the model lack biases?"
        ),
        text=(
            "The training loss is in nats per token, with smoothed labels and dropout, over the "
            "updates 2,001 to 3,000. Both claims are one-sided t tests against the margin."
        ),
        questions=partial(_on_training_loss, _BIASES_CLAIMS, _BIASES_CONTRASTS, 0.005),
        contrasts=_BIASES_CONTRASTS,
        measures=("train_loss", "valid_loss", "bleu", "chrf"),
        note=(
            "All but the training loss of the two claims is exploration. BLEU and chrF are those "
            "of the checkpoint with the lowest validation loss, over the three test sets, "
            "weighted by sentences."
        ),
    ),
}


def preregistration_of(name: str) -> Preregistration | None:
    """Returns the preregistration of this name, or the one that trains this corpus.

    `None` if there is none.
    """
    return PREREGISTRATIONS.get(name) or next(
        (each for each in PREREGISTRATIONS.values() if name in each.corpora), None
    )
