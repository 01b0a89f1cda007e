"""The library is used where it was made of this source and this processor has the instructions."""

from __future__ import annotations

import ctypes
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from nmt_core.base.errors import ConfigError
from nmt_core.native import build, library


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("HYBRIDMT_KERNELS", raising=False)
    library.load.cache_clear()
    yield
    library.load.cache_clear()


@pytest.fixture
def path(compiled: ctypes.CDLL) -> Path:
    return Path(compiled._name)


def test_it_is_loaded_unless_it_is_left_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = library.load(path)
    assert (found is not None) == (ctypes.CDLL(str(path)).hybridmt_supported() > 0)
    library.load.cache_clear()
    monkeypatch.setenv("HYBRIDMT_KERNELS", "none")
    assert library.load(path) is None
    library.load.cache_clear()
    monkeypatch.setenv("HYBRIDMT_KERNELS", "sse")
    with pytest.raises(ConfigError, match=r"^HYBRIDMT_KERNELS=sse: expected none, or nothing$"):
        library.load(path)


def test_it_is_not_used_where_the_processor_lacks_the_instructions(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_of_this_source", lambda _: SimpleNamespace(hybridmt_supported=lambda: 0))
    assert library.load(path) is None


@pytest.mark.parametrize("content", [None, b"", b"\x7fELF"])
def test_without_one_pytorch_does_the_work(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "libkernels.so").write_bytes(content)
    assert library.load(tmp_path / "libkernels.so") is None


def test_one_of_another_source_is_not_used_with_a_message(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(library, "source_crc", lambda: build.source_crc() ^ 1)
    assert library.load(path) is None and library.load(path) is None
    problem = "was compiled from another source and is not used; compile it: python -m nmt_core.native.build"
    assert capsys.readouterr().err == f"{path}: {problem}\n"
    library.load.cache_clear()
    monkeypatch.setattr(library.multiprocessing, "parent_process", lambda: "one that has said it")
    assert library.load(path) is None and capsys.readouterr().err == ""


def test_what_is_in_the_way_of_compiling_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("they are written for another processor")
    for compiler, problem in (
        ("no-such-compiler", "there is no no-such-compiler"),
        (shutil.which("false"), "/false fails: "),
    ):
        monkeypatch.setenv("CXX", str(compiler))
        assert problem in build.build(tmp_path / "libkernels.so")
    refused = tmp_path.parent / f"{tmp_path.name}.compiler"  # no format that can be run
    refused.write_bytes(b"\x7fELF")
    refused.chmod(0o755)
    monkeypatch.setenv("CXX", str(refused))
    assert build.build(tmp_path / "libkernels.so").startswith(f"{refused} cannot be run (")
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert build.build(tmp_path / "libkernels.so") == "they are written for Linux with glibc on x86-64"
