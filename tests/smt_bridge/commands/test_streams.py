"""Pipes, devices and full disks at both ends of the commands, with one process and with several."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from smt_bridge.commands.main import main

LINES = "".join(f"{n} ||| x y{rank} ||| LM0= -{rank} ||| -1\n" for n in range(250) for rank in range(3))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "nbest").write_text(LINES)
    (tmp_path / "source").write_text("".join(f"a{number} b\n" for number in range(250)))
    (tmp_path / "weights").write_text("LM0= 1\n")
    return tmp_path


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = f"{sys.executable} -m smt_bridge"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.run(
        ["bash", "-c", command.replace("BRIDGE", program)],
        cwd=folder, capture_output=True, text=True, check=False, env=environment, timeout=120,
    )  # fmt: skip


ADD = "add-features --feature wordcount --feature lengthratio --quiet"
MERGE = "add-features --nbest a=nbest --nbest b=nbest --source source --max-words 9999 --quiet"


@pytest.mark.parametrize(
    "how",
    [
        "< source BRIDGE ADD --source - --nbest nbest --output out",
        "BRIDGE ADD --source <(gzip < source) --nbest <(gzip < nbest) --output out",
        "< nbest BRIDGE ADD --source source --nbest - > out",
        "BRIDGE ADD --source source --nbest nbest --output /dev/stdout | cat > out",
        "BRIDGE ADD --source source --nbest nbest --output >(cat > out); wait; sleep 0.5",
    ],
)
def test_pipes_make_the_bytes_of_files(files: Path, how: str) -> None:
    assert main([*ADD.split(), "--source", str(files / "source"), "--nbest", str(files / "nbest"),
                 "--output", str(files / "expected"), "--jobs", "1"]) == 0  # fmt: skip
    done = shell(how.replace("ADD", f"{ADD} --jobs 2"), files)
    assert done.returncode == 0, done.stderr
    assert (files / "out").read_bytes() == (files / "expected").read_bytes()


@pytest.mark.parametrize(
    "command",
    [
        "BRIDGE rerank --nbest nbest --weights weights > /dev/full",
        f"BRIDGE {ADD} --source source --nbest nbest --output /dev/full --jobs 2",
    ],
)
def test_a_full_output_is_one_line(files: Path, command: str) -> None:
    done = shell(command, files)
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if "cannot be written (No space left on device)" in line]
    assert len(lines) == 1
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


@pytest.mark.parametrize(
    ("command", "unbuffered"), [("rerank --nbest nbest --weights weights", ""), (MERGE, "PYTHONUNBUFFERED=1")]
)
def test_an_output_that_takes_a_part_of_what_it_is_given_is_one_line(
    files: Path, command: str, unbuffered: str
) -> None:
    """A limit of 8 KiB does what a disk does that becomes full."""
    (files / "nbest").write_text(f"0 ||| {'x ' * 5000}||| LM0= 1 ||| 1\n")
    done = shell(f"ulimit -f 8; env -u PYTHONUNBUFFERED {unbuffered} BRIDGE {command} > out", files)
    assert (done.returncode, (files / "out").stat().st_size) == (2, 8 << 10)
    assert "standard output: cannot be written (File too large)" in done.stderr and "Traceback" not in done.stderr


def test_a_reader_that_goes_ends_the_command_quietly(files: Path) -> None:
    (files / "nbest").write_text("".join(f"{n} ||| {'x ' * 500}||| LM0= 1 ||| 1\n" for n in range(2000)))
    done = shell("BRIDGE rerank --nbest nbest --weights weights | head -1 > out; echo ${PIPESTATUS[0]}", files)
    assert done.stdout == "141\n"
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "BRIDGE rerank --nbest nbest --weights weights",
        f"BRIDGE {ADD} --source source --nbest nbest",
    ],
)
def test_a_closed_output_is_one_line(files: Path, command: str) -> None:
    done = shell(f"{command} >&-", files)
    assert done.returncode == 2
    assert "standard output: is closed" in done.stderr and "Traceback" not in done.stderr


def test_messages_that_nobody_hears_do_no_harm_and_do_not_go_into_the_output(files: Path) -> None:
    command = f"BRIDGE {ADD.removesuffix('--quiet')} --source source --nbest nbest --jobs"
    assert shell(f"{command} 1 > expected", files).returncode == 0
    for closed in ("1 > out 2>&-", "2 --output out 2>&-", "1 --output out <&- >&- 2>&-"):
        assert shell(f"{command} {closed}", files).returncode == 0
        assert (files / "out").read_bytes() == (files / "expected").read_bytes()
        (files / "out").unlink()


def test_no_file_gets_the_number_of_a_closed_stream(files: Path) -> None:
    program = (
        "import os, sys; from nmt_core.commands.start import open_standard_streams as start; start();"
        "out = open('out', 'wb'); os.write(2, b'of a library'); os.system('echo of a program >&2');"
        "out.write(b'%d %s' % (out.fileno() > 2, str(sys.stdout).encode()))"
    )
    assert shell(f'{sys.executable} -c "{program}" <&- >&- 2>&-', files).returncode == 0
    assert (files / "out").read_bytes() == b"1 None"
