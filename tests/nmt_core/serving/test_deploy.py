"""Container and service files: their syntax, and that the options in them exist."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from nmt_core.commands import client, serve
from nmt_core.commands.main import main

DEPLOY = Path(__file__).parents[3] / "scripts" / "deploy"


def parsed_serve(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    return parser.parse_args(words)


def parsed_client(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    client.add_arguments(parser)
    return parser.parse_args(words)


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in text.split("\n") if line.strip()]


def test_the_dockerfile_is_made_of_instructions() -> None:
    known = {"ARG", "FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE"}
    known |= {"STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    names = [name for name, _ in instructions()]
    assert set(names) <= known
    assert names.count("FROM") == 3
    last = len(names) - 1 - names[::-1].index("FROM")
    assert "USER" in names[last:]
    assert dict(instructions())["USER"].strip() not in ("root", "0")
    root = DEPLOY.parents[1]
    for name, rest in instructions():
        if name == "COPY":
            assert all((root / source).exists() for source in rest.split()[:-1])


def test_the_options_in_the_dockerfile_exist() -> None:
    found = dict(instructions())
    command = yaml.safe_load(found["ENTRYPOINT"]) + yaml.safe_load(found["CMD"])
    args = parsed_serve(command[2:])
    assert (args.host, args.metrics_port, args.insecure) == ("0.0.0.0", 9464, True)
    health = yaml.safe_load(found["HEALTHCHECK"].partition("CMD")[2])
    assert parsed_client(health[2:]).what == "health"


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    text = (DEPLOY / "hybridmt.service").read_text()
    start = next(line for line in text.split("\n") if line.startswith("ExecStart="))
    words = shlex.split(start.partition("nmt-core serve ")[2].replace("$OPTIONS", ""))
    assert parsed_serve(words).access_log == "-"
    for setting in ("CapabilityBoundingSet=", "SystemCallFilter=@system-service", "MemoryMax=", "ExecReload="):
        assert f"\n{setting}" in text
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    (tmp_path / "hybridmt.service").write_text(text)
    command = ["systemd-analyze", "verify", str(tmp_path / "hybridmt.service")]
    found = subprocess.run(command, capture_output=True, text=True)
    complaints = [line for line in found.stderr.split("\n") if "hybridmt.service" in line]
    assert not complaints


def test_the_kubernetes_example_is_consistent() -> None:
    service, deployment, _budget, policy = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    assert service["spec"]["clusterIP"] == "None"
    pod = deployment["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    (container,) = pod["spec"]["containers"]
    ports = {port["name"] for port in container["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    args = parsed_serve(container["args"])
    assert args.drain_delay + args.grace < pod["spec"]["terminationGracePeriodSeconds"]
    for probe in ("startupProbe", "readinessProbe"):
        words = container[probe]["exec"]["command"]
        assert parsed_client(words[2:]).timeout < container[probe]["timeoutSeconds"]
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]} <= ports
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes


def test_health_is_an_exit_code(server, capsys) -> None:
    assert main(["client", "health", "--address", server.address]) == 0
    assert main(["client", "health", "--address", f"{server.address},127.0.0.1:1", "--timeout", "5"]) == 1
    assert "127.0.0.1:1: " in capsys.readouterr().err
