from experiments.mnist.task import EXPERIMENT
from experiments.runs.learning import claims_section
from experiments.runs.run import Condition, Run, Setting

LABELS = {"none": "without a norm", "layernorm": "LayerNorm", "rmsnorm": "RMSNorm"}
LOG = {
    "train": [{"update": 10, "loss": 1.0}, {"update": 20, "loss": 0.5}],
    "validations": [{"update": 20, "nll": 0.5, "error": 10.0, "test_error": 3.0}],
    "options": {"step_size": 0.001},
}


def claims(size):
    name = f"batch-{size}"
    setting = Setting(name, name, batch_size=size, updates=20, window=10, validate_every=10)
    conditions = [Condition(each, label, None, paper=True) for each, label in LABELS.items()]
    logs = {Run(condition, setting, 1, 0.001): LOG for condition in conditions}
    return claims_section(logs, EXPERIMENT.learning.comparisons)


def test_batches_of_4_are_judged_and_those_of_128_are_not():
    assert claims(4) is not None
    assert claims(128) is None
