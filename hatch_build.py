"""Compiles the kernels of nmt_core/native where that can be done; elsewhere the wheel is pure Python."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_LIBRARY = "nmt_core/native/libkernels.so"


class CustomBuildHook(BuildHookInterface[Any]):
    """Of wheels, also those of editable installations, which read the package where it lies."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say which systems the wheel is for then."""
        library = Path(self.root, _LIBRARY)
        problem = _builder(self.root).build(library)
        if problem:
            library.unlink(missing_ok=True)
            self.app.display_info(f"without compiled kernels: {problem}")
            return
        build_data["artifacts"].append(f"/{_LIBRARY}")
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-manylinux_2_17_x86_64"  # no newer symbol of glibc is asked for


def _builder(root: str) -> Any:
    """``nmt_core/native/build.py``, without the package around it, whose dependencies are not here."""
    spec = importlib.util.spec_from_file_location("hybridmt_build_kernels", Path(root, "nmt_core/native/build.py"))
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
