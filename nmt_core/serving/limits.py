"""What a request may ask for at most, and what clients may have open."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of one request, and of what is open at once.

    ``items`` bounds texts, pairs and hypotheses, and texts times n-best; ``characters`` and ``words``
    one text; ``steps`` hypotheses times the words they may have; ``message_bytes`` an answer,
    ``request_bytes`` a message of a client, which keeps all others waiting while it is copied;
    ``memory_bytes`` what all requests under way may hold (a request by itself, too). ``calls``, ``streams`` and health
    ``watches`` are what all clients have open, ``client_...`` what one has; ``stream_requests`` what one stream has
    under way; ``columns`` the features of a Rerank. Times are in seconds: ``body_seconds`` for a request to arrive,
    ``idle_seconds`` without a request on a stream or a call on a
    connection, ``unread_seconds`` for an answer to be taken, ``age_seconds`` of a connection,
    ``stuck_seconds`` for one batch or step of a device that is healthy.
    """

    items: int = 20_000
    characters: int = 20_000
    words: int = 2_000
    beam: int = 200
    nbest: int = 200
    length_ratio: float = 20.0
    length_normalization: float = 10.0
    steps: int = 50_000_000
    columns: int = 1_000
    message_bytes: int = 32 << 20
    request_bytes: int = 8 << 20
    memory_bytes: int = 256 << 20
    calls: int = 10_000
    client_calls: int = 5_000
    streams: int = 256
    client_streams: int = 64
    watches: int = 256
    client_watches: int = 32
    stream_requests: int = 64
    connections: int = 12_000
    body_seconds: float = 20.0
    idle_seconds: float = 300.0
    unread_seconds: float = 60.0
    age_seconds: float = 3600.0
    stuck_seconds: float = 120.0

    @property
    def fields(self) -> int:
        """Fields that a message within the limits may have before it is parsed: items of up to three, and options."""
        return 3 * self.items + 64
