from dataclasses import replace

from experiments.mnist.task import EXPERIMENT
from experiments.runs.learning import claims_section, learning_section
from experiments.runs.run import Condition, Run, Setting

LEARNING = EXPERIMENT.learning
SETTING = Setting("batch-4", "batches of 4", batch_size=4, updates=20, window=10, validate_every=10)
LABELS = {"none": "without a norm", "layernorm": "LayerNorm", "rmsnorm": "RMSNorm"}


def log(loss):
    """Returns a log with two windows around a mean loss.

    The first of two validations is better.
    """
    validations = [
        {"update": 10, "nll": 0.5, "error": 10.0, "test_error": 3.0},
        {"update": 20, "nll": 0.75, "error": 10.0, "test_error": 4.0},
    ]
    train = [{"update": 10, "loss": loss + 0.1}, {"update": 20, "loss": loss - 0.1}]
    return {"train": train, "validations": validations, "options": {"step_size": 0.001}}


def made(**losses):
    conditions = {name: Condition(name, LABELS[name], None, paper=True) for name in losses}
    logs = {}
    for name, found in losses.items():
        for seed, loss in enumerate(found, 1):
            logs[Run(conditions[name], SETTING, seed, 0.001)] = log(loss)
    return learning_section(logs, LEARNING), claims_section(logs, LEARNING.comparisons)


def test_a_row_has_mean_and_last_loss_and_the_error_of_the_best_validation():
    section, _ = made(rmsnorm=[1.0, 2.0])
    (cells,) = section.rows
    assert cells == [
        "RMSNorm, batches of 4",
        "2",
        "0.001",
        "1.5000 (sd 0.7071)",
        "1.4000 (sd 0.7071)",
        "0.5000 (sd 0.0000)",
        "3.00 (sd 0.00) %",
        "4.00 (sd 0.00) %",
    ]


def test_claims_compare_the_mean_training_loss():
    _, section = made(rmsnorm=[1.0, 2.0], none=[2.0, 4.0], layernorm=[1.0, 2.0])
    claims = {claim.claim: claim for claim in section.claims}
    faster = claims["RMSNorm learns faster than the model without a norm"]
    assert faster.ours.startswith("-50.0 [-50.0, -50.0]% in mean train")
    assert faster.verdict == "provisional: shown"  # claims on BatchNorm wait
    assert claims["RMSNorm learns as fast as LayerNorm"].verdict.startswith("provisional: shown")


def test_batches_of_128_are_not_judged():
    large = replace(SETTING, name="batch-128")
    logs = {Run(Condition(name, name, None), large, 1, 0.001): log(1.0) for name in LABELS}
    assert claims_section(logs, LEARNING.comparisons) is None
