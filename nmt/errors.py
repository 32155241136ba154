"""Defines errors that users can fix.

Every command prints the message without a traceback and exits with status 2.
"""

import re
import signal

_OF_THE_GRAPH = re.compile(r"\{\{.*?\}\}|\[Op:.*?\]( name: )?")
# Beginnings of lines about the program.
_AROUND = (" ", "\t", "Graph execution error", "[[", "Detected at node", "<stack traces")


class UserError(Exception):
    """An error that the user can fix.

    The message says what is wrong, what is allowed, and what to do.
    """


def describe_end(status: int) -> str:
    """Returns how a process ended, given its exit status, which is negative for a signal."""
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with status {status}"


def sentence_of(message: str) -> str:
    """Strips a message of TensorFlow of names of operations and of lines about the program."""
    told = [line for line in message.splitlines() if line.strip() and not line.startswith(_AROUND)]
    return " ".join(_OF_THE_GRAPH.sub("", told[0] if told else message).split())
