"""Limits of the server: what a request may ask for, how long things may take, and what clients hold of what is limited.

``Limits`` are the numbers. A ``ClientLimit`` counts the calls or streams of each client, ``Memory`` the bytes of all
requests, to which each request has an ``Account``.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from nmt_core.base.errors import ConfigError
from nmt_core.config import Config, YamlProblem, parse_yaml, read_yaml
from nmt_core.serving.errors import busy, invalid

REQUEST_COPIES = 3
"""Of a request in memory: its bytes, its message and its texts."""

_MESSAGE_MIB, _REQUEST_MIB = 32, 8
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]  # twice that fits into 32 bits, as the library wants it
Seconds = Annotated[float, Field(ge=0.001, le=1e6)]  # the library counts milliseconds
Pause = Annotated[float, Field(ge=0, le=1e6)]


class Limits(Config):
    """The keys of ``--limit``; docs/serving.md says what each bounds. Times are in seconds, sizes in MiB.

    ``message_mib`` bounds an answer (None: 32, at most a third of the memory), ``request_mib`` a message of a client
    (None: 8, at most that of an answer), ``client_queue`` the work of one client that waits (None: a quarter of
    ``queue``).
    """

    items: Count = 20_000
    characters: Count = 20_000
    words: Count = 2_000
    beam: Count = 200
    nbest: Count = 200
    steps: Count = 50_000_000
    message_mib: Annotated[int, Field(ge=1, le=1024)] | None = None
    request_mib: Count | None = None
    memory_mib: Count = 256
    calls: Count = 10_000
    client_calls: Count = 5_000
    streams: Count = 256
    client_streams: Count = 64
    stream_requests: Count = 64
    connections: Count = 12_000
    queue: Annotated[int, Field(ge=0)] = 2_000_000
    client_queue: Annotated[int, Field(ge=0)] | None = None
    batch: Count = 1_000
    delay: Pause = 0.002
    body: Seconds = 20.0
    idle: Seconds = 300.0
    unread: Seconds = 60.0
    age: Seconds = 3600.0
    stuck: Seconds = 120.0
    drain: Pause = 0.0
    grace: Pause = 30.0

    columns: ClassVar[int] = 1_000
    length_ratio: ClassVar[float] = 20.0
    length_normalization: ClassVar[float] = 10.0

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        message, request = self.message_bytes >> 20, self.request_bytes >> 20
        if REQUEST_COPIES * message > self.memory_mib:
            held = f"a request of {message} MiB is held {REQUEST_COPIES} times while it is handled"
            raise ValueError(f"memory_mib={self.memory_mib}: {held}; expected at least {REQUEST_COPIES * message}")
        if request > message:
            raise ValueError(f"request_mib={request}: expected at most {message}, or a larger message_mib")
        return self

    @property
    def message_bytes(self) -> int:
        """Of an answer."""
        return (self.message_mib or min(_MESSAGE_MIB, max(1, self.memory_mib // REQUEST_COPIES))) << 20

    @property
    def request_bytes(self) -> int:
        """Of a message of a client, which keeps all others waiting while it is copied."""
        return self.request_mib << 20 if self.request_mib else min(_REQUEST_MIB << 20, self.message_bytes)

    @property
    def memory_bytes(self) -> int:
        """What all requests in progress may hold, and one request by itself."""
        return self.memory_mib << 20

    @property
    def client_work(self) -> int:
        """What one client may have waiting."""
        return self.queue // 4 if self.client_queue is None else self.client_queue

    @property
    def fields(self) -> int:
        """Fields that a message within the limits may have before it is parsed: items of up to three, and options."""
        return 3 * self.items + 64


def read_limits(path: str | None, assignments: Iterable[str]) -> Limits:
    """Those of a YAML file, with each ``KEY=VALUE`` put in. Raises ConfigError or InputError."""
    given = read_yaml(path) if path else {}
    return Limits.from_mapping(given | dict(map(_parse, assignments)), origin="limits")


def _parse(assignment: str) -> tuple[str, Any]:
    """The key and value of ``KEY=VALUE``. Raises ConfigError."""
    key, equals, value = assignment.partition("=")
    try:
        if equals:
            return key, parse_yaml(value)
    except YamlProblem:
        pass
    raise ConfigError(f"--limit {assignment}: expected KEY=VALUE, such as idle=60")


class Held:
    """How much of something is held, ``total`` and by each client; a client that holds nothing is forgotten."""

    def __init__(self) -> None:
        self.total = 0
        self._of: dict[str, int] = {}

    def of(self, client: str) -> int:
        """What a client holds."""
        return self._of.get(client, 0)

    def add(self, client: str, amount: int) -> None:
        """So much more, or less."""
        self.total += amount
        self._of[client] = self.of(client) + amount
        if not self._of[client]:
            del self._of[client]


class ClientLimit:
    """Calls, streams or the like: at most ``most`` at once, and ``each`` of one client.

    ``what`` names them in messages, ``reason`` is the error's.
    """

    def __init__(self, what: str, most: int, each: int, reason: str) -> None:
        self.what, self.most, self.each, self._reason = what, most, min(each, most), reason
        self.open = Held()

    @contextlib.contextmanager
    def one(self, client: str) -> Iterator[None]:
        """One more while the block runs. Raises RpcError."""
        if self.open.total >= self.most:
            raise busy(f"{self.most} {self.what} are open already; try again later", reason=self._reason)
        if self.open.of(client) >= self.each:
            problem = f"{self.each} {self.what} of this client are open already; try again later"
            raise busy(problem, reason=self._reason)
        self.open.add(client, 1)
        try:
            yield
        finally:
            self.open.add(client, -1)


class Memory:
    """Bytes that requests may hold: ``most`` in all, and several of one client at most half of them.

    A request is charged with what it may need before that is there. Requests of streams may have to wait for memory
    when they are there already: new ones leave memory for their messages. A client whose messages wait may have more
    only while as much again stays free (Choudhury and Hahne 1998), so that few clients do not fill all of it so.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.held, self.waiting = Held(), Held()

    def check(self, client: str, amount: int, *, before: int, new: bool) -> None:
        """Whether a request that has ``before`` may have more. Raises RpcError, a final one if that is never there."""
        if before + amount > self.most:
            problem = f"the request needs about {_mib(before + amount)} MiB of memory; at most {_mib(self.most)}"
            raise invalid("", f"{problem}, send several requests or ask for less", reason="TOO_COSTLY")
        held, others, share = self.held.total, self.held.of(client) - before, self.most // 2
        if new and self.waiting.total:
            waiting = self.waiting.of(client)
            held, others = held + self.waiting.total, others + waiting
            if waiting:
                share = min(share, self.most - held - amount)
        if held + amount > self.most or (others and others + before + amount > share):
            problem = f"requests hold {_mib(held)} MiB of memory, and this one needs about {_mib(amount)} more"
            raise busy(f"{problem}; at most {_mib(self.most)}, try again later", reason="MEMORY_FULL")


