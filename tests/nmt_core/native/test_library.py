"""The library is used where it was made of this source and this processor has the instructions."""

from __future__ import annotations

import ctypes
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

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
    with pytest.raises(ConfigError, match="HYBRIDMT_KERNELS=sse: expected none"):
        library.load(path)


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
    said = capsys.readouterr().err
    assert said.startswith(f"{path}: was compiled from another source") and said.count("\n") == 1
    assert "python -m nmt_core.native.build" in said


def test_what_is_in_the_way_of_compiling_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("they are written for another processor")
    for compiler, problem in (("no-such-compiler", "there is no no-such-compiler"), (shutil.which("false"), "fails")):
        monkeypatch.setenv("CXX", str(compiler))
        assert problem in build.build(tmp_path / "libkernels.so")
    assert not list(tmp_path.iterdir())
