import pytest

from experiments.translation.condition import Condition
from experiments.translation.sections.quality import section
from nmt.config import Config
from tests.experiments.translation.conftest import make_result


@pytest.fixture
def conditions(results):
    return cells_of(section(results))


def cells_of(made):
    return {cells[0]: dict(zip(made.columns, cells, strict=True)) for cells in made.rows}


def test_the_table_has_only_its_own_rows(conditions):
    assert list(conditions) == ["Baseline", "LayerNorm", "RMSNorm", "pRMSNorm", "Mine"]


def test_bleu_is_that_of_the_best_validation_its_tests_and_the_last_validation(conditions):
    rmsnorm = conditions["RMSNorm"]
    heads = [
        "dev BLEU, tested checkpoint",
        "news BLEU, tested checkpoint",
        "dev BLEU, last checkpoint",
    ]
    assert [rmsnorm[head] for head in heads] == ["20.0", "19.0", "15.0"]
    assert (conditions["Baseline"]["seeds"], conditions["Baseline"][heads[0]]) == (
        "2",
        "22.0 (sd 2.8)",
    )  # of 20 and 24


def test_every_row_has_its_step_size_and_epsilon(results):
    results[0].log["options"].update(learning_rate=0.5, adam_epsilon=0.25)
    found = {
        name: cells["learning rate, Adam's epsilon"]
        for name, cells in cells_of(section(results)).items()
    }
    default = Config.__dataclass_fields__["adam_epsilon"].default
    assert (found["Baseline"], found["RMSNorm"]) == ("0.5, 0.25", f"default, {default}")


def test_the_beam_size_of_the_trainings_is_named(results):
    assert "beam size 5." in section(results).text[0]  # that of `nmt` by default
    results[0].log["options"]["beam_size"] = 1
    assert "beam size 1." in section(results).text[0]


@pytest.mark.parametrize(("bleu", "verdict"), [((0.5, 0.9), "shown"), ((0.5, 1.5), "the opposite")])
def test_a_transformer_without_a_norm_fails_below_one_bleu(bleu, verdict):
    condition = Condition("post-none", "no norm, post", kind="none", model_type="transformer")
    made = section([make_result(condition, seed, bleu=[best]) for seed, best in enumerate(bleu, 1)])
    assert (made.name, made.title) == ("table4", "Translation quality (Table 4)")
    assert made.claims[0].verdict.startswith(f"{verdict} for ")


def test_without_rows_of_table_2_there_is_no_section(results):
    assert section([each for each in results if each.condition.section != "main"]) is None


def test_rows_have_the_papers_bleu_but_added_rows_have_none(results):
    added = results[0]._replace(condition=Condition("added", "RMSNorm, added", kind="rmsnorm"))
    found = {
        name: cells["paper: BLEU 2014, 2017"]
        for name, cells in cells_of(section([*results, added])).items()
    }
    assert found["RMSNorm"] == "22.4, 23.7"
    assert found["Mine"] == found["RMSNorm, added"] == ""


def test_different_options_are_named(results):
    assert not any("options of" in text for text in section(results).text)
    options = results[0].log["options"]
    options.update(learning_rate=0.5, adam_epsilon="tiny")
    told = section(results).text[1]
    assert "Baseline has `adam_epsilon` tiny" in told
    assert "and `learning_rate` 0.5 instead" in told
