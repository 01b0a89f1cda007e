"""What stands for Ray in tests: workers in this process, some of which are lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nmt_core.jobs.remote import Lost


class Actors:
    """Answers the newest question first; the first two workers are lost after some questions."""

    def __init__(self, open_worker: Callable[[int], Any], *, address: str | None, jobs: int, gpus: float) -> None:
        self._open_worker = open_worker
        self._questions: list[tuple[int, Any]] = []
        self._workers: dict[int, Any] = {}
        self._lost: set[int] = set()

    def start(self, number: int) -> int:
        self._workers[number] = self._open_worker(number)
        return number

    def describe(self, worker: int) -> int:
        return self.ask(worker, None)

    def ask(self, worker: int, item: Any) -> int:
        self._questions.append((worker, item))
        return len(self._questions) - 1

    def wait(self, questions: Sequence[int], seconds: float) -> Sequence[int]:
        opening = [question for question in questions if self._questions[question][1] is None]
        return opening[:1] or [max(questions)]

    def answer(self, question: int) -> Any:
        worker, item = self._questions[question]
        if item is None:
            return self._workers[worker].description
        if worker < 2 and len(self._questions) > 4:
            self._lost.add(worker)
        if worker in self._lost:
            raise Lost
        return self._workers[worker](item)

    def close(self) -> None:
        pass
