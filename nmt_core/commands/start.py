"""The beginning and end of a program: Ctrl-C is one line also while modules are loaded, and silent after the end."""

from __future__ import annotations

import importlib
import signal
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
