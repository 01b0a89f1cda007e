"""Why a request, or one item of it, is not answered, and the forms of the error that a client gets.

An ``RpcError`` has a status code, a ``reason`` for programs, a message for people, and where they help
the field at fault and the time after which to try again. It travels as ``google.rpc.Status`` in the
trailers of a call (``trailers``), or as ``Error`` inside an answer (``to_error``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf import any_pb2, duration_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2

from nmt_core.base.errors import NmtError
from nmt_core.v1 import nmt_pb2 as pb

DOMAIN = "nmt_core"
DETAILS = "grpc-status-details-bin"
LATE = "DEADLINE"
"""The reason where the caller's deadline has passed."""


class RpcError(NmtError):
    """The answer is no. ``code`` is a number of ``google.rpc.code_pb2``, ``retry_after`` is in seconds."""

    def __init__(
        self, problem: str, *, code: int, reason: str, field: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(problem)
        self.code, self.reason, self.field, self.retry_after = code, reason, field, retry_after


def invalid(field: str, problem: str, *, reason: str = "BAD_OPTION") -> RpcError:
    """The request has a mistake in ``field``."""
    return RpcError(problem, code=code_pb2.INVALID_ARGUMENT, reason=reason, field=field)


def busy(problem: str, *, reason: str, retry_after: float) -> RpcError:
    """Too much at once; later it may go."""
    return RpcError(problem, code=code_pb2.RESOURCE_EXHAUSTED, reason=reason, retry_after=retry_after)


def unavailable(problem: str, *, reason: str, retry_after: float = 1.0) -> RpcError:
    """The server is not ready yet, or not any more."""
    return RpcError(problem, code=code_pb2.UNAVAILABLE, reason=reason, retry_after=retry_after)


def draining() -> RpcError:
    """The server ends, and begins nothing more."""
    return unavailable("the server is shutting down; ask another one, or try again later", reason="DRAINING")


def not_supported(problem: str) -> RpcError:
    """The model is not of the kind that could do it."""
    return RpcError(problem, code=code_pb2.FAILED_PRECONDITION, reason="NOT_SUPPORTED")


def not_allowed(model: str, allowed: Iterable[str]) -> RpcError:
    """The client may use these models only, whether there is another of that name or not."""
    problem = f"this token is not for the model {model[:100]!r}; it is for {', '.join(allowed) or 'none that is here'}"
    return RpcError(problem, code=code_pb2.PERMISSION_DENIED, reason="MODEL_NOT_ALLOWED", field="model")


def expired() -> RpcError:
    """The deadline passed before the work began."""
    return RpcError("the deadline passed in the queue", code=code_pb2.DEADLINE_EXCEEDED, reason=LATE)


def internal() -> RpcError:
    """A mistake of ours, whose details clients are not shown."""
    return RpcError("the server made a mistake; its log says more", code=code_pb2.INTERNAL, reason="INTERNAL")


def to_error(refusal: RpcError) -> pb.Error:
    """The form inside an answer."""
    error = pb.Error(code=refusal.code, reason=refusal.reason, message=str(refusal))
    if refusal.retry_after is not None:
        error.retry_delay.CopyFrom(_duration(refusal.retry_after))
    return error


def from_error(error: pb.Error) -> RpcError:
    """What a client reads inside an answer."""
    delay = error.retry_delay.ToTimedelta().total_seconds() if error.HasField("retry_delay") else None
    return RpcError(error.message, code=error.code, reason=error.reason, retry_after=delay)


def bare(refusal: RpcError) -> RpcError:
    """The same without the frames that it came through, which would hold the request until garbage is searched for."""
    refusal.__cause__ = refusal.__context__ = None
    return refusal.with_traceback(None)


def trailers(refusal: RpcError) -> tuple[tuple[str, bytes], ...]:
    """The form behind a status: metadata of the call's end."""
    details: list[Any] = [error_details_pb2.ErrorInfo(reason=refusal.reason, domain=DOMAIN)]
    if refusal.retry_after is not None:
        details.append(error_details_pb2.RetryInfo(retry_delay=_duration(refusal.retry_after)))
    if refusal.field:
        violation = error_details_pb2.BadRequest.FieldViolation(field=refusal.field, description=str(refusal))
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    status = status_pb2.Status(code=refusal.code, message=str(refusal), details=map(_packed, details))
    return ((DETAILS, status.SerializeToString()),)


def from_trailers(metadata: Iterable[tuple[str, Any]] | None) -> tuple[str, float | None]:
    """The reason and the time after which to try again, from the metadata of a call's end; empty where they are not."""
    reason, retry_after = "", None
    for key, value in metadata or ():
        if key != DETAILS:
            continue
        for detail in status_pb2.Status.FromString(value).details:
            if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
                info = error_details_pb2.ErrorInfo()
                detail.Unpack(info)
                reason = info.reason
            elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
                retry = error_details_pb2.RetryInfo()
                detail.Unpack(retry)
                retry_after = retry.retry_delay.ToTimedelta().total_seconds()
    return reason, retry_after


def _packed(detail: Any) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(detail)
    return packed


def _duration(seconds: float) -> duration_pb2.Duration:
    duration = duration_pb2.Duration()
    duration.FromMilliseconds(round(seconds * 1000))
    return duration
