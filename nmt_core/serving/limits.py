"""Limits of the server: what a request may ask for, what clients may have open, and how long things may take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from nmt_core.base.errors import ConfigError
from nmt_core.config import Config, YamlProblem, parse_yaml, read_yaml

REQUEST_COPIES = 3
"""Of a request in memory: its bytes, its message and its texts."""

_MESSAGE_MIB, _REQUEST_MIB = 32, 8
Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, le=1e6)]
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
