"""Calls to one server or several: how they are reached, tried again, and what their errors mean.

Every method is pure, so a call that finds a server away, or busy, is made again: after the time the
server names or else after growing pauses, at the next of several addresses at once, and never
beyond the deadline of the call. Free of torch.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Any

from nmt_core.base.errors import ConfigError, NmtError, Overloaded, ServiceError, Unavailable
from nmt_core.base.words import whole_number
from nmt_core.files.small import read_pem

try:
    import grpc

    from nmt_core.serving.errors import RpcError, from_trailers, trailers
    from nmt_core.v1 import nmt_pb2 as pb
    from nmt_core.v1 import nmt_pb2_grpc
except ImportError as error:
    raise NmtError(f"this needs gRPC ({error.name} is missing): pip install 'hybridmt[client]'") from error

_TRIES = {grpc.StatusCode.UNAVAILABLE: 5, grpc.StatusCode.RESOURCE_EXHAUSTED: 10}
AWAY = grpc.StatusCode.UNAVAILABLE
_HOPELESS = ("OUT_OF_MEMORY",)
_TOO_LARGE = "message larger than max"  # the library's own words, for which it has no code
_LONGEST_WAIT = 10.0  # seconds
OPTIONS = [
    ("grpc.max_receive_message_length", -1),  # the server bounds its answers
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.lb_policy_name", "round_robin"),  # over the addresses that a name has
    ("grpc.enable_retries", 0),  # we try again ourselves
]

_LONGEST_TIMEOUT = 1e6  # seconds; beyond some 1e9 the library's deadline is in the past


@dataclass(frozen=True)
class Access:
    """How servers are reached: with TLS when ``tls`` or a file is given, and with a bearer token.

    ``ca`` is the PEM file of the authority that signed the server's certificate (default: the
    system's), ``certificate`` and ``key`` are our own for servers that want one.
    """

    tls: bool = False
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    token: str | None = None

    def __post_init__(self) -> None:
        """Raises ConfigError for a token that no message can carry."""
        if self.token and not (self.token.isascii() and self.token.isprintable()):
            raise ConfigError("a token has characters that are not printable ASCII; expected the one the server knows")

    @property
    def metadata(self) -> list[tuple[str, str]]:
        """What every call carries."""
        return [("authorization", f"Bearer {self.token}")] if self.token else []

    @property
    def encrypted(self) -> bool:
        """Whether TLS is asked for."""
        return bool(self.tls or self.ca or self.certificate)

    def credentials(self) -> grpc.ChannelCredentials | None:
        """None for connections that are not encrypted. Raises ConfigError or InputError."""
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("a client's certificate and its key belong together")
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


def check_timeout(seconds: float) -> None:
    """Raises ConfigError for a time that is none, or too long for the library."""
    if not 0.0 < seconds <= _LONGEST_TIMEOUT:
        raise ConfigError(f"a timeout of {seconds:g} s: expected more than 0, at most {_LONGEST_TIMEOUT:.0f}")


class Attempts:
    """The attempts at one call: asked after each failure how long to wait, it answers or raises.

    A server that is away is asked 5 times (each of several), a busy one 10 times.
    """

    def __init__(self, addresses: int, *, timeout: float, first_wait: float, access: Access) -> None:
        check_timeout(timeout)
        self._access = access
        self._addresses, self._timeout, self._first_wait = addresses, timeout, first_wait
        self._end = time.monotonic() + timeout
        self._tried = 0

    @property
    def left(self) -> float:
        """Seconds to the deadline."""
        return max(self._end - time.monotonic(), 0.001)

    def pause(self, error: Any, address: str) -> float:
        """Seconds to wait before the next attempt. Raises ServiceError when there should be none.

        That takes a few seconds where the server is asked for what is wrong.
        """
        self._tried += 1
        reason, retry_after = from_trailers(error.trailing_metadata())
        again = _worth_trying(error, reason) and self._tried < _TRIES[_code(error)] * self._addresses
        rounds = (self._tried - 1) // self._addresses
        pause: float = min(self._first_wait * 2.0**rounds, _LONGEST_WAIT)
        if _code(error) is grpc.StatusCode.UNAVAILABLE and self._tried % self._addresses:
            pause = 0.0  # the next address may be there
        elif retry_after is not None:
            pause = min(max(retry_after, pause), _LONGEST_WAIT)
        pause *= random.uniform(0.7, 1.3)
        if not again or pause >= self.left:
            raise translated(error, address, self._timeout, self._access) from error
        return pause


class StreamFailed(Exception):
    """A stream whose server cannot answer; it is read like an error of gRPC."""

    def __init__(self, refusal: RpcError) -> None:
        super().__init__(str(refusal))
        self._refusal = refusal

    def code(self) -> grpc.StatusCode:
        """That of a server that is away."""
        return AWAY

    def details(self) -> str:
        """What the server says."""
        return str(self._refusal)

    def trailing_metadata(self) -> Any:
        """With the reason, and the time after which to try again."""
        return trailers(self._refusal)


def _code(error: Any) -> grpc.StatusCode:
    """The status, UNAVAILABLE where a connection was lost under another name.

    A write to a connection that has just gone may see an INTERNAL of this side's library, and a call that a
    server had not yet begun when it stopped sees CANCELLED (what this side cancels itself is no such error).
    """
    code: grpc.StatusCode = error.code()
    lost = code is grpc.StatusCode.INTERNAL and "Internal error from Core" in (error.details() or "")
    return grpc.StatusCode.UNAVAILABLE if lost or code is grpc.StatusCode.CANCELLED else code


def _worth_trying(error: Any, reason: str) -> bool:
    """Whether the same call may pass later. A message that is too large has the code of a full queue, and no reason."""
    return _code(error) in _TRIES and reason not in _HOPELESS and (bool(reason) or _TOO_LARGE not in _details(error))


def _details(error: Any) -> str:
    return error.details() or ""


def translated(error: Any, address: str, timeout: float, access: Access) -> ServiceError:
    """Our error for one of gRPC."""
    match _code(error):
        case grpc.StatusCode.UNAVAILABLE:
            return Unavailable(f"nothing answers at {address} ({error.details()}); {_what_to_check(access)}")
        case grpc.StatusCode.RESOURCE_EXHAUSTED if f"Received {_TOO_LARGE}" in _details(error):
            what_to_do = "send less in a request, or start the server with a larger --limit request_mib="
            return ServiceError(f"{address}: {error.details()}; {what_to_do}")
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return Overloaded(f"{address}: {error.details()}")
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return ServiceError(f"{address} gave no answer within {timeout:g} s; is the server busy?")
        case grpc.StatusCode.UNIMPLEMENTED:
            return ServiceError(f"{address} is not an 'nmt-core serve' of this version ({error.details()})")
        case code:
            return ServiceError(f"{address}: {error.details()} ({code.name})")


def _what_to_check(access: Access) -> str:
    """What a user looks at when a server does not answer: the library does not tell why a TLS handshake failed."""
    if access.encrypted:
        return "is 'nmt-core serve' running there with TLS, and do both sides trust each other's certificates?"
    return "is 'nmt-core serve' running there, and without TLS (else --tls)?"


def open_channel(address: str, credentials: grpc.ChannelCredentials | None, grpc_module: Any = grpc) -> Any:
    """A connection, encrypted where there are credentials."""
    if credentials is None:
        return grpc_module.insecure_channel(address, options=OPTIONS)
    return grpc_module.secure_channel(address, credentials, options=OPTIONS)


def health_problem(address: str, *, timeout: float, access: Access) -> str:
    """Why the server there is not ready; empty if it is."""
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    with open_channel(address, access.credentials()) as channel:
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


class Pending:
    """A call that is under way."""

    def __init__(self, connection: Connection, method: str, request: Any) -> None:
        self._connection, self._method, self._request = connection, method, request
        self._attempts = connection.attempts()
        self._call, self._address = connection.send(method, request, self._attempts.left)

    def result(self, one_model: OneModel | None = None) -> Any:
        """Wait for the answer, which has to be of that model. Raises ServiceError."""
        while True:
            try:
                answer = self._call.result()
                if one_model is not None:
                    one_model.check(answer, self._address)
                return answer
            except grpc.RpcError as error:
                time.sleep(self._attempts.pause(error, self._address))
            self._call, self._address = self._connection.send(self._method, self._request, self._attempts.left)

    def cancel(self) -> None:
        """Call it off."""
        self._call.cancel()


class Connection:
    """Calls to servers that serve the same models; foreign errors are turned into ours here.

    ``addresses`` is HOST:PORT, or several with commas, which take turns. ``timeout`` is what one call
    may take with all its attempts, of which the second comes after about ``first_wait`` seconds.
    ``grpc_module`` opens the channels: ``grpc``, or ``grpc.aio``, with which calls are coroutines.
    """

    def __init__(
        self,
        addresses: str,
        *,
        timeout: float = 600.0,
        first_wait: float = 0.2,
        access: Access | None = None,
        grpc_module: Any = grpc,
    ) -> None:
        self.addresses = split_addresses(addresses)
        self.timeout, self.first_wait, self.access = timeout, first_wait, access or Access()
        credentials = self.access.credentials()
        self.channels = [open_channel(address, credentials, grpc_module) for address in self.addresses]
        self._stubs = [nmt_pb2_grpc.NmtServiceStub(channel) for channel in self.channels]
        self._next = 0

    def attempts(self) -> Attempts:
        """For one call."""
        return Attempts(len(self.addresses), timeout=self.timeout, first_wait=self.first_wait, access=self.access)

    def send(self, method: str, request: Any, timeout: float) -> tuple[Any, str]:
        """One attempt, at the address whose turn it is; and that address."""
        stub, address = self.next_stub()
        return getattr(stub, method).future(request, timeout=timeout, metadata=self.access.metadata), address

    def next_stub(self) -> tuple[Any, str]:
        """The stub of the address whose turn it is, and that address."""
        turn = self._next % len(self._stubs)
        self._next += 1
        return self._stubs[turn], self.addresses[turn]

    def call(self, method: str, request: Any) -> Any:
        """Ask and wait. Raises ServiceError."""
        return Pending(self, method, request).result()

    def close(self) -> None:
        """Give the connections back."""
        for channel in self.channels:
            channel.close()
