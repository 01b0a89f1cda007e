"""What must hold for every input: a value, or one of our errors in one printable line, in bounded time and memory."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import tempfile
import traceback
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterator
from types import FrameType
from typing import NamedTuple

from nmt_core.base.errors import NmtError
from nmt_core.base.messages import one_line
from tests.fuzz.targets import Target

SECONDS = 2.0  # of processor time, for one input of at most 16 KiB
MEMORY = 3 << 30  # of addresses, beyond what the process has when it begins
LONGEST_MESSAGE = 2000

_HIDDEN = ("Cc", "Cs", "Zl", "Zp")  # controls, halves of characters, separators of lines: of no use on a terminal


class Broken(Exception):
    """The property does not hold; the text says why, findings of one ``kind`` have one cause."""

    def __init__(self, problem: str, *, kind: str) -> None:
        super().__init__(problem)
        self.kind = kind


class Finding(NamedTuple):
    """An input that broke the property."""

    target: str
    number: int
    problem: str
    content: bytes


def check(target: Target, content: bytes) -> str:
    """Give one input to a reader: "value" or "refused". Raises Broken."""
    try:
        with _alarm():
            target.read(content)
    except NmtError as error:
        _check_message(target, one_line(str(error)))
        return "refused"
    except (_TooSlow, MemoryError) as error:
        raise Broken(f"{type(error).__name__}: {_where(error)}", kind=_where(error)) from error
    except Exception as error:
        kind = f"{type(error).__name__} {_where(error)}"
        raise Broken(f"{kind}: {str(error)[:200]!r}", kind=kind) from error
    return "value"


def _check_message(target: Target, message: str) -> None:
    hidden = sorted({f"U+{ord(one):04X}" for one in message if unicodedata.category(one) in _HIDDEN})
    if hidden:
        raise Broken(f"the message has {', '.join(hidden)}: {message[:200]!r}", kind="hidden")
    if not message or len(message) > LONGEST_MESSAGE:
        raise Broken(f"the message has {len(message)} characters: {message[:200]!r}", kind="long")
    if target.names_file and not any(name in message for name in target.names_file):
        raise Broken(f"the message does not name the file: {message[:200]!r}", kind="unnamed")


def _where(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/tests/fuzz/" not in frame.filename]
    ours = [frame for frame in frames if "/nmt_core/" in frame.filename or "/smt_bridge/" in frame.filename]
    return " < ".join(f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in reversed((ours or frames)[-3:]))


class _TooSlow(BaseException):
    pass


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def ring(_: int, __: FrameType | None) -> None:
        raise _TooSlow(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def limit_memory() -> None:
    """Let this process have ``MEMORY`` more addresses than it has now."""
    with open("/proc/self/statm", encoding="ascii") as stream:
        pages = int(stream.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)


@contextlib.contextmanager
def scratch() -> Iterator[str]:
    """A folder in memory where there is one; what readers print goes nowhere."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=shared) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield folder


class Tally:
    """Outcomes of a target, and the first finding of every kind."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.findings: dict[str, Finding] = {}

    def add(self, target: Target, number: int, content: bytes) -> None:
        """Check one input and count what came of it."""
        try:
            self.outcomes[check(target, content)] += 1
        except Broken as broken:
            self.outcomes["broken"] += 1
            self.findings.setdefault(broken.kind, Finding(target.name, number, str(broken), content))
