"""Just enough of HTTP/2 (RFC 9113) and HPACK (RFC 7541) to be a rude client: one that stops in mid-message."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Sequence
from typing import Self

_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW, _CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
_END_STREAM, _ACK, _END_HEADERS = 1, 1, 4
_CANCEL = 8
_FRAME = 16_384


class RudeClient:
    """One connection, from the address ``source``.

    ``ended`` are the streams that the server has ended, ``settings`` what it has said of the connection, by number;
    ``going_away``: it has said that it takes no new calls here.
    """

    def __init__(self, address: str, *, source: str = "", context: ssl.SSLContext | None = None) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30, source_address=(source, 0))
        if context is not None:
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket, server_hostname=host)
        self._send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self._frame(_SETTINGS, 0, 0, b"")
        self.ended: set[int] = set()
        self.settings: dict[int, int] = {}
        self.going_away = False
        self._next, self._window, self._initial = 1, 65_535, 65_535
        self._windows: dict[int, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, path: str, metadata: Sequence[tuple[str, str]] = ()) -> int:
        """Begin a call; its stream."""
        stream, self._next = self._next, self._next + 2
        pseudo = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "test")]
        headers = [*pseudo, ("te", "trailers"), ("content-type", "application/grpc"), *metadata]
        self._windows[stream] = self._initial
        self._frame(_HEADERS, _END_HEADERS, stream, b"".join(_literal(*one) for one in headers))
        return stream

    def begin_and_reset(self, path: str, metadata: Sequence[tuple[str, str]], calls: int) -> int:
        """Begin so many calls, and take each back at once; how many there were until the server hung up."""
        for number in range(calls):
            try:
                self._frame(_RESET, 0, self.call(path, metadata), struct.pack(">I", _CANCEL))
            except OSError:
                return number
        return calls

    def send_metadata(self, path: str, size: int) -> int:
        """Begin a call, and send so many bytes of metadata that have no end; what was sent until the server hung up."""
        self._frame(_HEADERS, 0, self._next, _literal(":path", path))
        fields = _literal("x-field", "b" * 100) * 140
        frames = 100 * _framed(_CONTINUATION, 0, self._next, fields)
        for sent in range(0, size, len(frames)):
            try:
                self._send(frames)
            except ConnectionError:  # the connection reached its age
                return sent + len(frames)
        return size

    def send(self, stream: int, content: bytes, *, more: bool = False) -> None:
        """Send the only message of a call, or the first if there are ``more``, one that fits into a frame."""
        self._frame(_DATA, 0 if more else _END_STREAM, stream, struct.pack(">BI", 0, len(content)) + content)

    def send_half(self, stream: int, size: int, seconds: float = 5.0) -> int:
        """Send half of a message of that size, or as much as the server takes in that time; the bytes sent."""
        content = struct.pack(">BI", 0, size) + bytes(size // 2)
        sent = 0
        while sent < len(content) and stream not in self.ended:
            room = min(self._window, self._windows[stream], _FRAME, len(content) - sent)
            if room <= 0:
                if not self.listen(seconds):
                    break
                continue
            self._frame(_DATA, 0, stream, content[sent : sent + room])
            self._window, self._windows[stream] = self._window - room, self._windows[stream] - room
            sent += room
        return sent

    def listen(self, seconds: float) -> bool:
        """Take one frame; False if there is none in that time."""
        self.socket.settimeout(seconds)
        try:
            head = self._receive(9)
            length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            stream = int.from_bytes(head[5:], "big")
            content = self._receive(length)
        except (TimeoutError, ConnectionError):
            return False
        if kind == _WINDOW and stream == 0:
            self._window += int.from_bytes(content, "big")
        elif kind == _WINDOW:
            self._windows[stream] += int.from_bytes(content, "big")
        elif kind == _SETTINGS and not flags & _ACK:
            self._settings(content)
        elif kind == _PING and not flags & _ACK:
            self._frame(_PING, _ACK, 0, content)
        elif kind == _GOAWAY:
            self.going_away = True
        elif kind == _RESET or (kind in (_DATA, _HEADERS) and flags & _END_STREAM):
            self.ended.add(stream)
        return True

    def listen_until_ended(self, streams: Sequence[int], seconds: float) -> bool:
        """Whether the server ends all of these."""
        while not self.ended.issuperset(streams):
            if not self.listen(seconds):
                return False
        return True

    def seconds_until_going_away(self) -> float:
        """Until the server takes no new calls here, or a minute."""
        begin = time.monotonic()
        while not self.going_away and time.monotonic() - begin < 60:
            self.listen(1.0)
        return time.monotonic() - begin

    def close(self) -> None:
        """Hang up."""
        self.socket.close()

    def _settings(self, content: bytes) -> None:
        for place in range(0, len(content), 6):
            name, value = struct.unpack(">HI", content[place : place + 6])
            self.settings[name] = value
            if name == 4:
                for stream in self._windows:
                    self._windows[stream] += value - self._initial
                self._initial = value
        self._frame(_SETTINGS, _ACK, 0, b"")

    def _frame(self, kind: int, flags: int, stream: int, content: bytes) -> None:
        self._send(_framed(kind, flags, stream, content))

    def _send(self, content: bytes) -> None:
        self.socket.settimeout(30)
        self.socket.sendall(content)

    def _receive(self, size: int) -> bytes:
        content = b""
        while len(content) < size:
            part = self.socket.recv(size - len(content))
            if not part:
                raise ConnectionError
            content += part
        return content


def _framed(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content


def _literal(name: str, value: str) -> bytes:
    """A header field that no table has (RFC 7541, 6.2.2)."""
    return b"\x00" + _string(name) + _string(value)


def _string(text: str) -> bytes:
    assert len(text) < 127
    return bytes([len(text)]) + text.encode("ascii")
