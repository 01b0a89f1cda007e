"""What clients have of something that is limited: in all, and each of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from nmt_core.serving.errors import RpcError, busy, invalid
from nmt_core.serving.limits import REQUEST_COPIES


class ClientLimit:
    """Calls, streams or the like: at most ``most`` at once, and ``each`` of one client.

    ``what`` names them in messages, ``reason`` is that of the refusal.
    """

    def __init__(self, what: str, *, most: int, each: int, reason: str) -> None:
        self.what, self.most, self.each, self._reason = what, most, min(each, most), reason
        self.taken = 0
        self._of: dict[str, int] = {}

    @contextlib.contextmanager
    def one(self, client: str) -> Iterator[None]:
        """One more while the block runs. Raises RpcError."""
        if self.taken >= self.most:
            raise self._refusal(f"{self.most} {self.what} are open already")
        if self._of.get(client, 0) >= self.each:
            raise self._refusal(f"{self.each} {self.what} of this client are open already")
        self.taken += 1
        self._of[client] = self._of.get(client, 0) + 1
        try:
            yield
        finally:
            self.taken -= 1
            subtract(self._of, client, 1)

    def _refusal(self, problem: str) -> RpcError:
        return busy(f"{problem}; try again later", reason=self._reason, retry_after=1.0)


class Memory:
    """Bytes that requests may hold: ``most`` in all, and a client at most half of them.

    A request is charged with what it may need before that is there. Requests of streams may have to wait for room
    when they are there already: new ones leave room for their messages. A client of whom messages wait may have more
    only while as much again stays free (Choudhury and Hahne 1998), so that few clients do not fill all of it so.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self._of: dict[str, int] = {}
        self._waiting = 0  # bytes of messages that wait
        self._waiting_of: dict[str, int] = {}

    @property
    def kept(self) -> int:
        """Bytes that requests hold, and messages of those that wait."""
        return self.held + self._waiting

    def take(self, client: str, amount: int, *, before: int, new: bool = False) -> None:
        """More for a request that has ``before`` already. Raises RpcError, a final one if it is more than there is."""
        if before + amount > self.most:
            problem = f"the request needs about {_mib(before + amount)} MiB of memory; at most {_mib(self.most)}"
            raise invalid("", f"{problem}, send several requests or ask for less", reason="TOO_COSTLY")
        mine = self._of.get(client, 0)
        held, others, share = self.held, mine - before, self.most // 2
        if new and self._waiting:
            waiting = self._waiting_of.get(client, 0)
            held, others = held + self._waiting, others + waiting
            if waiting:
                share = min(share, self.most - held - amount)
        if held + amount > self.most or (others and others + before + amount > share):
            problem = f"requests hold {_mib(held)} MiB of memory, and this one needs about {_mib(amount)} more"
            raise busy(f"{problem}; at most {_mib(self.most)}, try again later", reason="MEMORY_FULL", retry_after=1.0)
        self.held += amount
        self._of[client] = mine + amount

    def give(self, client: str, amount: int) -> None:
        """Take it back."""
        self.held -= amount
        subtract(self._of, client, amount)

    def wait(self, client: str, amount: int) -> None:
        """So many bytes more (or less) of requests that wait."""
        self._waiting += amount
        subtract(self._waiting_of, client, -amount)


class Account:
    """The memory of one request of a client; as a block, given back at its end.

    ``messages`` are the bytes of it and of its answer, as far as they are known.
    """

    def __init__(self, memory: Memory, client: str) -> None:
        self._memory, self._client, self.held = memory, client, 0
        self.messages = 0
        self._waiting = 0

    def __enter__(self) -> Account:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def charge_message(self, size: int) -> None:
        """Hold a request of that size while it is handled. Raises RpcError."""
        self.charge(REQUEST_COPIES * size, new=not self._waiting)
        self._wait(0)
        self.messages += size

    def charge(self, amount: int, *, new: bool = False) -> None:
        """Hold so many bytes more. Raises RpcError."""
        self._memory.take(self._client, amount, before=self.held, new=new)
        self.held += amount

    def wait(self, size: int) -> None:
        """Hold nothing but a request of that size, which will be charged again."""
        self.release()
        self._wait(REQUEST_COPIES * size)

    def release(self) -> None:
        """Hold nothing."""
        if self.held:
            self._memory.give(self._client, self.held)
        self.held = self.messages = 0
        self._wait(0)

    def _wait(self, amount: int) -> None:
        if amount != self._waiting:
            self._memory.wait(self._client, amount - self._waiting)
            self._waiting = amount


def subtract(counts: dict[str, int], client: str, amount: int) -> None:
    """Count so many less of a client, who is forgotten when none are left."""
    left = counts.get(client, 0) - amount
    if left:
        counts[client] = left
    else:
        counts.pop(client, None)


def _mib(amount: int) -> int:
    return -(-amount // (1 << 20))
