"""What each extra is for: without it the others work, and one line says what to install."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from nmt_core.base.errors import what_is_missing
from nmt_core.jobs.run import open_workers
from nmt_core.jobs.workers import Worker
from tests.architecture.test_imports_and_help import ROOT
from tests.without import BASE, NEURAL, program, run_without

GRPC = ("grpc", "grpc_health", "google")
LISTS = "0 ||| a b ||| A= -1 B= 0 ||| 0\n0 ||| b a ||| A= -2 B= 2 ||| 0\n"


def extras() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


def test_lists_are_tuned_and_reranked_without_pytorch_and_grpc(tmp_path: Path) -> None:
    (tmp_path / "list").write_text(LISTS)
    (tmp_path / "reference").write_text("b a\n")
    files = ["--nbest", str(tmp_path / "list")]
    missing = (*NEURAL, *GRPC)
    weights = ["--reference", str(tmp_path / "reference"), "--output", str(tmp_path / "weights"), "--tuner", "runs=1"]
    found = run_without(missing, program("smt_bridge"), "tune", *files, *weights)
    assert found.returncode == 0, found.stderr
    found = run_without(missing, program("smt_bridge"), "rerank", *files, "--weights", str(tmp_path / "weights"))
    assert found.stdout == "b a\n", found.stderr


@pytest.mark.parametrize(
    ("missing", "package", "arguments", "extra"),
    [
        (NEURAL, "nmt_core", ["decode", "--model", "m"], "'hybridmt[nmt]'"),
        (NEURAL, "nmt_core", ["score", "--model", "m", "-"], "'hybridmt[nmt]'"),
        (GRPC, "nmt_core", ["client", "health"], "'hybridmt[client]'"),
        (BASE, "nmt_core", ["prepare", "corpus", "--target", "x", "--output", "y"], "hybridmt"),
        (BASE, "smt_bridge", ["tune", "--nbest", "-", "--reference", "r"], "hybridmt"),
    ],
    ids=["decode", "score", "client", "prepare", "tune"],
)
def test_what_is_missing_is_one_line(missing: tuple[str, ...], package: str, arguments: list[str], extra: str) -> None:
    found = run_without(missing, program(package), *arguments)
    assert found.returncode == 2, found.stderr
    assert re.fullmatch(rf"[^\n]*pip install {re.escape(extra)}\n", found.stderr), found.stderr


@pytest.mark.parametrize(
    ("missing", "options", "extra"),
    [
        (NEURAL, ["--scorer", ".", "--jobs", "2"], "'hybridmt[nmt]'"),
        (NEURAL, ["--scorer", "."], "'hybridmt[nmt]'"),
        (GRPC, ["--scorer", "grpc:h:1", "--jobs", "2"], "'hybridmt[client]'"),
    ],
)
def test_it_is_said_before_workers_are_started(
    tmp_path: Path, missing: tuple[str, ...], options: list[str], extra: str
) -> None:
    (tmp_path / "table").write_text("a ||| b ||| 0.5\n")
    (tmp_path / "model").mkdir()
    found = run_without(
        missing,
        program("smt_bridge"),
        "rescore-table",
        str(tmp_path / "table"),
        "--output",
        str(tmp_path / "new"),
        *options,
    )
    assert found.returncode == 2, found.stderr
    assert re.fullmatch(rf"[^\n]*pip install {re.escape(extra)}\n", found.stderr), found.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_worker_says_it_too(jobs: int) -> None:
    """Of a package that only the worker needs."""
    with pytest.raises(ModuleNotFoundError) as caught, open_workers(_opened_without_torch, jobs) as workers:
        workers.ask(1)()
    assert what_is_missing(caught.value) == "this needs PyTorch: pip install 'hybridmt[nmt]'"


def _opened_without_torch(number: int) -> Worker:
    raise ModuleNotFoundError("No module named 'torch'", name="torch")


def test_python_says_what_to_install() -> None:
    found = run_without(NEURAL, "import nmt_core\nnmt_core.load_model")
    assert found.stderr.endswith("this needs PyTorch: pip install 'hybridmt[nmt]'\n")


MODULES = {"grpc": "grpcio", "grpc_health": "grpcio-health-checking", "google": "protobuf", "sklearn": "scikit-learn"}
MODULES |= {"prometheus_client": "prometheus-client", "yaml": "pyyaml"}
ASKED = ["torch", "safetensors", *MODULES, "cryptography", "ctranslate2", "transformers", "kenlm", "ray"]


@pytest.mark.parametrize(
    "module", [*ASKED, "numpy", "pydantic", "isal", "backports", "sacrebleu", "sacremoses", "tqdm"]
)
def test_the_extra_that_a_line_names_brings_the_module(module: str) -> None:
    line = what_is_missing(ModuleNotFoundError(name=f"{module}.part"))
    plain = f"this needs {module}, which hybridmt without its dependencies lacks: pip install hybridmt"
    found = re.fullmatch(r"this needs [\w' -]+: pip install 'hybridmt\[(\w+)\]'", line)
    assert found or line == plain
    brought = extras()[found[1] if found else ""]
    assert any(re.match(rf"{MODULES.get(module, module)}\b", name) for name in brought)
    assert what_is_missing(ModuleNotFoundError(name="nmt_core")) == ""


def test_what_compiles_on_installation_is_asked_for_by_name() -> None:
    given = extras()
    everything = {word for name in re.findall(r"[a-z]+", given["all"][0].partition("[")[2]) for word in given[name]}
    assert not any("kenlm" in word for word in everything)
    assert any("kenlm" in word for word in given["lm"])
    assert any("lm" in re.findall(r"[a-z]+", word.partition("[")[2]) for word in given["dev"])


def test_the_client_brings_neither_pytorch_nor_numpy() -> None:
    given = extras()
    names = {re.split(r"[<>=;\[ ]", word)[0] for word in given["client"]}
    assert names == {"googleapis-common-protos", "grpcio", "grpcio-health-checking", "protobuf"}
    assert not any(word.startswith("torch") for word in given[""])
