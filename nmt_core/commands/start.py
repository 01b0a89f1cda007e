"""The beginning and end of a program: its standard streams, and the signals that end it.

Ctrl-C is one line also while modules are loaded, and silent after the end. SIGTERM and SIGHUP end a program as errors
do: what it has opened is closed, so that no process, semaphore or half-written file stays behind.
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGHUP)


def start(name: str, module: str) -> int:
    """Load ``module`` and run its ``main``; the exit code, 128 + N after signal N."""
    ended_by = 0

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal ended_by
        ended_by = number
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    ending = [signal.SIGINT, *(one for one in _ENDING if signal.getsignal(one) is signal.SIG_DFL)]
    for number in ending:
        signal.signal(number, end)
    try:
        occupy_closed_streams()
        _buffer_output()
        code: int = importlib.import_module(module).main()
        return code
    except BaseException as error:  # NumPy makes an ImportError of a signal while it is loaded
        if not (ended_by or isinstance(error, KeyboardInterrupt)):
            raise
        if ended_by in _ENDING:
            return 128 + ended_by
        from nmt_core.base.messages import say

        say(f"{name}: interrupted")
        return 130
    finally:
        for number in ending:
            signal.signal(number, signal.SIG_DFL)  # Python's own way would be a traceback from whatever is ending


def occupy_closed_streams() -> None:
    """Put ``/dev/null`` in the places of standard streams that were closed before the program began (``2>&-``).

    The next file that is opened would get the number of the closed stream, and what a library, or a program that we
    start, says on standard error would stand in that file. ``sys.stdin`` and ``sys.stdout`` stay None, if they are.
    """
    opened = os.open(os.devnull, os.O_RDWR)
    while opened <= 2:
        os.set_inheritable(opened, True)
        opened = os.open(os.devnull, os.O_RDWR)
    os.close(opened)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (as long as the program)


def _buffer_output() -> None:
    """Have ``sys.stdout`` write all that it is given, or raise OSError, also with ``PYTHONUNBUFFERED``.

    Without a buffer Python gives every text to the system once, and drops what a disk that has become full did not take
    of it. Who waits for lines is served by flushing.
    """
    stream = sys.stdout
    if isinstance(getattr(stream, "buffer", None), io.RawIOBase):
        sys.stdout = open(  # noqa: SIM115 (as long as the program)
            stream.fileno(), "w", encoding=stream.encoding, errors=stream.errors, closefd=False
        )