class Account:
    """The memory of one request of a client; as a block, given back at its end.

    ``messages`` are the bytes of it and of its answer, as far as they are known.
    """

    def __init__(self, memory: Memory, client: str) -> None:
        self._memory, self._client = memory, client
        self.held = self.messages = self._waiting = 0

    def __enter__(self) -> Account:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def charge_message(self, size: int) -> None:
        """Hold a request of that size while it is handled. Raises RpcError."""
        self.charge(REQUEST_COPIES * size, new=not self._waiting)
        self._memory.waiting.add(self._client, -self._waiting)
        self._waiting = 0
        self.messages += size

    def charge(self, amount: int, *, new: bool = False) -> None:
        """Hold so many bytes more. Raises RpcError."""
        self._memory.check(self._client, amount, before=self.held, new=new)
        self._memory.held.add(self._client, amount)
        self.held += amount

    def release(self, *, waiting: int = 0) -> None:
        """Hold nothing but a request of so many bytes, which will be charged again."""
        self._memory.held.add(self._client, -self.held)
        self._memory.waiting.add(self._client, REQUEST_COPIES * waiting - self._waiting)
        self.held, self.messages, self._waiting = 0, 0, REQUEST_COPIES * waiting


def _mib(amount: int) -> int:
    return -(-amount // (1 << 20))


ACCOUNT: contextvars.ContextVar[Account] = contextvars.ContextVar("account")
"""The account of the request that is being handled."""
