"""Programs that end with the one that has started them."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from nmt_core.base.tied import tied


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_tied_program_has_the_signals_of_any_other() -> None:
    """Python ignores two of them: a program that writes for nobody, or beyond ``ulimit -f``, would not end."""
    command = ["grep", "SigIgn", "/proc/self/status"]
    usual, found = (subprocess.run(one, capture_output=True, check=True).stdout for one in (command, tied(command)))
    assert found == usual


def test_it_ends_as_any_other() -> None:
    assert subprocess.run(tied(["sh", "-c", "exit 3"]), check=False).returncode == 3
    assert subprocess.run(tied(["sh", "-c", "kill -9 $$"]), check=False).returncode == -signal.SIGKILL


def test_one_that_cannot_be_started_is_named() -> None:
    done = subprocess.run(tied(["no-such-program"]), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (127, b"no-such-program: No such file or directory\n")
