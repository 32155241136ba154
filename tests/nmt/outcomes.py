"""What a command leaves behind: a message, or the weights of a model."""

import numpy as np


def refused(result):
    """Returns the message of a command, which must have refused what it was asked for."""
    status, output, said = result
    assert (status, output) == (2, ""), said
    assert "Traceback" not in said
    return said


def weights(path):
    """Returns the arrays of a checkpoint, by name."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files if name != "state"}
