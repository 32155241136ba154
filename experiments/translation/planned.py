"""The report on the trainings of experiments/PLAN.md: the claims of three corpora, judged together."""

from collections.abc import Sequence
from pathlib import Path

from ..archive import unpack
from ..reporting.differences import differences_section
from ..reporting.intervals import spread
from ..reporting.judging import RULE, Hypothesis, judge
from ..reporting.section import Section
from ..reporting.writer import write_report
from .claims import MARGIN, questions
from .corpus import read_corpus
from .place import Place
from .plan import read_rows, seed_runs
from .results import Result, by_row, read_results

NAME = "planned"  # of the folder with the logs and the report
COMMIT = "3a11b52"  # of the plan
CORPORA = {  # with the seeds of RMSNorm and of pRMSNorm
    "multi30k_rnn": ("RNN", 8, 8),
    "multi30k_pre": ("Transformer, pre-norm", 5, 3),
    "multi30k_post": ("Transformer, post-norm", 6, 0),
}
_LOSS_MARGIN = 0.065  # nats, of the RNN
_TEXT = (
    f"{RULE} The plan, experiments/PLAN.md of commit {COMMIT}, was there before the first of these trainings; no other "
    "seed was trained. P1 and P2 are tested in this order without a correction; the other claims that a kind is not "
    "worse are corrected together, and those that it is equal. BLEU is that of the checkpoint with the lowest "
    "validation loss, over the three test sets, weighted by sentences. Secondary measures change no verdict."
)


def _hypotheses() -> list[Hypothesis]:
    found = []
    for corpus, (model, *seeds) in CORPORA.items():
        for kind, name, count in zip(("rmsnorm", "prmsnorm"), ("RMSNorm", "pRMSNorm"), seeds, strict=True):
            if not count:
                continue
            rows, first = (f"{corpus}-{kind}", f"{corpus}-layernorm"), (corpus, kind) == ("multi30k_rnn", "rmsnorm")
            for outcome, words, label in (("not lower", "is not worse than", "P1"), ("equal", "is equal to", "P2")):
                claim = f"{label}: " * first + f"{name} {words} LayerNorm, {model}"
                family = label if first else outcome
                found.append(Hypothesis(*rows, outcome, claim, "", MARGIN, count, family))
    rows = ("multi30k_post-rmsnorm", "multi30k_post-layernorm")
    claim = "D1: RMSNorm is worse than LayerNorm, Transformer, post-norm"
    found.append(Hypothesis(*rows, "lower", claim, "", planned=6, family="D1"))
    rows = ("multi30k_rnn-rmsnorm", "multi30k_rnn-layernorm")
    claim = "Secondary: RMSNorm's validation loss is equal to LayerNorm's, RNN"
    return [*found, Hypothesis(*rows, "equal", claim, "", _LOSS_MARGIN, 8, "loss", measure="valid_loss")]


def results_of(folder: Path, temporary: Path) -> list[Result]:
    """Returns the results that the archive in a folder has.

    Raises:
        UserError: A log has other options than the plan.
    """
    found = []
    for name in CORPORA:
        corpus, place = read_corpus(name), Place(name, temporary)
        unpack(folder, place.logs)
        rows = corpus.adapt(read_rows())
        found += read_results(seed_runs(dict.fromkeys(rows), corpus.seeds), corpus, place)
    return found


def report(folder: Path, temporary: Path) -> Path:
    """Writes the report on the logs in the archive of a folder to a temporary folder, and returns its own."""
    made, results = temporary / "report", results_of(folder, temporary)
    judged = judge(questions(results, _hypotheses()))
    about = [
        "Stand-in data, small models, short trainings: Multi30k, 29,000 descriptions of images, in place of WMT14; "
        "states of 128; 1,800 updates, and 6,000 of the pre-norm Transformer.",
        f"{len(results)} of 49 trainings are done.",
    ]
    sections = [differences_section(judged, _TEXT, "RMSNorm and LayerNorm"), _values(results)]
    write_report(made, "RMSNorm and LayerNorm in translation, as planned", about, {"about": about}, sections)
    return made


def _values(results: Sequence[Result]) -> Section:
    """Returns the section of the values of the kinds that have all their seeds."""
    tests = list(read_corpus(next(iter(CORPORA))).tests)
    cells = [
        [
            row.label,
            str(len(done)),
            spread([each.bleu for each in done], 2),
            *(spread([each.test(test) for each in done]) for test in tests),
            spread([each.chrf for each in done]),
            spread([each.valid_loss for each in done], 3),
        ]
        for row, done in by_row(results).items()
        if len(done) == row.seeds
    ]
    return Section(
        name="values",
        title="The values of each kind",
        text=["Means over the seeds of the kinds whose trainings are all done, with their standard deviation (sd)."],
        columns=["", "seeds", "BLEU, weighted", *tests, "chrF, weighted", "validation loss"],
        rows=cells,
        data=[
            {
                "row": each.row.name,
                "seed": each.seed,
                "bleu": each.bleu,
                "chrf": each.chrf,
                "valid_loss": each.valid_loss,
                "seconds": each.log["validations"][-1]["seconds"],
            }
            for each in results
            if each.row.label in [cell[0] for cell in cells]
        ],
    )
