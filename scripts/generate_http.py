#!/usr/bin/env python
"""Make proto/http.binpb and proto/openapi.yaml from proto/, or check with --check that they are current.

http.binpb is a descriptor set for Envoy's gRPC-JSON transcoder (or another gateway): the contract with the rules of
proto/http.yaml as google.api.http options, and the messages in the details of a status. openapi.yaml describes
the same over HTTP for people and for generators of clients; its texts are the comments of nmt.proto.

Needs buf (pip install buf-bin) and the extra 'client'; both are in the extra 'dev'.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from google.api import annotations_pb2, http_pb2
from google.protobuf import descriptor_pb2, json_format
from google.rpc import error_details_pb2, status_pb2

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
DESCRIPTORS, OPENAPI = PROTO / "http.binpb", PROTO / "openapi.yaml"
SERVICE = "nmt_core.v1.NmtService"
_DURATION = ".google.protobuf.Duration"
_MESSAGE, _METHOD, _FIELD, _ENUM, _VALUE, _SYNTAX = (4,), (6, 0, 2), 2, (5,), 2, (12,)
"""Numbers of fields in descriptor.proto, of which the paths of comments are made."""

_PLAIN: dict[str, dict[str, Any]] = {
    "TYPE_DOUBLE": {"type": "number", "format": "double"},
    "TYPE_FLOAT": {"type": "number", "format": "float"},
    "TYPE_UINT32": {"type": "integer", "format": "int64", "minimum": 0, "maximum": 2**32 - 1},
    "TYPE_UINT64": {"type": "string", "format": "uint64", "pattern": "^[0-9]+$"},
    "TYPE_BOOL": {"type": "boolean"},
    "TYPE_STRING": {"type": "string"},
}
"""JSON schemas of plain fields (https://protobuf.dev/programming-guides/json): 64 bits are a string."""

_STATUS = {
    "description": "A google.rpc.Status: why the request as a whole was not answered.",
    "type": "object",
    "properties": {
        "code": {"description": "The number of a google.rpc.Code.", "type": "integer", "format": "int32"},
        "message": {"description": "For people.", "type": "string"},
        "details": {
            "description": "ErrorInfo with a reason for programs; RetryInfo and BadRequest where they help.",
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"@type": {"description": "The message's name as a URL.", "type": "string"}},
                "additionalProperties": True,
            },
        },
    },
}


class Contract:
    """The descriptor of nmt.proto with its comments."""

    def __init__(self, files: descriptor_pb2.FileDescriptorSet) -> None:
        self.file = next(one for one in files.file if one.package == "nmt_core.v1")
        self._comments = {
            tuple(one.path): _paragraphs(one.leading_comments) for one in self.file.source_code_info.location
        }

    def comment(self, *path: int) -> str:
        """The comment above what is at this path."""
        return self._comments[path]

    def schemas(self, names: Iterable[str], without: Mapping[str, str]) -> dict[str, Any]:
        """The JSON schemas of messages and enumerations, and of those in them.

        ``without`` has a field of some messages, which is not in the JSON but in the URL.
        """
        messages = {one.name: number for number, one in enumerate(self.file.message_type)}
        enums = {one.name: number for number, one in enumerate(self.file.enum_type)}
        found: dict[str, Any] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop(0)
            if name in found:
                continue
            if name in enums:
                found[name] = self._enum(enums[name])
                continue
            found[name] = self._message(messages[name], without.get(name))
            fields = self.file.message_type[messages[name]].field
            waiting += [_name(one.type_name) for one in fields if one.type_name not in ("", _DURATION)]
        return found

    def _message(self, number: int, without: str | None) -> dict[str, Any]:
        fields = {
            field.name: {"description": self.comment(*_MESSAGE, number, _FIELD, place), **_of_field(field)}
            for place, field in enumerate(self.file.message_type[number].field)
            if field.name != without
        }
        return {"description": self.comment(*_MESSAGE, number), "type": "object", "properties": fields}

    def _enum(self, number: int) -> dict[str, Any]:
        names = [value.name for value in self.file.enum_type[number].value]
        meanings = [f"{name}: {self.comment(*_ENUM, number, _VALUE, place)}" for place, name in enumerate(names)]
        description = "\n\n".join([self.comment(*_ENUM, number), *meanings])
        return {"description": description, "type": "string", "enum": names}


def _of_field(field: descriptor_pb2.FieldDescriptorProto) -> dict[str, Any]:
    if field.type_name == _DURATION:
        one: dict[str, Any] = {"type": "string", "pattern": "^-?[0-9]+(\\.[0-9]{1,9})?s$"}
    elif field.type_name:
        one = _reference(field.type_name)
    else:
        one = dict(_PLAIN[descriptor_pb2.FieldDescriptorProto.Type.Name(field.type)])
    if field.label == field.LABEL_REPEATED:
        return {"type": "array", "items": one}
    return {"allOf": [one]} if "$ref" in one else one  # a description beside a bare reference would not count


def _paragraphs(comment: str) -> str:
    """A comment without its line breaks, but with its empty lines."""
    return "\n\n".join(" ".join(one.split()) for one in re.split(r"\n\s*\n", comment))


def _name(full: str) -> str:
    return full.rpartition(".")[2]


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{_name(name)}"}


