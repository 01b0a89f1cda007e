"""A Moses that runs beside us and answers line by line with n-best lists.

What can go wrong has its answer here: a process that ends or says nothing for too long is started again and the
sentences without an answer are sent once more, one at a time; the one that was being translated twice when that
happened is given up. A process that ends while it loads is an error with its last words; so are three in a row that
answered nothing, where the next one has none for a single word either: sentences that are too much for Moses do not
make it unusable. One whose lists have other ids than the sentences it was given is an error, too, since nobody could
say whose they are.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from smt_bridge.decoder.moses_child import MosesChild, MosesFailed, MosesLines, MosesOptions, has_words
from smt_bridge.graphs.lists import GraphReader

_IN_FLIGHT = 4  # sentences per thread that Moses may hold: it reads ahead without limit
_WAITS = (1.0, 2.0, 4.0)  # seconds before starting again
WORD = b"a"
"""What a Moses translates to show that it works."""


class MosesProcess:
    """A running Moses; use as a context manager. ``restarts`` and ``given_up`` count what went wrong.

    ``reader`` reads its search graphs; without one Moses writes none.
    """

    def __init__(self, options: MosesOptions, reader: GraphReader | None = None) -> None:
        self.options, self._reader = options, reader
        self.restarts = 0
        self.given_up = 0
        self._child: MosesChild | None = None
        self._failures = 0  # in a row, without any answer
        self._stopped = threading.Event()

    def __enter__(self) -> MosesProcess:
        self._child = MosesChild(self.options, self._reader)
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
        self._child = MosesChild(self.options, self._reader)
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
