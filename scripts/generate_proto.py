#!/usr/bin/env python
"""Make nmt_core/v1/*_pb2*.py from proto/, or check with --check that they are current.

Needs grpcio-tools 1.76.0, in an environment of its own: code made by it runs on every protobuf from
6.33.5 to 7, while code made by newer tools asks for the newest runtime.

    python -m venv /path/to/tools && /path/to/tools/bin/pip install grpcio-tools==1.76.0
    /path/to/tools/bin/python scripts/generate_proto.py

--check needs nothing: every generated file carries the digest of its .proto in the first line.
--release also writes proto/released.binpb, the contract that later versions are compared with by
`buf breaking proto --against proto/released.binpb`: do that when a version is published, never before.
"""

from __future__ import annotations

import hashlib
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto" / "nmt_core" / "v1" / "nmt.proto"
GENERATED = [ROOT / "nmt_core" / "v1" / name for name in ("nmt_pb2.py", "nmt_pb2.pyi", "nmt_pb2_grpc.py")]
RELEASED = ROOT / "proto" / "released.binpb"
TOOLS = "1.76.0"


def header() -> str:
    """The first line of a file that was made from the .proto as it is now."""
    return f"# nmt.proto sha256 {hashlib.sha256(PROTO.read_bytes()).hexdigest()}\n"


def check() -> int:
    """1 and a line on stderr if a generated file is missing or was made from another .proto."""
    for path in GENERATED:
        if not path.is_file() or not path.read_text(encoding="utf-8").startswith(header()):
            name = path.relative_to(ROOT)
            print(f"{name} was not made from this {PROTO.name}; run scripts/generate_proto.py", file=sys.stderr)
            return 1
    return 0


def generate(*, release: bool) -> int:
    """Run the compiler and mark what it wrote."""
    try:
        found = metadata.version("grpcio-tools")
        import grpc_tools
        from grpc_tools import protoc
    except ImportError:
        found = "none"
    if found != TOOLS:
        print(f"grpcio-tools {TOOLS} is needed, found: {found}\n\n{__doc__}", file=sys.stderr)
        return 1
    outputs = [f"--{kind}_out={ROOT}" for kind in ("python", "pyi", "grpc_python")]
    if release:
        outputs += [f"--descriptor_set_out={RELEASED}", "--include_imports", "--include_source_info"]
    includes = [f"-I{folder}" for folder in (ROOT / "proto", Path(grpc_tools.__file__).parent / "_proto")]
    code: int = protoc.main(["protoc", *includes, *outputs, str(PROTO)])
    if code == 0:
        for path in GENERATED:
            path.write_text(header() + path.read_text(encoding="utf-8"), encoding="utf-8")
    return code


def main() -> int:
    """Generate or check."""
    if sys.argv[1:] == ["--check"]:
        return check()
    if sys.argv[1:] not in ([], ["--release"]):
        print(__doc__, file=sys.stderr)
        return 1
    return generate(release="--release" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
