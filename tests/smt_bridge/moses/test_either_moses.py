"""What must hold with the stand-in and with a real decoder alike (MOSES=/path/of/moses)."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from smt_bridge.moses import process as moses_child
from smt_bridge.moses.process import MosesFailed, MosesOptions, MosesProcess

WORDS = ("ab", "cd", "ef")
MANY = [" ".join(words) for size in (1, 2, 3, 4) for words in itertools.product(WORDS, repeat=size)]


@pytest.fixture
def options(either_moses: str) -> MosesOptions:
    return MosesOptions(program=either_moses, nbest=5, timeout=60.0)


def bests(lists: Sequence[list[bytes] | None]) -> list[str | None]:
    """The words of each list's first hypothesis."""
    return [lines[0].partition(b"|||")[0].decode("latin-1").strip() if lines else None for lines in lists]


def turned(sentence: str) -> str:
    return " ".join(word[::-1] for word in sentence.split())


@pytest.mark.parametrize("threads", [1, 2])
def test_lists_come_complete_and_in_order(options: MosesOptions, threads: int) -> None:
    with MosesProcess(options._replace(threads=threads)) as moses:
        found = moses.translate([line.encode() for line in MANY])
        assert bests(found) == [turned(line) for line in MANY]
        assert all(lines is not None and len(lines) > 1 for lines in found[3:])
        assert bests(moses.translate([b"ab cd"])) == ["ba dc"]
        assert moses.translate([]) == []
        assert moses.restarts == moses.given_up == 0


def test_blank_lines_are_answered_here(options: MosesOptions) -> None:
    with MosesProcess(options) as moses:
        assert bests(moses.translate([b"", b"ab cd", b"  \t "])) == [None, "ba dc", None]


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
def test_one_that_is_killed_or_stopped_between_is_started_again(
    options: MosesOptions, fault: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it had not answered is sent once more, and nothing else."""
    complete = moses_child.MosesChild._complete
    faults = iter([fault])

    def harmed(self: moses_child.MosesChild, found: int, sent: int) -> list[list[bytes]]:
        lists = complete(self, found, sent)
        if lists:
            for number in faults:
                os.killpg(self._process.pid, number)
        return lists

    monkeypatch.setattr(moses_child.MosesChild, "_complete", harmed)
    with MosesProcess(options._replace(timeout=5.0)) as moses:
        assert bests(moses.translate([line.encode() for line in MANY[:30]])) == list(map(turned, MANY[:30]))
        assert (moses.restarts, moses.given_up) == (1, 0)


def test_one_that_never_loads_is_an_error_with_its_last_words(
    options: MosesOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MOSES", "load-fails")
    Path("phrase-table").unlink()
    with MosesProcess(options) as moses, pytest.raises(MosesFailed, match=r"while it loaded: .*phrase.table"):
        moses.translate([b"ab cd"])


def test_it_can_be_stopped_while_somebody_waits(options: MosesOptions) -> None:
    with MosesProcess(options._replace(timeout=600.0)) as moses:
        assert bests(moses.translate([b"ab cd"])) == ["ba dc"]
        os.killpg(moses._child._process.pid, signal.SIGSTOP)  # type: ignore[union-attr]
        threading.Timer(0.3, moses.stop).start()
        with pytest.raises(MosesFailed, match="was stopped"):
            moses.translate([b"ef"])
    found = subprocess.run(["pgrep", "-f", options.program], capture_output=True, check=False)
    assert found.stdout == b""


@pytest.mark.parametrize(
    "harmful",
    [
        b"\x01 ab \x1b[0m \x7f",
        b"ab\r",
        b"caf\xe9 \xff\xfe ab",
        "ab\u2028cd \u3000 ef\u00a0ab".encode(),
        b"\x00",
        b"\x0b",
        b"\x0c \x0b",
        b"ab\x00cd ef",
        b"ab " * 700,
        b"x" * 100_000,
        b"&lt;seg id=&quot;1&quot;&gt; &#124;&#124;&#124; ab &#91;X&#93;",
    ],
)
def test_any_line_has_one_list_and_the_next_line_its_own(options: MosesOptions, harmful: bytes) -> None:
    with MosesProcess(options) as moses:
        found = moses.translate([b"ab", harmful, b"cd ef"])
        assert len(found) == 3 and bests(found)[::2] == ["ba", "dc fe"]
        assert (moses.restarts, moses.given_up) == (0, 0)
