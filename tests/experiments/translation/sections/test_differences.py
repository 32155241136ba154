from experiments.translation.sections.differences import differences


def test_options_that_differ_are_named(results):
    one, other = results[:2]
    one.log["options"].update(seed=1, layer_normalization_type="none", state_size=64, maxlen=40)
    other.log["options"].update(seed=2, layer_normalization_type="rmsnorm", dtype="float32")
    assert differences(one, other).split(" and ") == [
        "`dtype` the default instead of float32",
        "`maxlen` 40 instead of the default",
        "`state_size` 64 instead of 32",
    ]
    assert not differences(one, one)


def test_step_sizes_that_a_grid_chose_are_no_difference(results):
    one, other = results[:2]
    one.log.update(step_size_chosen=True, options={"learning_rate": 0.1})
    other.log.update(step_size_chosen=True, options={"learning_rate": 0.2})
    assert not differences(one, other)
    other.log["step_size_chosen"] = False
    assert differences(one, other) == "`learning_rate` 0.1 instead of 0.2"
