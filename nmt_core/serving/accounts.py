"""What a client holds of what is limited: its calls and streams, and the memory of its requests."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

from nmt_core.serving.errors import busy, invalid
from nmt_core.serving.limits import REQUEST_COPIES


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
