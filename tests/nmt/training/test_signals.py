"""A signal waits until the process may stop, and a function is left behind then."""

import os
import signal
import threading
from pathlib import Path

import pytest

from nmt.training.interruption import deferred_signals, interruptible, restored_handlers


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_later_ctrl_c_takes_effect_at_once(first):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt), deferred_signals():
        os.kill(os.getpid(), first)
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_later_sigterm_waits_too(first):
    def end(*_):
        pytest.fail("it took effect at once")

    with restored_handlers(signal.SIGTERM):
        signal.signal(signal.SIGTERM, end)
        with deferred_signals() as received:
            for number in (first, signal.SIGTERM, signal.SIGTERM):
                os.kill(os.getpid(), number)
        assert signal.getsignal(signal.SIGTERM) is end
    assert received == [first, signal.SIGTERM, signal.SIGTERM]


def test_an_interruptible_function_returns_its_result_or_raises_its_error():
    assert interruptible(lambda: 3, []) == 3
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 / 0, [])


def test_a_function_is_left_behind_after_a_signal():
    ends = threading.Event()
    assert interruptible(ends.wait, [signal.SIGTERM]) is None  # would last for ever
    ends.set()


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with deferred_signals() as received:
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not received


LEAVES = """
import atexit, sys, threading, time
from nmt.storage.cache import open_cache
from nmt.training.interruption import exit_with, interruptible

print(open_cache().directory, flush=True)
atexit.register(print, "an ordinary end")
interruptible(lambda: time.sleep(float(sys.argv[1])), [2])
while float(sys.argv[1]) < 1 and threading.active_count() > 1:
    time.sleep(0.01)
exit_with(130)
"""


@pytest.mark.parametrize(("seconds", "said"), [(0.2, ["an ordinary end"]), (3600, [])])
def test_a_process_whose_thread_still_computes_ends_at_once_and_leaves_no_file(
    run_python, seconds, said
):
    done = run_python(
        LEAVES, seconds, NMT_TEXT_CACHE="off", PYTHONPATH=str(Path(__file__).parents[3])
    )
    directory, *others = done.stdout.splitlines()
    assert (done.returncode, others, os.path.exists(directory)) == (130, said, False)
