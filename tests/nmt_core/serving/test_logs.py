"""Logs that cannot be written: no call notices, and the server ends as always."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nmt_core.base.errors import InputError
from nmt_core.commands.main import main
from nmt_core.serving.client.client import NmtClient
from nmt_core.serving.telemetry import LogQueue
from tests.nmt_core.serving.conftest import ROOT
from tests.nmt_core.serving.in_process import one_pair, serving
from tests.nmt_core.serving.support import eventually, until


async def test_a_full_disk_is_counted_and_nothing_else() -> None:
    dropped: list[int] = []
    log = LogQueue("/dev/full", lambda: dropped.append(1))
    async with serving(log=log) as running:
        for _ in range(5):
            assert (await running.stub.Score(one_pair())).scores[0].log_prob < 0
        await until(lambda: len(dropped) == 5)
    log.close()


@pytest.mark.parametrize("reader", ["gone", "asleep"])
def test_standard_error_without_a_reader_stops_nobody(folder: str, tmp_path: Path, reader: str) -> None:
    """A pipe that is full, and one that nobody reads any more."""
    read, write = os.pipe()
    command = [sys.executable, "-m", "nmt_core", "serve", "--model", f"m={folder}", "--device", "cpu", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen([*command, "--access-log", "-"], stderr=write, env=environment)
    try:
        content = b""
        while b"ready on " not in content:
            content += os.read(read, 1000)
        address = content.decode().rpartition("ready on ")[2].strip()
        if reader == "gone":
            os.close(read)
        with NmtClient(address, timeout=60) as client, ThreadPoolExecutor(16) as callers:
            answers = callers.map(lambda _: client.models(), range(800))  # lines of some 150 bytes; a pipe holds 64 KiB
            assert all(len(answer) == 1 for answer in answers)
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0
    finally:
        server.kill()
        os.close(write)
        if reader == "asleep":
            os.close(read)


def test_lines_are_written_in_order_and_to_the_new_file_after_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogQueue(str(path), print)
    for number in range(100):
        log.write(json.dumps(number))
    eventually(path.exists)
    path.rename(tmp_path / "old")
    for number in range(100, 200):
        log.write(json.dumps(number))
    log.close()
    both = (tmp_path / "old").read_text() + path.read_text()
    assert both == "".join(f"{number}\n" for number in range(200))
    assert "199" in path.read_text()


def test_a_log_whose_directory_goes_and_comes_back_is_written_again(tmp_path: Path) -> None:
    dropped: list[int] = []
    place = tmp_path / "place"
    place.mkdir()
    log = LogQueue(str(place / "log"), lambda: dropped.append(1))
    log.write("first")
    eventually((place / "log").exists)
    place.rename(tmp_path / "old")
    log.write("lost")
    eventually(lambda: dropped)
    place.mkdir()
    log.write("again")
    log.close()
    assert (place / "log").read_text() == "again\n"


def test_a_log_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name in ("missing/log", "fifo"):
        with pytest.raises(InputError, match="cannot be written"):
            LogQueue(str(tmp_path / name), print)


def test_clients_who_go_before_they_are_told_fill_no_log(tmp_path: Path) -> None:
    class ExecuteBatchError(Exception):
        """As the library's."""

    log, logger = LogQueue(str(tmp_path / "log"), print), logging.getLogger("test of the log")
    logger.addHandler(log)
    for error in (ExecuteBatchError("gone"), ValueError("ours")):
        try:
            raise error
        except Exception:
            logger.exception("it failed")
    logger.removeHandler(log)
    log.close()
    content = (tmp_path / "log").read_text()
    assert "gone" not in content
    assert "ValueError: ours" in content


def test_more_lines_than_are_kept_are_dropped(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    dropped = []
    log = LogQueue(str(tmp_path / "fifo"), lambda: dropped.append(1))
    for _ in range(15_000):
        log.write("x" * 100)
    log.close()
    assert dropped
    os.close(reader)


def test_a_server_that_does_not_start_leaves_no_empty_log(tmp_path: Path, folder: str) -> None:
    """Nor does it take away one that was there."""
    path, there = tmp_path / "access", tmp_path / "there"
    there.touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for port, model in (("0", "nowhere"), (str(taken.getsockname()[1]), folder)):
            for log in (path, there):
                command = ["serve", "--device", "cpu", "--model", f"m={model}", "--port", port]
                assert main([*command, "--access-log", str(log)]) == 2
    assert (path.exists(), there.exists()) == (False, True)
