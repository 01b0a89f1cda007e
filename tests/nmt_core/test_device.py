"""Devices and precisions, as the command line names them."""

from __future__ import annotations

import multiprocessing
import platform
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from nmt_core import device as devices
from nmt_core.base.errors import ConfigError
from nmt_core.device import (
    allow_tf32,
    choose_device,
    choose_dtype,
    has_bfloat16,
    name_arithmetic,
    name_precision,
    usual_batch_tokens,
)
from tests.pretended_gpu import PretendedGPU

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def restored() -> Iterator[None]:
    """The precision of products is a setting of the process."""
    before = torch.backends.cuda.matmul.fp32_precision
    yield
    torch.backends.cuda.matmul.fp32_precision = before


def test_what_is_not_there_is_refused() -> None:
    for name in ("gpu", "meta", "mps", "xpu", "vulkan", "cpu:0", "cuda:", "cuda:-1", "cuda:1,cuda:2", ""):
        with pytest.raises(ConfigError, match=f"^--device {name}: expected auto, cpu, cuda or cuda:N$"):
            choose_device(name)
    with pytest.raises(ConfigError, match=r"^--dtype float8: expected float32, float64, bfloat16, tf32$"):
        choose_dtype("float8", CPU)
    with pytest.raises(ConfigError, match=r"^tf32 is for GPUs; on a CPU take float32, or bfloat16 for speed$"):
        choose_dtype("tf32", CPU)
    found = [choose_dtype(name, CPU) for name in ("float32", "float64", "bfloat16")]
    assert found == [torch.float32, torch.float64, torch.bfloat16]


@pytest.mark.parametrize(("count", "missing"), [(0, ["cuda", "cuda:0"]), (2, ["cuda:2", "cuda:999"])])
def test_a_gpu_is_one_that_is_there(count: int, missing: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    assert (choose_device("auto"), choose_device("cpu")) == (GPU if count else CPU, CPU)
    for name in missing:
        with pytest.raises(ConfigError, match=f"^--device {name}: this machine has {count} GPUs that torch can use$"):
            choose_device(name)
    for number in range(count):
        assert choose_device(f"cuda:{number}") == torch.device("cuda", number)


def test_the_arithmetic_of_a_gpu_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"NVIDIA {device} GPU")
    found = name_arithmetic(SimpleNamespace(is_cuda=True, device="H200"))  # type: ignore[arg-type]
    assert found == f"device:cuda|gpu:NVIDIA_H200_GPU|torch:{torch.__version__}"


def test_the_usual_batch_follows_from_the_whole_memory_of_the_smallest_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not from what is free, which is another number when a job goes on."""
    assert usual_batch_tokens(CPU) == 1000
    memory = {0: 80 << 30, 1: 20 << 30, 2: 1 << 30}
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda number: SimpleNamespace(total_memory=memory[number])
    )
    for count, name, tokens in ((1, "cuda", 20480), (2, "cuda", 5120), (2, "cuda:0", 20480), (3, "cuda", 1000)):
        monkeypatch.setattr(torch.cuda, "device_count", lambda count=count: count)
        assert usual_batch_tokens(choose_device(name)) == tokens


def test_the_name_of_a_precision_says_tf32_where_products_are_made_so(restored: None) -> None:
    with PretendedGPU():
        there, double_there = torch.zeros(1).to(GPU), torch.zeros(1, dtype=torch.float64).to(GPU)
        assert name_precision(there) == "float32"
        allow_tf32(GPU)
        assert choose_dtype("tf32", GPU) == torch.float32
        assert name_precision(there) == "tf32"
        assert name_precision(double_there) == "float64"
        assert name_precision(torch.zeros(1)) == "float32"


@pytest.mark.parametrize("there", [False, True])
def test_bfloat16_without_instructions_is_said_to_be_slow_once(
    there: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    devices._say_that_it_is_slow.cache_clear()
    monkeypatch.setattr(devices, "has_bfloat16", lambda: there)
    for name, device in (("float32", CPU), ("bfloat16", GPU), ("bfloat16", CPU), ("bfloat16", CPU)):
        choose_dtype(name, device)
    problem = "bfloat16: this processor has no instructions for it (AVX512-BF16, AMX); float32 is faster here\n"
    assert capsys.readouterr().err == problem * (not there)
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: "the program")
    for name in ("SpawnProcess-2", "SpawnProcess-1"):  # of several processes the first one says it
        devices._say_that_it_is_slow.cache_clear()
        monkeypatch.setattr(multiprocessing, "current_process", lambda name=name: SimpleNamespace(name=name))
        choose_dtype("bfloat16", CPU)
        assert capsys.readouterr().err == problem * (not there and name.endswith("1"))


def test_which_processors_have_instructions_for_bfloat16() -> None:
    if platform.machine() != "x86_64":
        pytest.skip("compares with what Linux says of an x86 processor")
    flags = Path("/proc/cpuinfo").read_text().split()
    assert has_bfloat16() == ("avx512_bf16" in flags or "amx_bf16" in flags)
