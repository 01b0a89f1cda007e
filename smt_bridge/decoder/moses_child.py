"""One process of ``moses``: how it is started, its pipes, and how far it has come.

``moses`` reads sentences from its standard input and writes, in their order, one n-best list each to one pipe and
then one line of unknown words to another (``TranslationTask::Run`` in its source: the line of unknown words comes
last). So when the i-th of these lines is there, the i-th list is complete, without waiting for the next sentence; so is
the i-th search graph, which a third pipe brings where somebody reads graphs.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import selectors
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from typing import IO, NamedTuple

from nmt_core.base.errors import NmtError
from smt_bridge.decoder.graph_pipe import GraphCutter
from smt_bridge.graphs.lists import FoundGraph, GraphReader

_CHUNK = 1 << 16
_MOST_ERROR_BYTES = 1 << 14  # bytes of standard error that are kept
_ID = re.compile(rb"[ \t]*(-?[0-9]{1,15})[ \t]*")


class MosesOptions(NamedTuple):
    """How Moses is started.

    ``factor`` is its ``-n-best-factor``: how many derivations it looks through for each distinct hypothesis.
    ``timeout`` is in seconds, for one sentence; loading has no limit.
    """

    program: str = "moses"
    ini: str = "moses.ini"
    nbest: int = 100
    threads: int = 1
    factor: int = 100
    timeout: float = 60.0
    more: tuple[str, ...] = ()

    def command(self, lists: int, unknowns: int, graphs: int | None = None) -> list[str]:
        """The command line, given file descriptors."""
        graph = [] if graphs is None else ["-output-search-graph-extended", f"/dev/fd/{graphs}"]
        return [
            *(self.program, "-f", self.ini, "-v", "0", "-threads", str(self.threads)),
            *("-n-best-list", f"/dev/fd/{lists}", str(self.nbest), "distinct", "-n-best-factor", str(self.factor)),
            *("-labeled-n-best-list", "true"),  # whatever the ini says
            *("-output-unknowns", f"/dev/fd/{unknowns}", *graph, *self.more),
        ]


def has_words(line: bytes) -> bool:
    """Whether Moses finds a word in a line; a no-break space is one."""
    return bool(line.strip(b" \t\r"))


class MosesFailed(NmtError):
    """Moses cannot be started, or ends again and again before it has translated anything."""


class MosesLines(list[bytes]):
    """The lines of a sentence's list without their ids, and its search graph where somebody reads graphs."""

    graph: FoundGraph | None = None


