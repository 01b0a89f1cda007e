"""What a release is made of: workflows that name what is there, pinned actions, one version, a complete sdist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def jobs(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())["jobs"]
    return found


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(path).values() for step in job.get("steps", [])]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned(path: Path) -> None:
    used = [step["uses"] for step in steps(path) if "uses" in step]
    assert used
    assert not [name for name in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", name)]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_token_stays_in_a_checkout(path: Path) -> None:
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_an_image_with_a_list_of_its_parts_is_built_by_buildx() -> None:
    """Docker's own builder writes no attestations."""
    for job in (job for path in WORKFLOWS for job in jobs(path).values()):
        used = [step.get("uses", "").partition("@")[0] for step in job.get("steps", [])]
        if "docker/build-push-action" in used:
            assert "docker/setup-buildx-action" in used[: used.index("docker/build-push-action")]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_workflows_run_is_there(path: Path) -> None:
    for step in steps(path):
        for script in re.findall(r"(?<![\w/])scripts/(?!deploy/Dockerfile)[\w/]+", step.get("run", "")):
            assert os.access(ROOT / script, os.X_OK), script
        for target in re.findall(r"^make (\w+)", step.get("run", "")):
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for job in jobs(path).values():
        needed = job.get("needs", [])
        assert set([needed] if isinstance(needed, str) else needed) <= jobs(path).keys()
        assert job.get("uses", "./").startswith("./")
        assert (ROOT / job.get("uses", "./")).exists()


def test_tests_run_on_every_version_that_is_claimed() -> None:
    (matrix,) = [job["strategy"]["matrix"] for job in jobs(WORKFLOWS[0]).values() if "strategy" in job]
    claimed = [name.rpartition(" ")[2] for name in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", name)]
    assert matrix["python"] == claimed


def test_only_publishing_may_write() -> None:
    for path in WORKFLOWS:
        assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}
    (release,) = [jobs(path) for path in WORKFLOWS if path.name == "release.yml"]
    assert [name for name, job in release.items() if job.get("permissions", {}).get("id-token") == "write"] == [
        "publish"
    ]
    assert release["publish"]["environment"] == "pypi"


def test_the_sdist_has_every_file_of_the_repository() -> None:
    """Or its tests could not run."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a repository")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    tops = {name.split("/")[0] for name in listed if name} - {".gitignore", "pyproject.toml"}
    assert {top for top in tops if f"/{top}" not in included and not top.endswith(".md")} == set()
    assert all((ROOT / pattern.lstrip("/")).exists() for pattern in included if "*" not in pattern)


def test_the_version_is_written_once() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)


@pytest.mark.parametrize(("tag", "said"), [("v9.9.9", "the tag is v9.9.9, the version"), ("", "usage")])
def test_a_release_of_another_version_is_refused(tag: str, said: str) -> None:
    found = subprocess.run([ROOT / "scripts" / "release" / "notes", tag], capture_output=True, text=True)
    assert found.returncode != 0
    assert said in found.stderr


def test_notes_are_those_of_the_version(tmp_path: Path) -> None:
    for name in ("scripts/release", "nmt_core"):
        (tmp_path / name).mkdir(parents=True)
    script = tmp_path / "scripts" / "release" / "notes"
    script.write_bytes((ROOT / "scripts" / "release" / "notes").read_bytes())
    (tmp_path / "nmt_core" / "version.py").write_text('VERSION = "1.2.0"\n')
    changes = "# Changelog\n\n## 1.2.0 {}\n\n### Added\n- a thing\n\n## 1.1.0 (2026-01-01)\n\n- older\n"
    (tmp_path / "CHANGELOG.md").write_text(changes.format("(2026-12-01)"))
    found = subprocess.run(["bash", script, "v1.2.0"], capture_output=True, text=True)
    assert found.stdout.split("\n") == ["### Added", "- a thing", ""], found.stderr
    (tmp_path / "CHANGELOG.md").write_text(changes.format("(unreleased)"))
    found = subprocess.run(["bash", script, "v1.2.0"], capture_output=True, text=True)
    assert found.returncode == 1
    assert "unreleased" in found.stderr


def test_results_older_than_the_product_are_refused(tmp_path: Path) -> None:
    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    def commit(content: str) -> None:
        (tmp_path / "nmt_core" / "model.py").write_text(content)
        run("git", "add", "nmt_core")
        run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-m", content)

    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    for name in ("nmt_core", "benchmarks"):
        (tmp_path / name).mkdir()
    run("git", "init")
    commit("1")
    assert "measured.json is missing" in run("scripts/release/results").stderr
    record = ("scripts/results/record", "runs/pairs.json")
    assert run(*record, "false").returncode == 1 and not (tmp_path / "runs").exists()
    assert run(*record, "echo", "| a |").returncode == 0
    assert run("scripts/results/page", "benchmarks/measured", "runs/pairs.json").returncode == 0
    assert "## pairs\n\n```\necho | a |\n```\n\n| a |\n" in (tmp_path / "benchmarks" / "measured.md").read_text()
    assert run("scripts/release/results").returncode == 0
    (tmp_path / "nmt_core" / "model.py").write_text("2")
    assert "nmt_core/model.py has changes" in run(*record, "echo").stderr
    commit("2")
    assert "are older than the product's last change" in run("scripts/release/results").stderr


def test_checks_before_a_commit_are_those_of_make() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    entries = [hook["entry"] for hook in hooks]
    for tool in ("ruff check", "mypy", "lint-imports"):
        assert any(f".venv/bin/{tool}" in entry for entry in entries)
        assert f"$(BIN)/{tool}" in (ROOT / "Makefile").read_text()


def test_generated_code_is_left_as_it_is_where_pre_commit_names_its_files() -> None:
    settings = PROJECT["tool"]["ruff"]
    assert "nmt_core/v1" in settings["extend-exclude"] and settings["force-exclude"] is True
