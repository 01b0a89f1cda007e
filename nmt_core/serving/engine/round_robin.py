"""Jobs of several clients: each client's own in the order in which they came, clients in turns."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Generic, TypeVar

Job = TypeVar("Job")


class RoundRobin(Generic[Job]):
    """The first job is that of the client whose turn it is. A turn ends when ``quantum`` tokens of it are used."""

    def __init__(self, quantum: int = 500) -> None:
        self._quantum = quantum
        self._jobs: collections.OrderedDict[str, collections.deque[Job]] = collections.OrderedDict()
        self._used = 0

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        for jobs in self._jobs.values():
            yield from jobs

    @property
    def clients(self) -> list[str]:
        """The clients that have jobs, in the order of their turns."""
        return list(self._jobs)

    @property
    def left(self) -> int:
        """Tokens that are left of the present turn."""
        return self._quantum - self._used

    def put(self, client: str, job: Job) -> None:
        """Behind the client's other jobs; a new client has the last turn."""
        self._jobs.setdefault(client, collections.deque()).append(job)

    def first(self, client: str | None = None) -> Job:
        """The next job: of that client, or of the one whose turn it is."""
        return self._jobs[next(iter(self._jobs)) if client is None else client][0]

    def use(self, tokens: int) -> None:
        """Count work that was taken from the first job."""
        self._used += tokens
        if self._used >= self._quantum:
            self._used = 0
            self._jobs.move_to_end(next(iter(self._jobs)))

    def remove(self, client: str, job: Job) -> bool:
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
