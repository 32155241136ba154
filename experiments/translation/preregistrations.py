"""The plans, each with its claims: PLAN.md, PLAN-pre-norm.md and PLAN-biases.md of experiments/."""

from collections.abc import Mapping, Sequence

from ..reporting.judging import Hypothesis, Question
from .claims import MARGIN, MEASURES, questions
from .preregistration import Contrast, Preregistration, level
from .results import Result

_RNN = ("multi30k_rnn", "RNN")
_PRE = ("multi30k_pre", "Transformer, pre-norm")
_POST = ("multi30k_post", "Transformer, post-norm")
_PAIRS = (  # corpus, model, kind, its name, and the number of seeds
    (*_RNN, "rmsnorm", "RMSNorm", 8),
    (*_RNN, "prmsnorm", "pRMSNorm", 8),
    (*_PRE, "rmsnorm", "RMSNorm", 5),
    (*_PRE, "prmsnorm", "pRMSNorm", 3),
    (*_POST, "rmsnorm", "RMSNorm", 6),
)
_COMPARED = [(*pair[:4], "LayerNorm") for pair in _PAIRS] + [
    (*_PRE, "rmsnorm-offset", "RMSNorm with an offset", other) for other in ("LayerNorm", "RMSNorm")
]


def _planned(results: Sequence[Result]) -> list[Question]:
    """Returns the claims of PLAN.md, each with the BLEU at which its kinds were compared."""
    found = []
    for corpus, model, kind, name, count in _PAIRS:
        conditions = (f"{corpus}-{kind}", f"{corpus}-layernorm")
        first = (corpus, kind) == ("multi30k_rnn", "rmsnorm")
        note = level(results, conditions[1])
        for outcome, words, label in (
            ("not lower", "is not worse than", "P1"),
            ("equal", "is equal to", "P2"),
        ):
            claim = f"{label}: " * first + f"{name} {words} LayerNorm, {model}"
            family = label if first else outcome
            found.append(
                Hypothesis(*conditions, outcome, claim, "", MARGIN, count, family, note=note)
            )
    claim = "D1: RMSNorm is worse than LayerNorm, Transformer, post-norm"
    found.append(Hypothesis(*conditions, "lower", claim, "", planned=6, family="D1", note=note))
    conditions = ("multi30k_rnn-rmsnorm", "multi30k_rnn-layernorm")
    claim = "Secondary: RMSNorm's validation loss is equal to LayerNorm's, RNN"
    found.append(
        Hypothesis(*conditions, "equal", claim, "", 0.065, 8, "loss", measure="valid_loss")
    )  # nats
    return questions(results, found)


_PRE_NORM = "multi30k_pre_norm"
_LAYERNORM, _NO_OFFSET, _RMSNORM, _OFFSET, _CENTRED = (
    f"{_PRE_NORM}-{kind}"
    for kind in (
        "layernorm",
        "layernorm-no-offset",
        "rmsnorm",
        "rmsnorm-offset",
        "rmsnorm-centred-positions",
    )
)
_CAUSES = {  # claims: a cause lowers the training loss
    "C1: the offset lowers the loss": Contrast(
        "C1: with the offset minus without",
        {_OFFSET: 0.5, _RMSNORM: -0.5, _LAYERNORM: 0.5, _NO_OFFSET: -0.5},
    ),
    "C2: centring lowers the loss": Contrast(
        "C2: with centring minus without",
        {_LAYERNORM: 0.5, _OFFSET: -0.5, _NO_OFFSET: 0.5, _RMSNORM: -0.5},
    ),
    "C3: centred positions lower the loss": Contrast(
        "C3: RMSNorm with centred sinusoids minus RMSNorm", {_CENTRED: 1, _RMSNORM: -1}
    ),
}
_SINGLE = [
    Contrast("RMSNorm with an offset minus RMSNorm", {_OFFSET: 1, _RMSNORM: -1}),
    Contrast("LayerNorm minus LayerNorm without offset", {_LAYERNORM: 1, _NO_OFFSET: -1}),
    Contrast("LayerNorm minus RMSNorm with an offset", {_LAYERNORM: 1, _OFFSET: -1}),
    Contrast("LayerNorm without offset minus RMSNorm", {_NO_OFFSET: 1, _RMSNORM: -1}),
    Contrast("RMSNorm minus LayerNorm", {_RMSNORM: 1, _LAYERNORM: -1}),
    Contrast(
        "Interaction: the offset's effect in RMSNorm minus that in LayerNorm",
        {_OFFSET: 1, _RMSNORM: -1, _LAYERNORM: -1, _NO_OFFSET: 1},
    ),
]


def _on_training_loss(
    results: Sequence[Result],
    kinds: Sequence[str],
    claims: Mapping[str, tuple[Contrast, str]],
    margin: float = 0.0,
) -> list[Question]:
    """Returns claims on the training loss, over the seeds that all kinds have.

    Args:
        results: The trainings that are done.
        kinds: The names of the plan's conditions.
        claims: The contrast and the outcome of each, by its words.
        margin: The margin of all.
    """
    done: dict[str, set[int]] = {kind: set() for kind in kinds}
    for each in results:
        done.get(each.condition.name, set()).add(each.seed)
    seeds = set.intersection(*done.values())
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


def _pre_norm(results: Sequence[Result]) -> list[Question]:
    """Returns the claims of PLAN-pre-norm.md."""
    kinds = (_LAYERNORM, _NO_OFFSET, _RMSNORM, _OFFSET, _CENTRED)
    claims = {claim: (contrast, "lower") for claim, contrast in _CAUSES.items()}
    return _on_training_loss(results, kinds, claims)


