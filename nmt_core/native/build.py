"""Compiles the kernels, on installation (``hatch_build.py``) or by ``python -m nmt_core.native.build``.

Needs nothing but the standard library.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

HERE = Path(__file__).parent
LIBRARY = HERE / "libkernels.so"
_SOURCES = ("kernels.cpp", "normalizer.cpp", "products.cpp")
_HEADERS = ("tiles.h", "vectors.h")
_FLAGS = "-std=c++17 -O3 -shared -fPIC -fno-exceptions -fno-rtti -fno-math-errno -Wno-psabi -static-libgcc -s"
_SECONDS = 600.0


def source_crc() -> int:
    """Which source a library was made of."""
    return zlib.crc32(b"".join((HERE / name).read_bytes() for name in (*_SOURCES, *_HEADERS))) & 0x7FFFFFFF


def build(library: Path = LIBRARY) -> str:
    """Make the library; what is in the way of that, or nothing."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc":
        return "they are written for Linux with glibc on x86-64"
    compiler = os.environ.get("CXX") or "g++"
    if shutil.which(compiler) is None:
        return f"there is no {compiler}"
    temporary = library.with_name(f".{library.name}.{os.getpid()}")
    crc = f"-DSOURCE_CRC={source_crc()}"
    command = [compiler, *_FLAGS.split(), crc, *(str(HERE / name) for name in _SOURCES), "-o", str(temporary)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        if done.returncode:
            return f"{compiler} fails: {done.stderr.strip()[:500]}"
        temporary.replace(library)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{compiler} cannot be run ({error})"
    finally:
        temporary.unlink(missing_ok=True)
    return ""


if __name__ == "__main__":
    found = build()
    sys.exit(f"nmt_core.native: {found}" if found else 0)
