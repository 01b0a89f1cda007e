"""The beginning and end of a program: Ctrl-C is one line also while modules are loaded, and silent after the end."""

from __future__ import annotations

import importlib
import signal


def start(name: str, module: str) -> int:
    """Load ``module`` and run its ``main``; the exit code."""
    try:
        code: int = importlib.import_module(module).main()
        return code
    except KeyboardInterrupt:
        from nmt_core.messages import say

        say(f"{name}: interrupted")
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own way would be a traceback from whatever is ending
