"""Why a request, or one item of it, is not answered, and the forms of the error that a client gets.

An ``RpcError`` has a status code, a ``reason`` for programs, a message for people, and where they help
the field at fault and the time after which to try again. It travels as ``google.rpc.Status`` in the
trailers of a call (``trailers``), or as ``Error`` inside an answer (``to_error``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import code_pb2, error_details_pb2, status_pb2

from nmt_core.base.errors import NmtError
from nmt_core.v1 import nmt_pb2 as pb

DOMAIN = "nmt_core"
DETAILS = "grpc-status-details-bin"
_LONGEST = 1000  # characters: clients take 8 KiB of what ends a call, and it has the message three times


class RpcError(NmtError):
    """The answer is no. ``code`` is a number of ``google.rpc.code_pb2``, ``retry_after`` is in seconds."""

    def __init__(
        self, problem: str, *, code: int, reason: str, field: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(problem if len(problem) <= _LONGEST else f"{problem[:_LONGEST]}…")
        self.code, self.reason, self.field, self.retry_after = code, reason, field, retry_after


def invalid(field: str, problem: str, *, reason: str = "BAD_OPTION") -> RpcError:
    """The request has a mistake in ``field``."""
    return RpcError(problem, code=code_pb2.INVALID_ARGUMENT, reason=reason, field=field)


def busy(problem: str, *, reason: str, retry_after: float = 1.0) -> RpcError:
    """Too much at once; the same may pass later."""
    return RpcError(problem, code=code_pb2.RESOURCE_EXHAUSTED, reason=reason, retry_after=retry_after)


def unavailable(problem: str, *, reason: str, retry_after: float = 1.0) -> RpcError:
    """The server is not ready yet, or not any more."""
    return RpcError(problem, code=code_pb2.UNAVAILABLE, reason=reason, retry_after=retry_after)


def draining() -> RpcError:
    """The server ends, and starts nothing more."""
    return unavailable("the server is shutting down; ask another one, or try again later", reason="DRAINING")


def not_supported(problem: str) -> RpcError:
    """The model is not of the kind that could do it."""
    return RpcError(problem, code=code_pb2.FAILED_PRECONDITION, reason="NOT_SUPPORTED")


def not_allowed(model: str, allowed: Iterable[str]) -> RpcError:
    """The client may use these models only, whether there is another of that name or not."""
    problem = f"this token is not for the model {model[:100]!r}; it is for {', '.join(allowed) or 'none that is here'}"
    return RpcError(problem, code=code_pb2.PERMISSION_DENIED, reason="MODEL_NOT_ALLOWED", field="model")


def expired() -> RpcError:
    """The deadline passed before the work started."""
    return RpcError("the deadline passed in the queue", code=code_pb2.DEADLINE_EXCEEDED, reason="DEADLINE")


def internal() -> RpcError:
    """A mistake of the server's own, whose details clients are not shown."""
    return RpcError("the server made a mistake; its log says more", code=code_pb2.INTERNAL, reason="INTERNAL")


def to_error(failure: RpcError) -> pb.Error:
    """The form inside an answer."""
    delay = None if failure.retry_after is None else _duration(failure.retry_after)
    return pb.Error(code=failure.code, reason=failure.reason, message=str(failure), retry_delay=delay)


def trailers(failure: RpcError) -> tuple[tuple[str, bytes], ...]:
    """The form at the end of a call, beside its code and message."""
    details: list[Message] = [error_details_pb2.ErrorInfo(reason=failure.reason, domain=DOMAIN)]
    if failure.retry_after is not None:
        details.append(error_details_pb2.RetryInfo(retry_delay=_duration(failure.retry_after)))
    if failure.field:
        violation = error_details_pb2.BadRequest.FieldViolation(field=failure.field, description=str(failure))
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    status = status_pb2.Status(code=failure.code, message=str(failure), details=[any_pb2.Any() for _ in details])
    for encoded, detail in zip(status.details, details, strict=True):
        encoded.Pack(detail)
    return ((DETAILS, status.SerializeToString()),)


def from_trailers(metadata: Iterable[tuple[str, Any]] | None) -> tuple[str, float | None]:
    """The reason and the time after which to try again, from the metadata of a call's end; empty where they are not."""
    info, retry, named = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo(), False
    for detail in status_pb2.Status.FromString(dict(metadata or ()).get(DETAILS, b"")).details:
        detail.Unpack(info)
        named = detail.Unpack(retry) or named
    return info.reason, retry.retry_delay.ToTimedelta().total_seconds() if named else None


def _duration(seconds: float) -> duration_pb2.Duration:
    duration = duration_pb2.Duration()
    duration.FromMilliseconds(round(seconds * 1000))
    return duration
