"""Compares the models that answers name: all answers of one piece of work have to come from the same one."""

from __future__ import annotations

from typing import Any

from nmt_core.base.errors import ServiceError
from nmt_core.v1 import nmt_pb2 as pb


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
