"""``scripts/deploy/smoke`` with a stand-in for docker: what it calls exists, every fault is told, nothing stays."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nmt_core.commands.main import PROGRAM
from nmt_core.commands.program import parser_of
from tests.docs.commands import Command, commands

SMOKE = Path(__file__).parents[3] / "scripts" / "deploy" / "smoke"
NEEDED = [name for name in ("bash", "openssl", "tar") if shutil.which(name) is None]
pytestmark = pytest.mark.skipif(bool(NEEDED), reason=f"not here: {NEEDED}")

STAND_IN = """#!{python} -IS
# Answers as docker does for an image in which one thing is wrong; keeps what it is asked.
import io, json, os, pathlib, sys, tarfile
fault, here, words = os.environ["FAULT"], pathlib.Path(__file__).parent, sys.argv[1:]
with open(here / "calls", "a") as calls:
    calls.write(json.dumps(words) + "\\n")
container = here / "container"
text, code = "", 0
if words[0] == "run" and "--entrypoint" in words:
    code = 1 if fault == "model" else 0
    archive = tarfile.open(fileobj=sys.stdout.buffer, mode="w|")
    archive.addfile(tarfile.TarInfo("model/config.yaml"), io.BytesIO())
    archive.close()
elif words[0] == "run" and "--detach" in words:
    container.write_text(words[words.index("--name") + 1])
elif words[0] == "run":
    code = 0 if fault == "open" else 2
    sys.stderr.write("something else" if fault == "message" else "give --tls-cert and --tls-key, or --insecure")
elif words[0] in ("inspect", "logs", "exec", "rm", "stop") and not container.exists():
    code = 1
elif words[0] == "inspect" and len(words) == 4:
    what = words[2]
    check = "" if fault == "check" else "CMD\\nnmt-core\\nclient\\nhealth\\n--tls-ca\\n/tls/ca.crt\\n\\n"
    running = "false" if fault == "ended" else "true"
    exits = {{"ended": "3", "killed": "137"}}.get(fault, "0")
    text = check if "Healthcheck" in what else running if "Running" in what else exits
elif words[0] == "logs":
    sys.stderr.write("the server's last words")
elif words[0] == "rm":
    container.unlink()
elif words[0] == "exec" and "id" in words:
    text = "0" if fault == "root" else "10001"
elif words[0] == "exec" and "translate" in words:
    text = "" if fault == "translation" else "deux\\n"
elif words[0] == "exec" and "score" in words:
    text = "nan\\n" if fault == "score" else "-2.772589\\n"
elif words[0] == "exec" and "health" in words:
    encrypted = "--tls-ca" in words
    code = int(fault == "ended") if encrypted else {{"plain": 0, "usage": 2}}.get(fault, 1)
sys.stdout.write(text)
sys.exit(code)
"""


@pytest.fixture
def smoke(tmp_path: Path):
    """Runs the script for an image with a fault; returns the process that ended and the calls."""
    docker = tmp_path / "docker"
    docker.write_text(STAND_IN.format(python=sys.executable))
    docker.chmod(0o755)
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def run(fault: str) -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
        ended = subprocess.run(
            [SMOKE, docker, "hybridmt:cpu"],
            env=os.environ | {"FAULT": fault, "TMPDIR": str(temporary)},
            capture_output=True,
            text=True,
        )
        assert not (tmp_path / "container").exists()
        assert not list(temporary.iterdir())
        return ended, [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]

    return run


def of_program(calls: list[list[str]]) -> list[argparse.Namespace]:
    """What ``nmt-core`` is asked for in a container, as it understands it."""
    found = []
    for words in calls:
        if "nmt-core" in words:
            found.append(Command("nmt-core", tuple(words[words.index("nmt-core") + 1 :])))
        elif words[0] == "run" and "--entrypoint" not in words:
            found.append(Command("nmt-core", ("serve", *words[words.index("hybridmt:cpu") + 1 :])))
        else:
            found += [command for word in words for command in commands(word)]
    return [parser_of(PROGRAM).parse_args(list(command.words)) for command in found]


def test_a_good_image_passes_and_what_is_called_exists(smoke) -> None:
    ended, calls = smoke("none")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "smoke: hybridmt:cpu serves\n", "")
    asked = of_program(calls)
    assert [args.command for args in asked] == ["init", "serve", "serve", *["client"] * 4]
    assert [args.what for args in asked[3:]] == ["health", "translate", "score", "health"]
    assert [bool(args.tls_ca) for args in asked[3:]] == [True, True, True, False]
    for words in calls:
        if words[0] == "run":
            assert "--read-only" in words and words[words.index("--tmpfs") + 1] == "/tmp"
            mounts = [word for word in words if word.endswith(":ro")]
            assert "--entrypoint" in words or [mount.split(":")[1] for mount in mounts] == ["/models", "/tls"]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("model", ""),
        ("open", "it serves without encryption"),
        ("message", "without encryption it says: something else"),
        ("check", "it has no health check"),
        ("ended", "it has ended with exit code 3"),
        ("root", "it runs as root"),
        ("translation", "the translation of a line is: "),
        ("score", "the score of a pair is: nan"),
        ("plain", "a client without encryption ends with exit code 0"),
        ("usage", "a client without encryption ends with exit code 2"),
        ("killed", "SIGTERM ends it with exit code 137"),
    ],
)
def test_a_fault_is_told_with_the_server_s_log(smoke, fault: str, said: str) -> None:
    ended, calls = smoke(fault)
    assert ended.returncode != 0
    assert said in ended.stderr
    started = any("--detach" in words for words in calls)
    assert ("the server's last words" in ended.stderr) == started


@pytest.mark.parametrize("words", [[], ["docker"]])
def test_usage(words: list[str]) -> None:
    ended = subprocess.run([SMOKE, *words], capture_output=True, text=True)
    assert ended.returncode != 0
    assert "usage: scripts/deploy/smoke docker|podman IMAGE" in ended.stderr
