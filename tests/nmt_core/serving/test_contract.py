"""The contract: its style, its past, its generated code, and a client in another language."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nmt_core.commands import serve
from nmt_core.serving.client.client import NmtClient
from nmt_core.v1 import nmt_pb2 as pb

ROOT = Path(__file__).parents[3]
PROTO = ROOT / "proto"
NODE = ROOT / "examples" / "node-client"


def buf(*arguments: str, cwd: Path = PROTO) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "buf"
    if not program.exists():
        pytest.skip("buf is not here (pip install buf-bin)")
    return subprocess.run([str(program), *arguments], capture_output=True, text=True, cwd=cwd)


def test_the_contract_is_in_good_style_and_documented() -> None:
    found = buf("lint")
    assert found.returncode == 0, found.stdout


def test_the_contract_breaks_no_client_of_the_released_one() -> None:
    found = buf("breaking", "--against", "released.binpb")
    assert found.returncode == 0, found.stdout


def test_generated_code_is_that_of_the_contract() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "generate_proto.py"), "--check"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_what_http_needs_is_made_of_the_contract(tmp_path: Path) -> None:
    buf("--version")  # or skip
    shutil.copytree(PROTO, tmp_path / "proto")
    (tmp_path / "scripts").mkdir()
    program = shutil.copy(ROOT / "scripts" / "generate_http.py", tmp_path / "scripts")

    def check() -> tuple[int, str]:
        found = subprocess.run([sys.executable, program, "--check"], capture_output=True, text=True)
        return found.returncode, found.stderr

    assert check() == (0, "")
    path = tmp_path / "proto" / "nmt_core" / "v1" / "nmt.proto"
    path.write_text(path.read_text().replace("// Translates sentences.", "// Translates."))
    assert check() == (1, "proto/openapi.yaml is not what scripts/generate_http.py makes; run it\n")
    rules = tmp_path / "proto" / "http.yaml"
    rules.write_text(rules.read_text().replace("{model}:score", "{model}/score"))
    assert check() == (1, "proto/http.binpb is not what scripts/generate_http.py makes; run it\n")


def test_every_method_but_streams_is_answered_over_http() -> None:
    rules = yaml.safe_load((PROTO / "http.yaml").read_text())["http"]["rules"]
    methods = pb.DESCRIPTOR.services_by_name["NmtService"].methods
    unary = [method.full_name for method in methods if not method.client_streaming]
    assert sorted(rule["selector"] for rule in rules) == sorted(unary)


def node_modules() -> Path:
    """Where the two packages of the Node client are: beside it, or where NODE_PATH says."""
    for place in [str(NODE / "node_modules"), *os.environ.get("NODE_PATH", "").split(os.pathsep)]:
        if place and (Path(place) / "@grpc" / "grpc-js").is_dir():
            return Path(place)
    pytest.skip("the packages of the Node client are not here (npm install in examples/node-client)")


def run_node(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    if shutil.which("node") is None:
        pytest.skip("Node.js is not here")
    environment = {**os.environ, "NODE_PATH": str(node_modules())}
    command = ["node", str(NODE / "client.js"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, input=text, env=environment, timeout=60)


def test_a_client_in_another_language_gets_the_same_translations(server) -> None:
    lines = ["un " * (number % 5) + "deux" for number in range(200)]
    found = run_node(server.address, text="".join(line + "\n" for line in lines))
    assert found.returncode == 0, found.stderr
    expected = [one.translations[0].text for one in NmtClient(server.address).translate(lines, raw=True)]
    assert found.stdout.split("\n") == [*expected, ""]


def test_a_client_in_another_language_is_told_what_is_wrong(server) -> None:
    found = run_node(server.address, "nosuch", text="un\n")
    assert (found.returncode, found.stdout) == (2, "")
    assert "there is no model 'nosuch'" in found.stderr
    found = run_node(server.address, text="un\n" + "x" * 100 + "\n")
    assert "line 2: the text has 100 characters; at most 60" in found.stderr


def test_every_method_option_reason_and_metric_is_in_the_documentation() -> None:
    text = (ROOT / "docs" / "serving.md").read_text()
    parser = argparse.ArgumentParser(add_help=False)
    serve.add_arguments(parser)
    options = [action.option_strings[0] for action in parser._actions]
    missing = [option for option in options if option not in text and not option.startswith("--tls-")]
    assert not missing
    for method in pb.DESCRIPTOR.services_by_name["NmtService"].methods_by_name:
        assert f"`{method}`" in text, method
    sources = "".join(path.read_text() for path in (ROOT / "nmt_core" / "serving").glob("*.py"))
    for reason in re.findall(r'reason="([A-Z_]+)"', sources):
        assert reason in text, reason
    for metric in re.findall(r'"((?:nmt|grpc_server)_[a-z_]+)"', sources):
        assert metric in text or metric == "nmt_core", metric
