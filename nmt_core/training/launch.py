"""How the processes of a run come together: those that the first one starts, or those that ``torchrun`` has started.

Where the first one starts them, it waits for them, ends them, and reports why one ended early.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from nmt_core.base.errors import NmtError
from nmt_core.base.messages import say
from nmt_core.processes import begin_process, interrupts_held_back
from nmt_core.training.ranks import LostProcess, Ranks, joined

_INTERFACE = "GLOO_SOCKET_IFNAME"
_PATIENCE = 20.0  # seconds until a process that waits for one that has ended should have noticed
_REMEDY = "--resume goes on from the last saved state"
Follow = Callable[[Ranks], object]


class _Follower(NamedTuple):
    process: BaseProcess
    words: Connection  # empty when it is ready, or what went wrong


def ranks_of_torchrun() -> Ranks | None:
    """What ``torchrun`` says this process is; None where it has not started it."""
    try:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        rank, size, local, here = (int(os.environ[name]) for name in names)
    except (KeyError, ValueError):
        return None
    return Ranks(rank, size, local, one_machine=here == size)


def is_restarted() -> bool:
    """Whether ``torchrun`` has started the processes again, since one was lost."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"


@contextlib.contextmanager
def started(processes: int, follow: Follow, *, cuda: bool) -> Iterator[Ranks]:
    """This process is the first of ``processes``; each of the others calls ``follow``, which must be picklable.

    Raises NmtError, which says what happened, where one of them ends before its time.
    """
    with tempfile.TemporaryDirectory(prefix="hybridmt-") as folder:
        meeting = f"file://{folder}/meeting"
        _stay_on_this_machine()
        followers: list[_Follower] = []
        over = threading.Event()
        try:
            with interrupts_held_back():
                followers += [
                    _begin(Ranks(rank, processes, rank), follow, cuda, meeting) for rank in range(1, processes)
                ]
            for follower in followers:
                _wait_until_ready(follower)
            threading.Thread(target=_end_with_the_others, args=(followers, over), daemon=True).start()
            with joined(Ranks(0, processes), cuda=cuda, meeting=meeting) as ranks:
                yield ranks
            for follower in followers:
                follower.process.join(_PATIENCE)
        except LostProcess as error:
            raise NmtError(_cause(followers) or str(error)) from error
        finally:
            over.set()
            for follower in followers:
                follower.process.kill()
                follower.process.join()


def _stay_on_this_machine() -> None:
    """Processes of one machine talk over its loopback interface, whatever its name resolves to."""
    names = [name for _, name in socket.if_nameindex() if name.rstrip("0") == "lo"]
    if names:
        os.environ.setdefault(_INTERFACE, names[0])


def _begin(ranks: Ranks, follow: Follow, cuda: bool, meeting: str) -> _Follower:
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_follow, args=(ranks, follow, cuda, meeting, theirs), daemon=True)
    process.start()
    theirs.close()
    return _Follower(process, ours)


def _follow(ranks: Ranks, follow: Follow, cuda: bool, meeting: str, words: Connection) -> None:
    """What another process than the first does."""
    begin_process()
    try:
        words.send("")
        with joined(ranks, cuda=cuda, meeting=meeting) as ranks:
            follow(ranks)
        os._exit(0)  # at once: the first process waits
    except LostProcess:
        os._exit(1)  # it is not the cause, and has nothing to add
    except (NmtError, OSError) as error:
        with contextlib.suppress(OSError):  # the first process was killed, and nobody is left to be told
            words.send(str(error))
        raise SystemExit(1) from None


def _wait_until_ready(follower: _Follower) -> None:
    wait([follower.words, follower.process.sentinel])
    try:
        follower.words.recv()
    except EOFError:
        follower.process.join(_PATIENCE)
        raise LostProcess("another process of this run did not start") from None


def _end_with_the_others(followers: list[_Follower], over: threading.Event) -> None:
    """A process that waits on a GPU does not notice that another has ended: it is ended here."""
    running = {follower.process.sentinel: follower.process for follower in followers}
    while running:
        for sentinel in wait(list(running)):
            process = running.pop(sentinel)  # type: ignore[arg-type]  # of sentinels, which are numbers, wait returns some
            process.join()
            if process.exitcode and not over.wait(_PATIENCE):
                say(_cause(followers) or f"another process of this run has ended; {_REMEDY}")
                os._exit(2)


def _cause(followers: list[_Follower]) -> str:
    """What ended a process before its time: its own words, or a signal."""
    for number, follower in enumerate(followers, start=2):
        code, place = _exit_code(follower.process), f"process {number} of {len(followers) + 1}"
        words = ""
        with contextlib.suppress(EOFError, OSError):
            while follower.words.poll():
                words = follower.words.recv()
        if words:
            return f"{place}: {words}"
        if code is not None and code < 0:
            return f"{place} was ended by signal {-code} (out of memory?); {_REMEDY}"
    return ""


def _exit_code(process: BaseProcess) -> int | None:
    """How it ended, or None if it goes on. Another thread that waits for it may know this a moment earlier."""
    patience = time.monotonic() + 1.0
    while process.exitcode is None and time.monotonic() < patience:
        process.join(0.05)
        time.sleep(0.005)  # ``join`` returns at once where the system has told the other thread alone
    return process.exitcode