class _Dumper(yaml.SafeDumper):
    """Writes what is there twice twice."""

    def ignore_aliases(self, data: Any) -> bool:
        """Always."""
        return True


def rules() -> dict[str, http_pb2.HttpRule]:
    """The rule of every method, by its name."""
    listed = yaml.safe_load((PROTO / "http.yaml").read_text(encoding="utf-8"))["http"]["rules"]
    parsed = [json_format.ParseDict(one, http_pb2.HttpRule()) for one in listed]
    return {rule.selector.removeprefix(f"{SERVICE}."): rule for rule in parsed}


def contract_files() -> descriptor_pb2.FileDescriptorSet:
    """What buf makes of proto/: descriptors with comments."""
    beside = Path(sys.executable).parent / "buf"  # in an environment that was not activated
    program = str(beside) if beside.exists() else "buf"
    command = [program, "build", str(PROTO), "--as-file-descriptor-set", "--output", "-#format=binpb"]
    built = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return descriptor_pb2.FileDescriptorSet.FromString(built.stdout)


def descriptor_set(files: descriptor_pb2.FileDescriptorSet) -> descriptor_pb2.FileDescriptorSet:
    """What the contract imports, the messages in the details of a status, and last the contract with its rules."""
    found = {one.name: one for one in files.file}
    contract, of_method = descriptor_pb2.FileDescriptorProto(), rules()
    contract.CopyFrom(Contract(files).file)
    contract.dependency.append(annotations_pb2.DESCRIPTOR.name)
    for method in contract.service[0].method:
        if (rule := of_method.get(method.name)) is not None:
            method.options.Extensions[annotations_pb2.http].CopyFrom(rule)
            method.options.Extensions[annotations_pb2.http].ClearField("selector")
    for module in (annotations_pb2, error_details_pb2, status_pb2):
        for descriptor in _with_imports(module.DESCRIPTOR):
            found[descriptor.name] = descriptor_pb2.FileDescriptorProto.FromString(descriptor.serialized_pb)
    del found[contract.name]
    whole = descriptor_pb2.FileDescriptorSet(file=[*found.values(), contract])
    for one in whole.file:
        one.ClearField("source_code_info")
    return whole


def _with_imports(descriptor: Any) -> Iterator[Any]:
    """A file and what it imports, which comes first."""
    for one in descriptor.dependencies:
        yield from _with_imports(one)
    yield descriptor


def openapi(files: descriptor_pb2.FileDescriptorSet) -> str:
    """The description of the methods that have a rule, as YAML."""
    contract, of_method = Contract(files), rules()
    paths: dict[str, Any] = {}
    names, bound = list[str](), dict[str, str]()
    for number, method in enumerate(contract.file.service[0].method):
        if (rule := of_method.get(method.name)) is None:
            continue
        verb = rule.WhichOneof("pattern")
        path = getattr(rule, verb)
        parameters = re.findall(r"\{(\w+)\}", path)
        paths.setdefault(path, {})[verb] = _operation(contract, number, parameters, body=bool(rule.body))
        names += [_name(one) for one in ((method.input_type,) if rule.body else ()) + (method.output_type,)]
        bound |= {_name(method.input_type): parameter for parameter in parameters}
    whole = {
        "openapi": "3.0.3",
        "info": {"title": SERVICE, "description": contract.comment(*_SYNTAX), "version": "v1"},
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {**contract.schemas(names, bound), "Status": _STATUS},
        },
    }
    text = yaml.dump(whole, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return f"# Made by scripts/generate_http.py from nmt.proto and http.yaml.\n{text}"


def _operation(contract: Contract, number: int, parameters: list[str], *, body: bool) -> dict[str, Any]:
    method = contract.file.service[0].method[number]
    operation: dict[str, Any] = {
        "operationId": method.name,
        "description": contract.comment(*_METHOD, number),
    }
    if parameters:
        facts = {"in": "path", "required": True, "description": "The model's name.", "schema": {"type": "string"}}
        operation["parameters"] = [{"name": name, **facts} for name in parameters]
    if body:
        operation["requestBody"] = {"required": True, "content": _json(method.input_type)}
    operation["responses"] = {
        "200": {"description": "The answer.", "content": _json(method.output_type)},
        "default": {"description": "No answer.", "content": _json("Status")},
    }
    return operation


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": _reference(name)}}


def check(descriptors: descriptor_pb2.FileDescriptorSet, description: str) -> int:
    """1 and a line on stderr if a file is missing or was made of something else."""
    kept = descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTORS.read_bytes() if DESCRIPTORS.is_file() else b"")
    text = OPENAPI.read_text(encoding="utf-8") if OPENAPI.is_file() else ""
    # what is imported is of the version of googleapis-common-protos that is installed
    for path, current in ((DESCRIPTORS, descriptors.file[-1] in kept.file), (OPENAPI, description == text)):
        if not current:
            print(f"{path.relative_to(ROOT)} is not what scripts/generate_http.py makes; run it", file=sys.stderr)
            return 1
    return 0


def main() -> int:
    """Generate or check."""
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 1
    files = contract_files()
    made = descriptor_set(files), openapi(files)
    if sys.argv[1:]:
        return check(*made)
    DESCRIPTORS.write_bytes(made[0].SerializeToString(deterministic=True))
    OPENAPI.write_text(made[1], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
