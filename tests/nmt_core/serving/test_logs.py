"""Logs that cannot be written: no call notices, and the server ends as always."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nmt_core.serving.client.client import NmtClient
from nmt_core.serving.telemetry import Call, LogQueue, Metrics, OneLine
from tests.nmt_core.serving.conftest import ROOT
from tests.nmt_core.serving.in_process import one_pair, serving
from tests.nmt_core.serving.support import eventually, until


@pytest.mark.parametrize("place", ["a full disk", "a pipe without a reader"])
async def test_lines_that_cannot_be_written_are_counted_and_nothing_else(place: str) -> None:
    dropped: list[int] = []
    read, full = os.pipe()
    os.close(read)
    if place == "a full disk":
        os.close(full)
        full = os.open("/dev/full", os.O_WRONLY)
    log = LogQueue(full, lambda: dropped.append(1))
    async with serving(log=log) as running:
        for _ in range(5):
            assert (await running.stub.Score(one_pair())).scores[0].log_prob < 0
        await until(lambda: len(dropped) == 5)
    log.close()
    os.close(full)


def test_logs_that_nobody_reads_stop_nobody(folder: str) -> None:
    read, write = os.pipe()
    command = [sys.executable, "-m", "nmt_core", "serve", "--model", f"m={folder}", "--device", "cpu", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen([*command, "--access-log"], stdout=write, stderr=write, env=environment)
    try:
        content = b""
        while b"ready on " not in content:
            content += os.read(read, 1000)
        address = content.decode().rpartition("ready on ")[2].strip()
        with NmtClient(address, timeout=60) as client, ThreadPoolExecutor(16) as callers:
            answers = callers.map(lambda _: client.models(), range(800))  # lines of some 150 bytes; a pipe holds 64 KiB
            assert all(len(answer) == 1 for answer in answers)
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    finally:
        server.kill()
        os.close(write)
        os.close(read)


def test_the_record_of_a_call_is_one_object() -> None:
    call = Call(
        "Score", "ipv4:10.0.0.1:4711", "job \n7", user="\u00e9", certificate="c", model="m", items=3, requests=2
    )
    line = call.to_json(1.23456789)
    found = json.loads(line)
    when = datetime.fromisoformat(found.pop("time"))
    assert abs((datetime.now(UTC) - when).total_seconds()) < 60 and when.utcoffset() == timedelta(0)
    facts = {"method": "Score", "peer": "ipv4:10.0.0.1:4711", "request_id": "job \n7", "user": "\u00e9"}
    facts |= {"certificate": "c", "model": "m", "code": "OK"}
    assert found == {**facts, "items": 3, "requests": 2, "seconds": 1.234568}
    assert line.isascii() and "\n" not in line
    fewer = json.loads(Call("Score", "p", "i", code="INTERNAL", reason="INTERNAL").to_json(0.5))
    assert [*fewer] == ["time", "method", "peer", "request_id", "code", "reason", "seconds"]


def test_messages_have_the_name_of_the_program_and_move_no_cursor() -> None:
    record = logging.makeLogRecord({"msg": "\x1b[2J%s\nb", "args": ("a\r",)})
    assert OneLine("a%b serve").format(record) == "a%b serve: \\x1b[2Ja\\r\nb"


@pytest.mark.parametrize(("tokens", "room", "fill"), [(30, 60, 0.5), (90, 60, 1.0), (5, 0, 1.0)])
def test_the_used_share_of_a_batch_is_at_most_all_of_it(tokens: int, room: int, fill: float) -> None:
    metrics = Metrics()
    metrics.iterated("cpu", "score", tokens=tokens, room=room, seconds=0.25)
    labels = {"device": "cpu", "kind": "score"}
    assert metrics.registry.get_sample_value("nmt_batch_fill_sum", labels) == fill
    assert metrics.registry.get_sample_value("nmt_turn_seconds_sum", labels) == 0.25


def test_lines_are_written_in_order(tmp_path: Path) -> None:
    with open(tmp_path / "log", "wb") as stream:
        log = LogQueue(stream.fileno(), print)
        for number in range(200):
            log.write(json.dumps(number))
        log.close()
    assert (tmp_path / "log").read_text() == "".join(f"{number}\n" for number in range(200))


def test_clients_who_go_before_they_are_told_fill_no_log(tmp_path: Path) -> None:
    class ExecuteBatchError(Exception):
        """As the library's."""

    stream = open(tmp_path / "log", "wb")  # noqa: SIM115 (closed below)
    log, logger = LogQueue(stream.fileno(), print), logging.getLogger("test of the log")
    logger.addHandler(log)
    for error in (ExecuteBatchError("gone"), ValueError("ours")):
        try:
            raise error
        except Exception:
            logger.exception("it failed")
    logger.removeHandler(log)
    log.close()
    stream.close()
    content = (tmp_path / "log").read_text()
    assert "gone" not in content
    assert "ValueError: ours" in content


def test_more_lines_than_are_kept_are_dropped() -> None:
    read, write = os.pipe()
    dropped = []
    log = LogQueue(write, lambda: dropped.append(1))
    for _ in range(15_000):
        log.write("x" * 100)
    log.close()
    assert dropped
    os.close(read)
    eventually(lambda: not log._records.unfinished_tasks)
    os.close(write)
