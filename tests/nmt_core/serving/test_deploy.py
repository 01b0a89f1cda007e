"""Container and service files: their syntax, and that the options in them exist."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from nmt_core.commands import client, serve
from nmt_core.commands.main import main
from nmt_core.serving.limits import read_limits
from tests.nmt_core.serving.test_security import Authority

DEPLOY = Path(__file__).parents[3] / "scripts" / "deploy"


def parsed(command: ModuleType, words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in text.split("\n") if line.strip()]


def test_the_dockerfile_is_made_of_instructions() -> None:
    known = {"ARG", "FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE"}
    known |= {"STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    names = [name for name, _ in instructions()]
    assert set(names) <= known
    assert names.count("FROM") == 2
    last = len(names) - 1 - names[::-1].index("FROM")
    assert "USER" in names[last:]
    assert dict(instructions())["USER"].strip() not in ("root", "0")
    root = DEPLOY.parents[1]
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from="):
            assert all((root / source).exists() for source in rest.split()[:-1])


def test_what_from_names_is_known_before_the_first_stage() -> None:
    """FROM sees no ARG of a stage: there its variable is empty, and Docker refuses the file.

    Podman and buildah leave out a stage that only a variable names.
    """
    given, stages, images = set(), set(), set()
    for name, rest in instructions():
        if name == "ARG" and not stages:
            given.add(rest.partition("=")[0])
        if name == "FROM":
            assert set(re.findall(r"\$\{?(\w+)", rest)) <= given
            stages.add(rest.split()[-1])
            images.add(rest.split()[0])
    default = dict(rest.split("=", 1) for name, rest in instructions() if name == "ARG")
    assert not {default[name.strip("${}")] for name in images if name.startswith("$")} & stages


def test_every_variant_has_its_pytorch() -> None:
    found = [rest for name, rest in instructions() if name == "ARG" and rest.startswith("VARIANT=")]
    assert found == ["VARIANT=cpu"]
    commands = " ".join(rest for name, rest in instructions() if name == "RUN")
    (path,) = re.findall(r"/requirements/(\S*\$\{VARIANT\}\S*)", commands)
    for variant in ("cpu", "cuda"):
        text = (DEPLOY / "requirements" / path.replace("${VARIANT}", variant)).read_text()
        assert re.search(r"^torch==", text, flags=re.MULTILINE)


def test_the_options_in_the_dockerfile_exist() -> None:
    found = dict(instructions())
    command = yaml.safe_load(found["ENTRYPOINT"]) + yaml.safe_load(found["CMD"])
    args = parsed(serve, command[2:])
    assert (args.host, args.metrics_port, args.insecure) == ("0.0.0.0", 9464, False)
    assert args.tls_cert
    assert args.tls_key
    limits, _, check = found["HEALTHCHECK"].partition("CMD")
    health = parsed(client, yaml.safe_load(check)[2:])
    (most,) = re.findall(r"--timeout=(\d+)s", limits)
    assert health.timeout < int(most)
    assert (health.what, Path(health.tls_ca).parent) == ("health", Path(args.tls_cert).parent)


def test_the_image_s_server_passes_the_image_s_health_check(start_here, models: Path, tmp_path: Path, capsys) -> None:
    """With folders of here in place of those that are mounted."""
    authority = Authority(tmp_path, "ca")
    Path(authority.path).rename(tmp_path / "ca.crt")
    Path(authority.issue("tls")[0]).rename(tmp_path / "tls.crt")
    here = {"/models": str(models), "0.0.0.0": "127.0.0.1", "9464": "0"}
    found = {name: yaml.safe_load(rest.rpartition("CMD ")[2] or rest) for name, rest in instructions()[-3:]}
    command = found["ENTRYPOINT"][2:] + found["CMD"]
    server = start_here(*(here.get(word, word.replace("/tls/", f"{tmp_path}/")) for word in command))
    here = {"localhost:50551": f"localhost:{server.address.rpartition(':')[2]}"}
    health = [here.get(word, word.replace("/tls/", f"{tmp_path}/")) for word in found["HEALTHCHECK"][1:]]
    assert main(health) == 0, capsys.readouterr().err
    assert main([word for word in health if not word.endswith(("--tls-ca", "ca.crt"))]) == 1


def pinned(path: Path) -> dict[str, str]:
    """The version of every package."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)", path.read_text(), flags=re.MULTILINE))


