import pytest

from experiments.translation.condition import Run
from experiments.translation.corpus import prepare
from experiments.translation.results import read_results
from experiments.translation.runs import make_all
from nmt.errors import UserError
from tests.experiments.translation.conftest import CONDITIONS, make_result

RUN = Run(CONDITIONS["rmsnorm"], 1)


def test_only_finished_runs_have_results(corpus, store, ran):
    prepare(corpus, store)
    make_all([RUN], corpus, store)
    (result,) = read_results([Run(CONDITIONS["half"], 1), RUN], corpus, store)
    assert (result.condition, result.seed, result.dev) == (RUN.condition, 1, 1.5)
    assert result.test("news") == pytest.approx(100)
    corpus.options["state_size"] = 16
    with pytest.raises(UserError, match="state_size was 8 and is now 16"):
        read_results([RUN], corpus, store)


def test_bleu_over_the_test_sets_is_weighted_by_their_sentences():
    result = make_result(CONDITIONS["none"], bleu=[20.0])  # 19 on news and 18 on web
    assert result.bleu == 18.5
    assert result._replace(sentences={"news": 3, "web": 1}).bleu == 18.75


def test_the_tested_checkpoint_is_that_of_the_metric_of_the_training():
    result = make_result(CONDITIONS["none"], bleu=[20.0, 30.0])
    for each, loss in zip(result.log["validations"], (1.0, 2.0), strict=True):
        each["valid_loss"] = loss
    assert result.best["bleu"] == 30
    result.log["options"]["valid_metric"] = "loss"
    assert result.best["bleu"] == 20
