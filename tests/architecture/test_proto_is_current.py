"""The generated code is that of the .proto, runs on the oldest protobuf we allow, and keeps to the style guide."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nmt_core.v1 import nmt_pb2

ROOT = Path(__file__).parents[2]
PROTO = ROOT / "proto" / "nmt_core" / "v1" / "nmt.proto"


def check(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "scripts" / "generate_proto.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A tree of its own with everything that takes part in generation."""
    for folder in ("proto", "nmt_core/v1", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_generated_code_is_current() -> None:
    found = check(ROOT)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("name", ["nmt_pb2.py", "nmt_pb2.pyi", "nmt_pb2_grpc.py"])
def test_a_changed_proto_or_file_is_noticed(copy: Path, name: str) -> None:
    assert check(copy).returncode == 0
    generated = copy / "nmt_core" / "v1" / name
    text = generated.read_text()
    generated.write_text(text.partition("\n")[2])  # as the compiler writes it when it is called by hand
    assert name in check(copy).stderr
    generated.write_text(text)
    proto = copy / "proto" / "nmt_core" / "v1" / "nmt.proto"
    proto.write_text(proto.read_text() + "\n// changed\n")
    found = check(copy)
    assert found.returncode == 1
    assert "run scripts/generate_proto.py" in found.stderr


def test_the_descriptor_has_what_the_proto_says() -> None:
    text = PROTO.read_text()
    assert sorted(nmt_pb2.DESCRIPTOR.message_types_by_name) == sorted(re.findall(r"^message (\w+)", text, re.M))
    service = nmt_pb2.DESCRIPTOR.services_by_name["NmtService"]
    assert [method.name for method in service.methods] == re.findall(r"^  rpc (\w+)", text, re.M)
    text = re.sub(r"^ *enum \w+ \{.*?^ *\}", "", text, flags=re.MULTILINE | re.DOTALL)
    fields = {f"{name} = {number}" for name, number in re.findall(r"(\w+) = (\d+);", text)}
    described = {
        f"{field.name} = {field.number}"
        for message in nmt_pb2.DESCRIPTOR.message_types_by_name.values()
        for field in message.fields
    }
    assert described == fields


def test_generated_code_runs_on_the_oldest_protobuf_and_grpc_that_are_allowed() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    for name, pattern, requirement in [
        ("nmt_pb2.py", r"Protobuf Python Version: ([\d.]+)", r"protobuf>=([\d.]+)"),
        ("nmt_pb2_grpc.py", r"GRPC_GENERATED_VERSION = '([\d.]+)'", r"grpcio>=([\d.]+)"),
    ]:
        text = (ROOT / "nmt_core" / "v1" / name).read_text()
        made, allowed = (re.search(*pair) for pair in [(pattern, text), (requirement, project)])
        assert made
        assert allowed
        made_for, oldest = (tuple(map(int, match[1].split("."))) for match in (made, allowed))
        assert made_for[: len(oldest)] <= oldest


def test_the_contract_keeps_to_the_style_guide() -> None:
    buf = shutil.which("buf", path=str(Path(sys.executable).parent)) or shutil.which("buf")
    if buf is None:
        pytest.skip("buf is not installed (pip install buf-bin)")
    rules = '{"version": "v2", "lint": {"use": ["STANDARD", "COMMENTS"]}}'
    found = subprocess.run([buf, "lint", "--config", rules], cwd=ROOT / "proto", capture_output=True, text=True)
    assert (found.returncode, found.stdout + found.stderr) == (0, "")
