"""Jobs of many clients who take turns, so that a client with many jobs delays others by one turn at most."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Generic, TypeVar

_Waiting = TypeVar("_Waiting")


class RoundRobin(Generic[_Waiting]):
    """The first job belongs to the client whose turn it is. A turn ends after ``quantum`` tokens."""

    def __init__(self, quantum: int) -> None:
        self._quantum = quantum
        self._jobs: collections.OrderedDict[str, collections.deque[_Waiting]] = collections.OrderedDict()
        self._used = 0

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __iter__(self) -> Iterator[_Waiting]:
        for jobs in self._jobs.values():
            yield from jobs

    @property
    def clients(self) -> list[str]:
        """The clients that have jobs, in the order of their turns."""
        return list(self._jobs)

    def put(self, client: str, job: _Waiting) -> None:
        """Behind the client's other jobs; a new client has the last turn."""
        self._jobs.setdefault(client, collections.deque()).append(job)

    def first(self, client: str | None = None) -> _Waiting:
        """The next job of the given client, or of the client whose turn it is."""
        return self._jobs[next(iter(self._jobs)) if client is None else client][0]

    def use(self, tokens: int) -> None:
        """Count work that was taken from the first job."""
        self._used += tokens
        if self._used >= self._quantum:
            self._used = 0
            self._jobs.move_to_end(next(iter(self._jobs)))

    def remove(self, client: str, job: _Waiting) -> bool:
        """Take a job out, wherever it is; False if it is not there."""
        jobs = self._jobs.get(client, collections.deque())
        if job not in jobs:
            return False
        jobs.remove(job)
        if not jobs:
            if next(iter(self._jobs)) == client:
                self._used = 0
            del self._jobs[client]
        return True
