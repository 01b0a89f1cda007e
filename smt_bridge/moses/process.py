"""A Moses that runs beside us and answers line by line with n-best lists.

What can go wrong has its answer here: a process that ends or says nothing for too long is started again and the
sentences without an answer are sent once more, one at a time; the one that was being translated twice when that
happened is given up. A process that ends while it loads is an error with its last words; so are three in a row that
answered nothing, where the next one has none for a single word either: sentences that are too much for Moses do not
make it unusable. One whose lists have other ids than the sentences it was given is an error, too, since nobody could
say whose they are.
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
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import IO, Any, NamedTuple

from nmt_core.base.errors import ConfigError, NmtError
from smt_bridge.moses.graph_pipe import GraphCutter

_GIVEN_HERE = {
    ("-f", "-config"): "give --moses-ini",
    ("-threads", "-th"): "give --moses-threads",
    ("-n-best-list", "-n-best-factor"): "the options of this command say how long the lists are",
    (
        "-i",
        "-input-file",
        "-start-translation-id",
    ): "sentences go to Moses' standard input, and lists are counted from 0",
    ("-output-unknowns", "-v", "-verbose"): "this program reads them",
    ("-labeled-n-best-list",): "features of lists need their names",
}  # Moses takes the first of two, and reads another text with -i
_GRAPHS = ("-output-search-graph", "-osg", "-output-search-graph-extended", "-osgx")


def check_further_options(words: Sequence[str], *, graphs: bool) -> None:
    """Raise ConfigError for options among these words of Moses' command line that it gets from here.

    ``graphs``: search graphs are read.
    """
    given_here = _GIVEN_HERE | ({_GRAPHS: "this program reads search graphs"} if graphs else {})
    for names, remedy in given_here.items():
        given = next((word for word in words if word in names), None)
        if given is not None:
            raise ConfigError(f"leave out {given}: {remedy}")


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


_CHUNK = 1 << 16
_MOST_ERROR_BYTES = 1 << 14  # bytes of standard error that are kept
_ID = re.compile(rb"[ \t]*(-?[0-9]{1,15})[ \t]*")


ReadGraph = Callable[[bytes | None], Any]
"""What makes of the bytes of a sentence's graph, as ``GraphCutter.take`` gives them, what its list has as ``graph``."""


class MosesFailed(NmtError):
    """Moses cannot be started, or ends again and again before it has translated anything."""


class MosesLines(list[bytes]):
    """The lines of a sentence's list without their ids, and its search graph where somebody reads graphs."""

    graph: Any = None


class MosesChild:
    """One process: its pipes, and how far it has come. ``read_graph`` reads graphs (None: Moses writes none).

    ``moses`` reads sentences from its standard input. In their order it writes an n-best list each to one pipe and then
    a line of unknown words to another (``TranslationTask::Run`` in its source: that line comes last). So when the i-th
    of these lines is there, the i-th list is complete, and so is the i-th search graph, which a third pipe brings.
    """

    def __init__(self, options: MosesOptions, read_graph: ReadGraph | None = None) -> None:
        self._timeout = options.timeout
        self.answered = 0
        self._written = 0
        self._closed = False
        self._lists, self._marks, self._errors = bytearray(), bytearray(), bytearray()
        self._read_graph, self._cutter = read_graph, GraphCutter()
        self._pipes: list[int] = []
        self._process = self._start(options, pipes=2 if read_graph is None else 3)
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
        self._marks[:] = self._marks.split(b"\n", count)[count]
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
        if self._read_graph is not None:
            for sentence, lines in lists.items():
                lines.graph = self._read_graph(self._cutter.take(sentence))
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


_IN_FLIGHT = 4  # sentences per thread that Moses may hold: it reads ahead without limit
_WAITS = (1.0, 2.0, 4.0)  # seconds before starting again
WORD = b"a"
"""What a Moses translates to show that it works."""


class MosesProcess:
    """A running Moses; use as a context manager. ``restarts`` and ``given_up`` count what went wrong.

    ``read_graph`` reads its search graphs; without it Moses writes none.
    """

    def __init__(self, options: MosesOptions, read_graph: ReadGraph | None = None) -> None:
        self.options, self._read_graph = options, read_graph
        self.restarts = 0
        self.given_up = 0
        self._child: MosesChild | None = None
        self._failures = 0  # in a row, without any answer
        self._stopped = threading.Event()

    def __enter__(self) -> MosesProcess:
        self._child = MosesChild(self.options, self._read_graph)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._child is not None:
            self._child.close(kill=kind is not None)

    def stop(self) -> None:
        """End it at once, from any thread; what another one waits for raises MosesFailed."""
        self._stopped.set()
        if self._child is not None:
            self._child.signal()

    def translate(self, sentences: Sequence[bytes]) -> list[MosesLines | None]:
        """The lines of each sentence's n-best list, best first, without their ids; None where Moses failed twice.

        Sentences are tokenised lines without line ends; one without words has an empty list. Raises MosesFailed.
        """
        answers: list[MosesLines | None] = [MosesLines() for _ in sentences]
        waiting = deque(index for index, line in enumerate(sentences) if has_words(line))
        suspects: dict[int, int] = {}
        alone = False
        while waiting:
            batch = [waiting[0]] if alone else list(waiting)
            done = self._run([sentences[index] for index in batch])
            for index, answer in zip(batch, done, strict=False):
                answers[index] = answer
                waiting.popleft()
            if len(done) == len(batch):
                alone = alone and bool(waiting) and waiting[0] in suspects
                continue
            suspects |= {index: suspects.get(index, 0) for index in list(waiting)[: self._most_ahead]}
            if alone:
                suspects[batch[0]] += 1
            self._start_again(progress=bool(done))
            if suspects[waiting[0]] > 0:
                answers[waiting.popleft()] = None
                self.given_up += 1
            alone = True
        return answers

    @property
    def _most_ahead(self) -> int:
        return _IN_FLIGHT * self.options.threads

    def _run(self, sentences: Sequence[bytes]) -> list[MosesLines]:
        """The lists of as many sentences as are answered before the process fails."""
        assert self._child is not None
        return self._child.run(sentences, self._most_ahead)

    def _start_again(self, *, progress: bool) -> None:
        assert self._child is not None
        if self._stopped.is_set():
            raise MosesFailed(f"{self.options.program} was stopped")
        self._failures = 0 if progress or self._child.answered else self._failures + 1
        self._end_child()
        self._stopped.wait(_WAITS[min(self._failures, len(_WAITS) - 1)])
        self.restarts += 1
        self._child = MosesChild(self.options, self._read_graph)
        if self._stopped.is_set():
            self._child.signal()
        if self._failures >= len(_WAITS):
            if not self._run([WORD]):
                self._end_child("before it translated anything")
            self._failures = 0

    def _end_child(self, failed: str = "") -> None:
        """End the process. Raises MosesFailed where it had not loaded, or ``failed`` says when it ended."""
        assert self._child is not None
        when = failed if self._child.has_read() else "while it loaded"
        last_words = self._child.close(kill=True) or "it said nothing"
        if when:
            raise MosesFailed(f"{self.options.program} ended {when}: {last_words}")