class MosesChild:
    """One process: its pipes, and how far it has come. ``reader`` reads graphs (None: Moses writes none)."""

    def __init__(self, options: MosesOptions, reader: GraphReader | None = None) -> None:
        self._timeout = options.timeout
        self.answered = 0
        self._written = 0
        self._closed = False
        self._lists, self._marks, self._errors = bytearray(), bytearray(), bytearray()
        self._reader, self._cutter = reader, GraphCutter()
        self._pipes: list[int] = []
        self._process = self._start(options, pipes=2 if reader is None else 3)
        self._list_pipe, self._mark_pipe, *self._graph_pipes = self._pipes
        self._takers: dict[int, Callable[[bytes], None]] = {
            self._list_pipe: self._lists.extend,
            self._mark_pipe: self._marks.extend,
            self._stderr.fileno(): self._add_error,
        }
        self._takers |= dict.fromkeys(self._graph_pipes, self._cutter.add)
        self._selector = selectors.PollSelector()  # needs no file descriptor
        for pipe in self._takers:
            os.set_blocking(pipe, False)
            self._selector.register(pipe, selectors.EVENT_READ)
        os.set_blocking(self._stdin.fileno(), False)

    def _start(self, options: MosesOptions, *, pipes: int) -> subprocess.Popen[bytes]:
        """Start the program with the other ends of so many pipes. Raises MosesFailed."""
        ends: list[int] = []
        try:
            for _ in range(pipes):
                pipe, end = os.pipe()
                self._pipes.append(pipe)
                ends.append(end)
            return subprocess.Popen(
                options.command(*ends),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=ends,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
            self._close_pipes()
            problem = getattr(error, "strerror", error)
            raise MosesFailed(f"{options.program} cannot be started ({problem})") from error
        finally:
            for end in ends:
                os.close(end)

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _stderr(self) -> IO[bytes]:
        assert self._process.stderr is not None
        return self._process.stderr

    def _add_error(self, part: bytes) -> None:
        self._errors += part
        del self._errors[:-_MOST_ERROR_BYTES]

    def run(self, sentences: Sequence[bytes], most_ahead: int) -> list[MosesLines]:
        """Send them, at most ``most_ahead`` before their answers; the lists that came before the process failed."""
        found: list[MosesLines] = []
        outgoing, sent = bytearray(), 0
        deadline = time.monotonic() + self._timeout
        while len(found) < len(sentences):
            while sent < len(sentences) and sent - len(found) < most_ahead:
                outgoing += sentences[sent] + b"\n"
                sent += 1
            alive = self._exchange(outgoing, deadline)
            before = len(found)
            found.extend(self._complete(before, sent))
            if not alive:
                break
            if len(found) > before or not self.has_read():
                deadline = time.monotonic() + self._timeout
            elif time.monotonic() > deadline:
                break
        return found

    def _exchange(self, outgoing: bytearray, deadline: float) -> bool:
        """Wait until something can be read or written; False where the process is at its end."""
        stdin = self._stdin.fileno()
        if outgoing and stdin not in self._selector.get_map():
            self._selector.register(stdin, selectors.EVENT_WRITE)
        events = self._selector.select(max(0.0, min(1.0, deadline - time.monotonic())))
        for key, _ in events:
            if key.fd == stdin:
                if not self._write(outgoing):
                    return False
            elif not self._drain(key.fd) and key.fd in (self._mark_pipe, self._list_pipe):
                self._drain_all()
                return False
        if not outgoing and stdin in self._selector.get_map():
            self._selector.unregister(stdin)
        return bool(events) or self._process.poll() is None  # what it started may hold the pipes when it has ended

    def _write(self, outgoing: bytearray) -> bool:
        try:
            written = os.write(self._stdin.fileno(), outgoing[:_CHUNK])
        except BlockingIOError:
            return True
        except OSError:
            self._drain_all()
            return False
        del outgoing[:written]
        self._written += written
        return True

    def _drain(self, pipe: int) -> bool:
        """Read what is there; False at the end of the pipe."""
        while True:
            try:
                part = os.read(pipe, _CHUNK)
            except BlockingIOError:
                return True
            if not part:
                with contextlib.suppress(KeyError):
                    self._selector.unregister(pipe)
                return False
            self._takers[pipe](part)

    def _drain_all(self) -> None:
        for pipe in self._takers:
            with contextlib.suppress(OSError):
                self._drain(pipe)

    def _complete(self, found: int, sent: int) -> list[MosesLines]:
        """The lists of all sentences whose marks are there; ``found`` of ``sent`` are answered. Raises MosesFailed."""
        count = min(sent - found, self._marks.count(b"\n"))
        if not count:
            return []
        del self._marks[: _end_of_line(self._marks, count)]
        for pipe in (self._list_pipe, *self._graph_pipes):
            self._drain(pipe)
        lists = {self.answered + place: MosesLines() for place in range(count)}
        taken = 0
        while (end := self._lists.find(b"\n", taken)) >= 0:
            identifier, separator, rest = bytes(self._lists[taken:end]).partition(b" ||| ")
            known = _ID.fullmatch(identifier) if separator else None
            if known is not None:
                sentence = int(known[1])
                if not self.answered <= sentence < self.answered + sent - found:
                    raise MosesFailed(_foreign(sentence, self.answered))
                if sentence not in lists:
                    break
                lists[sentence].append(rest)
            taken = end + 1
        del self._lists[:taken]
        if self._reader is not None:
            for sentence, lines in lists.items():
                lines.graph = self._reader.read(self._cutter.take(sentence))
        self.answered += count
        return list(lists.values())

    def has_read(self) -> bool:
        """Whether it has read any of its input, which Moses does when all its files are loaded."""
        unread = struct.unpack("i", fcntl.ioctl(self._stdin.fileno(), termios.FIONREAD, b"\0" * 4))[0]
        return int(unread) < self._written

    def close(self, *, kill: bool = False) -> str:
        """End the process and everything it started; its last line on standard error. A second call does nothing."""
        if self._closed:
            return ""
        self._closed = True
        with contextlib.suppress(OSError):
            self._stdin.close()
        if kill:
            self.signal()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=self._timeout)
        self.signal()
        self._process.wait()
        self._drain_all()
        self._selector.close()
        self._stderr.close()
        self._close_pipes()
        lines = bytes(self._errors).decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip() if lines else ""

    def _close_pipes(self) -> None:
        for pipe in self._pipes:
            os.close(pipe)

    def signal(self) -> None:
        """Kill it and everything it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _foreign(sentence: int, expected: int) -> str:
    return (
        f"Moses wrote a list with the id {sentence} where sentence {expected} is next; ids must count from 0:"
        " does moses.ini have [start-translation-id], or is this another program?"
    )


def _end_of_line(text: bytearray, count: int) -> int:
    """Where the ``count``-th line ends."""
    end = 0
    for _ in range(count):
        end = text.index(b"\n", end) + 1
    return end
