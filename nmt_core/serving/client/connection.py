"""Servers and how they are called: addresses, access, attempts, and what their errors mean.

Every method is pure, so a call that finds a server away, or busy, is made again: after the time the
server names or else after growing pauses, at the next of several addresses at once, and never
beyond the deadline of the call. Free of torch.
"""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import dataclass
from typing import Any

from nmt_core.base.errors import ConfigError, NmtError, Overloaded, ServiceError, Unavailable
from nmt_core.base.words import whole_number
from nmt_core.files.reading import read_pem

try:
    import grpc
    from google.rpc import code_pb2
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    from nmt_core.serving.errors import RpcError, from_trailers
    from nmt_core.v1 import nmt_pb2 as pb
    from nmt_core.v1 import nmt_pb2_grpc
except ImportError as error:
    raise NmtError(f"this needs gRPC ({error.name} is missing): pip install 'hybridmt[client]'") from error

OPTIONS = [
    ("grpc.max_receive_message_length", -1),  # the server bounds its answers
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.lb_policy_name", "round_robin"),  # over the addresses that a name has
    ("grpc.enable_retries", 0),  # the client tries again itself
]
IN_PROGRESS = 4
"""Requests of one call, for each address."""

_TRIES = {code_pb2.UNAVAILABLE: 5, code_pb2.RESOURCE_EXHAUSTED: 10}
_TOO_LARGE = "message larger than max"  # the library's own words, for which it has no code
_LONGEST_WAIT = 10.0  # seconds
_LONGEST_TIMEOUT = 1e6  # seconds; beyond some 1e9 the library's deadline is in the past


@dataclass(frozen=True)
class Access:
    """How servers are reached: with TLS when ``tls`` or a file is given, and with a bearer token.

    ``ca`` is the PEM file of the authority that signed the server's certificate (default: the
    system's), ``certificate`` and ``key`` are the client's own, for servers that want them.
    """

    tls: bool = False
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    token: str | None = None

    def __post_init__(self) -> None:
        """Raises ConfigError for a token that no message can carry, and for half of a pair of files."""
        if self.token and not (self.token.isascii() and self.token.isprintable()):
            raise ConfigError("a token has characters that are not printable ASCII; expected the one the server knows")
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("a client's certificate and its key belong together")

    @property
    def metadata(self) -> list[tuple[str, str]]:
        """What every call carries."""
        return [("authorization", f"Bearer {self.token}")] if self.token else []

    @property
    def encrypted(self) -> bool:
        """Whether TLS is asked for."""
        return bool(self.tls or self.ca or self.certificate)

    def credentials(self) -> grpc.ChannelCredentials | None:
        """None for connections that are not encrypted. Raises InputError."""
        if not self.encrypted:
            return None
        ca, certificate = _content(self.ca, "CERTIFICATE"), _content(self.certificate, "CERTIFICATE")
        return grpc.ssl_channel_credentials(ca, _content(self.key, "PRIVATE KEY"), certificate)


def _content(path: str | None, kind: str) -> bytes | None:
    return None if path is None else read_pem(path, kind)


def split_addresses(text: str) -> list[str]:
    """The addresses of ``HOST:PORT,HOST:PORT``. Raises ConfigError."""
    addresses = text.split(",")
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not 1 <= (whole_number(port) or 0) <= 65535 or not host.isprintable():
            raise ConfigError(f"{address!r} is not an address; expected HOST:PORT, or several with commas")
    return addresses


class Connection:
    """Channels to servers that serve the same models.

    ``addresses`` is HOST:PORT, or several with commas, which take turns. ``timeout`` is what one call may take with
    all its attempts, of which the second comes after about ``first_wait`` seconds. ``library`` opens the channels:
    ``grpc``, or ``grpc.aio``, with which calls are coroutines. Raises ConfigError, InputError.
    """

    def __init__(
        self,
        addresses: str,
        *,
        timeout: float = 600.0,
        first_wait: float = 0.2,
        access: Access | None = None,
        library: Any = grpc,
    ) -> None:
        if not 0.0 < timeout <= _LONGEST_TIMEOUT:
            raise ConfigError(f"a timeout of {timeout:g} s: expected more than 0, at most {_LONGEST_TIMEOUT:.0f}")
        self.addresses = split_addresses(addresses)
        self.timeout, self.first_wait, self.access = timeout, first_wait, access or Access()
        credentials = self.access.credentials()
        self.channels = [
            library.secure_channel(address, credentials, options=OPTIONS)
            if credentials
            else library.insecure_channel(address, options=OPTIONS)
            for address in self.addresses
        ]
        self.stubs = [nmt_pb2_grpc.NmtServiceStub(channel) for channel in self.channels]
        self.turns = itertools.count()


