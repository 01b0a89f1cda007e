"""The pretended GPU is as strict as one, and knows where a program waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.pretended_gpu import PretendedGPU

WAITING: dict[str, Callable[[Tensor], object]] = {
    "item": lambda numbers: numbers.sum().item(),
    "bool": lambda numbers: bool(numbers.sum()),
    "if": lambda numbers: 1 if (numbers > 1).any() else 0,
    "float": lambda numbers: float(numbers.sum()),
    "int": lambda numbers: int(numbers.sum()),
    "index": lambda numbers: "abcdefg"[numbers.sum()],
    "place": lambda numbers: numbers[numbers.sum() - 4],
    "tolist": lambda numbers: numbers.tolist(),
    "cpu": lambda numbers: numbers.cpu(),
    "to": lambda numbers: numbers.to("cpu", non_blocking=True),
    "copy": lambda numbers: torch.empty(4, dtype=torch.int64).copy_(numbers),
    "mask": lambda numbers: numbers[numbers > 1],
    "masked tensor": lambda numbers: numbers.__setitem__(numbers > 1, numbers[:2].clone()),
    "masked_select": lambda numbers: numbers.masked_select(numbers > 1),
    "nonzero": lambda numbers: numbers.nonzero(),
    "where": lambda numbers: torch.where(numbers > 1),
    "unique": lambda numbers: numbers.unique(),
    "unique_consecutive": lambda numbers: torch.unique_consecutive(numbers),
    "repeat_interleave": lambda numbers: numbers.repeat_interleave(numbers),
    "bincount": lambda numbers: numbers.bincount(),
    "equal": lambda numbers: torch.equal(numbers, numbers),
    "tensor": lambda numbers: torch.tensor([1, 2], device="cuda"),
    "copy to it": lambda numbers: torch.arange(4).to("cuda"),
    "copy into it": lambda numbers: numbers.copy_(torch.arange(4)),
}
NOT_WAITING: dict[str, Callable[[Tensor], object]] = {
    "arithmetic": lambda numbers: (numbers + 1) * 2 + torch.tensor(3),
    "slices": lambda numbers: numbers[1:3][0],
    "gather": lambda numbers: numbers[numbers],
    "masked number": lambda numbers: numbers.__setitem__(numbers > 1, 0),
    "where": lambda numbers: torch.where(numbers > 1, numbers, 0),
    "repeat_interleave": lambda numbers: numbers.repeat_interleave(numbers, output_size=6),
    "repeat_interleave by a number": lambda numbers: numbers.repeat_interleave(2, dim=0),
    "factories": lambda numbers: torch.full((3,), 2.0, device="cuda") + torch.zeros(3, device=numbers.device),
    "queued copy": lambda numbers: torch.empty(4, pin_memory=True).copy_(numbers, non_blocking=True),
    "to": lambda numbers: numbers.to("cuda").to(torch.float64).to(numbers),
}


@pytest.fixture
def gpu() -> Iterator[PretendedGPU]:
    with PretendedGPU() as pretended:
        yield pretended


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", WAITING)
def test_a_wait_is_counted_with_its_line(name: str, mode: Callable[[], torch.no_grad], gpu: PretendedGPU) -> None:
    with mode():
        numbers = torch.arange(4, device="cuda")
        WAITING[name](numbers)
    (wait,) = gpu.seen
    assert gpu.waits == 1
    assert wait.line.startswith("tests/test_pretended_gpu.py:")


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", NOT_WAITING)
def test_what_does_not_wait_is_not_counted(name: str, mode: Callable[[], torch.no_grad], gpu: PretendedGPU) -> None:
    with mode():
        NOT_WAITING[name](torch.arange(4, device="cuda"))
    assert not gpu.seen


def test_copies_from_memory_that_is_not_pinned_are_known(gpu: PretendedGPU) -> None:
    there, here = torch.zeros(3, device="cuda"), torch.zeros(3)
    pinned, made_pinned = here.pin_memory(), torch.empty(3, pin_memory=True)
    assert pinned.is_pinned()
    assert not here.is_pinned()
    for source in (pinned, pinned[1:], torch.from_numpy(pinned.numpy()), made_pinned):
        source.to("cuda", non_blocking=True)
        there[: len(source)].copy_(source, non_blocking=True)
    assert not gpu.seen
    here.to("cuda", non_blocking=True)
    torch.from_numpy(np.zeros(3, dtype=np.float32)).to(torch.device("cuda:0"), torch.float64, True)
    assert [wait.reason for wait in gpu.seen] == ["pageable", "pageable"]
    assert gpu.waits == 0
    pinned.to("cuda")  # the program waits until it is there
    assert gpu.waits == 1


def test_gradients_are_the_cpus(gpu: PretendedGPU) -> None:
    generator = torch.Generator().manual_seed(1)
    table, factors = (torch.randn(5, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    words, found = torch.tensor([[0, 2], [2, 4]]), []
    for device in ("cpu", "cuda"):
        there = table.to(device).requires_grad_()
        bags = F.embedding_bag(words.to(device), there, mode="sum")
        (bags[1:] @ (there * factors.to(device))[words.to(device)[0]].t()).tanh().sum().backward()
        assert there.grad is not None
        found.append(there.grad.cpu())
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-12)


def test_a_tensor_left_on_the_cpu_is_an_error(gpu: PretendedGPU) -> None:
    there_N, here_N = torch.arange(3.0).to("cuda"), torch.arange(3.0)
    assert (there_N + 1.0).cpu().tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="two devices"):
        there_N + here_N
    with pytest.raises(RuntimeError, match="two devices"):
        there_N[here_N.long()]
