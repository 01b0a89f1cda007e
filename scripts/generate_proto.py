#!/usr/bin/env python
"""Make nmt_core/v1/*_pb2*.py from proto/, or check with --check that they are current.

Needs grpcio-tools 1.76.0, in an environment of its own: code made by it runs on every protobuf from
6.33.5 to 7, while code made by newer tools asks for the newest runtime.

    python -m venv /path/to/tools && /path/to/tools/bin/pip install grpcio-tools==1.76.0
    /path/to/tools/bin/python scripts/generate_proto.py

--check needs nothing: the digest of the .proto stands in nmt_core/v1/__init__.py.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto" / "nmt_core" / "v1" / "nmt.proto"
PACKAGE = ROOT / "nmt_core" / "v1" / "__init__.py"


def digest() -> str:
    """The digest of the .proto as it is now."""
    return hashlib.sha256(PROTO.read_bytes()).hexdigest()


def main() -> int:
    """Generate or check."""
    if sys.argv[1:] == ["--check"]:
        if digest() in PACKAGE.read_text():
            return 0
        print(f"{PROTO.relative_to(ROOT)} was changed; run scripts/generate_proto.py", file=sys.stderr)
        return 1
    from grpc_tools import protoc

    outputs = [f"--{kind}_out={ROOT}" for kind in ("python", "pyi", "grpc_python")]
    code: int = protoc.main(["protoc", f"-I{ROOT / 'proto'}", *outputs, str(PROTO)])
    if code == 0:
        docstring = '"""Generated from proto/nmt_core/v1 by scripts/generate_proto.py; do not edit."""'
        PACKAGE.write_text(f'{docstring}\n\nPROTO_SHA256 = "{digest()}"\n')
    return code


if __name__ == "__main__":
    sys.exit(main())
