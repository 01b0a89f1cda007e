"""A program that ends with the one that has started it, however that ends: ``python tied.py PID PROGRAM ARGUMENT...``.

Run as a script, in a process that then becomes the program: a function that Python calls between fork and exec might
wait for a lock that another thread holds.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1  # of Linux's prctl
_NOT_STARTED = 127  # as shells say it


def tied(command: Sequence[str]) -> list[str]:
    """The command to start in place of ``command``, by a thread that lives as long as it is to run."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main() -> int:
    """Become the program; the exit code where that is not possible."""
    starter, command = int(sys.argv[1]), sys.argv[2:]
    with contextlib.suppress(AttributeError, OSError):  # other systems have no such call
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != starter:  # it ended before the call
        return _NOT_STARTED
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and a program that it becomes would, too
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode(errors="surrogateescape"))
        return _NOT_STARTED


if __name__ == "__main__":
    sys.exit(main())