class Attempts:
    """The attempts at one call, each at the next ``address``: after a failure it says how long to wait, or raises.

    A server that is away is asked 5 times (each of several), a busy one 10 times. Calls begin at the addresses in turn.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._end = time.monotonic() + connection.timeout
        self._turn, self._tried = next(connection.turns), 0

    @property
    def _index(self) -> int:
        return (self._turn + self._tried) % len(self._connection.addresses)

    @property
    def address(self) -> str:
        """Where the present attempt goes."""
        return self._connection.addresses[self._index]

    def send(self, method: str, request: Any, *, future: bool = False) -> Any:
        """Ask there for what is left of the time: the library's call, or its ``future``."""
        ask = getattr(self._connection.stubs[self._index], method)
        return (ask.future if future else ask)(request, timeout=self.left, metadata=self._connection.access.metadata)

    @property
    def left(self) -> float:
        """Seconds to the deadline."""
        return max(self._end - time.monotonic(), 0.001)

    def pause(self, error: Any) -> float:
        """Seconds to wait after an error of the library's. Raises ServiceError when there is no next attempt."""
        address, failure, addresses = self.address, _read(error), len(self._connection.addresses)
        self._tried += 1
        tries = _TRIES[failure.code] * addresses if _may_pass(failure) else 1
        pause: float = min(self._connection.first_wait * 2.0 ** ((self._tried - 1) // addresses), _LONGEST_WAIT)
        if failure.code == code_pb2.UNAVAILABLE and self._tried % addresses:
            pause = 0.0  # the next address may be there
        elif failure.retry_after is not None:
            pause = min(max(failure.retry_after, pause), _LONGEST_WAIT)
        pause *= random.uniform(0.7, 1.3)
        if self._tried >= tries or pause >= self.left:
            raise _service_error(failure, address, self._connection) from error
        return pause


def _read(error: Any) -> RpcError:
    """The error of a call; UNAVAILABLE where a connection was lost under another name.

    A write to a connection that has just gone may see an INTERNAL of this side's library, and a call that a
    server had not yet started when it stopped sees CANCELLED (what this side cancels itself is no such error).
    """
    code, details = error.code().value[0], error.details() or ""
    if code == code_pb2.CANCELLED or (code == code_pb2.INTERNAL and "Internal error from Core" in details):
        code = code_pb2.UNAVAILABLE
    reason, retry_after = from_trailers(error.trailing_metadata())
    return RpcError(details, code=code, reason=reason, retry_after=retry_after)


def _may_pass(failure: RpcError) -> bool:
    """Whether the same call may pass later. A message that is too large has the code of a full queue, and no reason."""
    too_large = not failure.reason and _TOO_LARGE in str(failure)
    return failure.code in _TRIES and failure.reason != "OUT_OF_MEMORY" and not too_large


def _service_error(failure: RpcError, address: str, connection: Connection) -> ServiceError:
    """What a user reads of a failure."""
    match failure.code:
        case code_pb2.UNAVAILABLE:
            return Unavailable(f"nothing answers at {address} ({failure}); {_what_to_check(connection.access)}")
        case code_pb2.RESOURCE_EXHAUSTED if f"Received {_TOO_LARGE}" in str(failure):
            what_to_do = "send less in a request, or start the server with a larger --limit request_mib="
            return ServiceError(f"{address}: {failure}; {what_to_do}")
        case code_pb2.RESOURCE_EXHAUSTED:
            return Overloaded(f"{address}: {failure}")
        case code_pb2.DEADLINE_EXCEEDED:
            return ServiceError(f"{address} gave no answer within {connection.timeout:g} s; is the server busy?")
        case code_pb2.UNIMPLEMENTED:
            return ServiceError(f"{address} is not an 'nmt-core serve' of this version ({failure})")
        case code:
            return ServiceError(f"{address}: {failure} ({code_pb2.Code.Name(code)})")


def _what_to_check(access: Access) -> str:
    """What a user looks at when a server does not answer: the library does not tell why a TLS handshake failed."""
    if access.encrypted:
        return "is 'nmt-core serve' running there with TLS, and do both sides trust each other's certificates?"
    return "is 'nmt-core serve' running there, and without TLS (else --tls)?"


def health_problem(address: str, *, timeout: float, access: Access) -> str:
    """Why the server there is not ready; empty if it is."""
    with Connection(address, timeout=timeout, access=access).channels[0] as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=timeout)
        except grpc.RpcError as error:
            hint = f"; {_what_to_check(access)}" if error.code() is grpc.StatusCode.UNAVAILABLE else ""
            return f"{error.details()} ({error.code().name}){hint}"
    status = health_pb2.HealthCheckResponse.ServingStatus
    return "" if answer.status == status.SERVING else str(status.Name(answer.status))


class OneModel:
    """The model of ``described``, or else of the first answer: fingerprint and signature."""

    def __init__(self, described: pb.Model | None = None) -> None:
        self._expected = None if described is None else (described.version, described.signature)

    def check(self, answer: Any, address: str) -> None:
        """Raise ServiceError for an answer that another model made, or another arithmetic.

        A server that is older than these fields names no model; its answers are not compared.
        """
        found = answer.fingerprint, answer.signature
        if not any(found):
            return
        if self._expected is None:
            self._expected = found
        if found != self._expected:
            before, now = next((one, other) for one, other in zip(self._expected, found, strict=True) if one != other)
            raise ServiceError(
                f"{address}: the model changed during the work (it was {before}, now {now});"
                " let all servers have the same model, and start again"
            )
