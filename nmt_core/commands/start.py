"""The beginning and end of a program: its standard streams, and Ctrl-C.

Ctrl-C is one line also while modules are loaded, and silent after the end.
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from types import FrameType


def start(name: str, module: str) -> int:
    """Load ``module`` and run its ``main``; the exit code."""
    interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        open_standard_streams()
        code: int = importlib.import_module(module).main()
        return code
    except BaseException as error:  # NumPy makes an ImportError of an interrupt while it is loaded
        if not (interrupted or isinstance(error, KeyboardInterrupt)):
            raise
        from nmt_core.base.messages import say

        say(f"{name}: interrupted")
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own way would be a traceback from whatever is ending


def open_standard_streams() -> None:
    """Put ``/dev/null`` in the places of closed standard streams (``2>&-``), and a buffer in front of the output.

    The next file that is opened would get the number of the closed stream, and what a library, or a program that we
    start, says on standard error would stand in that file. ``sys.stdin`` and ``sys.stdout`` stay None, if they are.

    Without a buffer (``PYTHONUNBUFFERED``) Python gives every text to the system once, and drops what a disk that has
    become full did not take of it. With one it writes all, or raises OSError. Clients that wait for lines are served
    by flushing.
    """
    opened = os.open(os.devnull, os.O_RDWR)
    while opened <= 2:
        os.set_inheritable(opened, True)
        opened = os.open(os.devnull, os.O_RDWR)
    os.close(opened)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (as long as the program)
    stream = sys.stdout
    if isinstance(getattr(stream, "buffer", None), io.RawIOBase):
        sys.stdout = open(  # noqa: SIM115 (as long as the program)
            stream.fileno(), "w", encoding=stream.encoding, errors=stream.errors, closefd=False
        )
