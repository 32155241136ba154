"""Ports for processes that the tests start."""

import contextlib

from nmt.commands.launcher import reserved_ports


def free_ports(count):
    """Returns ports that no program uses now."""
    with contextlib.ExitStack() as held:
        return [held.enter_context(each).getsockname()[1] for each in reserved_ports(count)]