_BIASES = "multi30k_biases"
_PLAIN = f"{_BIASES}-rmsnorm"
_WITH_BIASES = f"{_BIASES}-rmsnorm-biases"
_LAYERNORM_BIASES = f"{_BIASES}-layernorm-biases"
_LAST_OFFSET = f"{_BIASES}-rmsnorm-last-offset"
_BY_BIASES = Contrast("RMSNorm with biases minus RMSNorm", {_WITH_BIASES: 1, _PLAIN: -1})
_BOTH_BIASES = Contrast(
    "RMSNorm with biases minus LayerNorm with biases", {_WITH_BIASES: 1, _LAYERNORM_BIASES: -1}
)


def _biases(results: Sequence[Result]) -> list[Question]:
    """Returns the claims of PLAN-biases.md."""
    kinds = (_PLAIN, _WITH_BIASES, _LAYERNORM_BIASES, _LAST_OFFSET)
    claims = {
        "B1: biases lower RMSNorm's loss, by more than 0.005": (_BY_BIASES, "lower"),
        "B2: with biases, RMSNorm's loss is not higher than LayerNorm's": (
            _BOTH_BIASES,
            "not higher",
        ),
    }
    return _on_training_loss(results, kinds, claims, 0.005)


PREREGISTRATIONS = {  # by the names of their kept reports
    "planned": Preregistration(
        title="RMSNorm and LayerNorm in translation, as planned",
        page="experiments/PLAN.md of commit 3a11b52",
        corpora=("multi30k_rnn", "multi30k_post", "multi30k_pre"),
        about="Stand-in data, small models, short trainings: Multi30k, 29,000 descriptions of images, in place of "
        "WMT14; states of 128; 1,800 updates, and 6,000 of the pre-norm Transformer. In all trainings the last "
        "validation is the best: the models still improve when they are compared. On the RNN, LayerNorm's seeds 101 "
        "and 102 are of commit be525537, all its other trainings of 1abc458c; without these two pairs, RMSNorm minus "
        "LayerNorm is +0.37 [+0.01, +0.73] BLEU.",
        text="P1 and P2 are tested in this order without a correction; the other claims that a kind is not worse are "
        "corrected together, and those that it is equal. BLEU is that of the checkpoint with the lowest validation "
        "loss, over the three test sets, weighted by sentences. Secondary measures change no verdict.",
        questions=_planned,
        contrasts=[
            Contrast(
                f"{name} minus {other}, {model}",
                {f"{corpus}-{kind}": 1, f"{corpus}-{other.lower()}": -1},
            )
            for corpus, model, kind, name, other in _COMPARED
        ],
        measures=("bleu", "chrf", "valid_loss", "train_loss"),
        note="The training loss, over the updates since the validation before the last, is no measure of the plan. "
        "RMSNorm with an offset is explored as experiments/PLAN-pre-norm.md announces.",
    ),
    _PRE_NORM: Preregistration(
        title="Why RMSNorm's training loss is higher in the pre-norm Transformer: planned trainings",
        page="experiments/PLAN-pre-norm.md of commit b2c92ac8",
        corpora=(_PRE_NORM,),
        about="Stand-in data, a small model, short trainings: the pre-norm Transformer of `multi30k_pre` with 3,000 "
        "updates. LayerNorm and RMSNorm differ in the offset and in centring; the claims say which of them, or the "
        "mean of the sinusoids, explains RMSNorm's higher loss.",
        text="The training loss is in nats a unit, with smoothed labels and dropout, over the updates 2,001 to 3,000. "
        "A claim is shown if the difference is shown and below 0; above 0, the verdict is the opposite.",
        questions=_pre_norm,
        contrasts=[*_CAUSES.values(), *_SINGLE],
        measures=("train_loss", "valid_loss", "bleu", "chrf"),
        note="BLEU and chrF are those of the checkpoint with the lowest validation loss, over the three test sets, "
        "weighted by sentences.",
    ),
    _BIASES: Preregistration(
        title="Biases in the place of offsets: planned trainings",
        page="experiments/PLAN-biases.md of commit 0a07d81f",
        corpora=(_BIASES,),
        about="Stand-in data, a small model, short trainings: the pre-norm Transformer of `multi30k_pre_norm` with "
        "3,000 updates. Does RMSNorm need an offset there, or does the model lack biases?",
        text="The training loss is in nats a unit, with smoothed labels and dropout, over the updates 2,001 to 3,000. "
        "Both claims are one-sided t tests against the margin.",
        questions=_biases,
        contrasts=[
            _BY_BIASES,
            _BOTH_BIASES,
            Contrast(
                "RMSNorm, offset in the last norm, minus RMSNorm", {_LAST_OFFSET: 1, _PLAIN: -1}
            ),
            Contrast(
                "RMSNorm, offset in the last norm, minus RMSNorm with biases",
                {_LAST_OFFSET: 1, _WITH_BIASES: -1},
            ),
        ],
        measures=("train_loss", "valid_loss", "bleu", "chrf"),
        note="All but the training loss of the two claims is exploration. BLEU and chrF are those of the checkpoint "
        "with the lowest validation loss, over the three test sets, weighted by sentences.",
    ),
}


def preregistration_of(name: str) -> Preregistration | None:
    """Returns the plan with this name, or that which trains the corpus with it; `None` if there is none."""
    return PREREGISTRATIONS.get(name) or next(
        (plan for plan in PREREGISTRATIONS.values() if name in plan.corpora), None
    )