def name_of(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def test_the_image_has_the_tested_packages_by_their_hashes() -> None:
    tested = {name_of(name): version for name, version in pinned(DEPLOY.parents[1] / "constraints.txt").items()}
    files = {path.name: path.read_text() for path in (DEPLOY / "requirements").iterdir()}
    assert set(files) == {"build.txt", "serve.txt", "torch-cpu.txt", "torch-cuda.txt"}
    files["torch-cpu.txt"] = files["torch-cpu.txt"].removeprefix("--index-url https://download.pytorch.org/whl/cpu\n")
    for name, text in files.items():
        for entry in re.split(r"\n(?=\S)", text.strip()):
            assert re.fullmatch(r"\S+==[^\n]+(\n    --hash=sha256:[0-9a-f]{64}( \\)?)+", entry), (name, entry)
        for package, version in pinned(DEPLOY / "requirements" / name).items():
            assert version.partition("+")[0] == tested.get(name_of(package), version.partition("+")[0]), package
    served = {name_of(name) for name in pinned(DEPLOY / "requirements" / "serve.txt")}
    project = tomllib.loads((DEPLOY.parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for requirement in [*project["dependencies"], *extras["client"], *extras["serve"], *extras["nmt"]]:
        wanted = re.split(r"[<>=\[;]", requirement)[0]
        assert name_of(wanted) in served | {"torch", "hybridmt"}, requirement


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    text = (DEPLOY / "hybridmt.service").read_text()
    start = next(line for line in text.split("\n") if line.startswith("ExecStart="))
    words = shlex.split(start.partition("nmt-core serve ")[2].replace("$OPTIONS", ""))
    assert parsed(serve, words).access_log
    for setting in ("CapabilityBoundingSet=", "SystemCallFilter=@system-service", "MemoryMax=", "ExecReload="):
        assert f"\n{setting}" in text
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    (tmp_path / "hybridmt.service").write_text(text)
    command = ["systemd-analyze", "verify", str(tmp_path / "hybridmt.service")]
    found = subprocess.run(command, capture_output=True, text=True)
    complaints = [line for line in found.stderr.split("\n") if "hybridmt.service" in line]
    assert not complaints


def test_the_unit_is_little_exposed() -> None:
    program = shutil.which("systemd-analyze") or pytest.skip("systemd-analyze is not here")
    command = [program, "security", "--offline=true", "--threshold=30", "--no-pager"]  # tenths; since systemd 250
    found = subprocess.run([*command, str(DEPLOY / "hybridmt.service")], capture_output=True, text=True)
    if "--offline" in found.stderr:
        pytest.skip("systemd-analyze is too old")
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_kubernetes_example_is_consistent() -> None:
    service, deployment, _budget, policy = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    assert service["spec"]["clusterIP"] == "None"
    pod = deployment["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    (container,) = pod["spec"]["containers"]
    ports = {port["name"] for port in container["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    args = parsed(serve, container["args"])
    limits = read_limits(None, args.limit)
    assert limits.drain + limits.grace < pod["spec"]["terminationGracePeriodSeconds"]
    assert re.search(r"@sha256:[0-9a-f]{64}$", container["image"])
    liveness = container["livenessProbe"]
    assert liveness["periodSeconds"] * liveness["failureThreshold"] > limits.drain + limits.grace
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        words = container[probe]["exec"]["command"]
        assert parsed(client, words[2:]).timeout < container[probe]["timeoutSeconds"]
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]} <= ports
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes


def test_health_is_an_exit_code(server, capsys) -> None:
    assert main(["client", "health", "--address", server.address]) == 0
    assert main(["client", "health", "--address", f"{server.address},127.0.0.1:1", "--timeout", "5"]) == 1
    assert "127.0.0.1:1: " in capsys.readouterr().err
