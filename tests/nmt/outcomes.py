"""What a command leaves behind: a message, or the weights of a model; and what a model makes."""

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


def best(translator, lines):
    """Returns the best translation of each line."""
    return [line.texts[0] for line in translator.lines(lines)]
