"""What may be wrong with a language model."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from nmt_core.base.errors import InputError
from nmt_core.files import read_beginning, read_lines
from nmt_core.kenlm import check_binary
from smt_bridge.doctor.findings import Finding, error, warning

_MAGIC = b"mmap lm http://kheafield.com/code format version"
_VERSION = 5


class LanguageModel(NamedTuple):
    """The kind of file (``arpa``, ``binary``, or nothing that KenLM reads), and the order that an ARPA file says."""

    kind: str
    order: int | None


def examine(path: str) -> tuple[LanguageModel, list[Finding]]:
    """The kind and order of a model, and what is wrong with it."""
    if not os.path.exists(path):
        return LanguageModel("", None), [error(path, "there is no such language model", "correct the path")]
    try:
        head = read_beginning(path, 200)
    except InputError as problem:
        return _unreadable(problem)
    if head.startswith(_MAGIC):
        return LanguageModel("binary", None), list(_examine_binary(path, head))
    if head.startswith(codecs.BOM_UTF8):
        remedy = "save it without one; KenLM reads no file with it"
        return LanguageModel("", None), [error(path, "begins with a byte order mark", remedy)]
    try:
        lines = [line.strip() for line in islice(read_lines(path), 20)]
    except InputError as problem:
        return _unreadable(problem)
    if b"\\data\\" not in lines:
        remedy = "give an ARPA file or a binary of build_binary"
        return LanguageModel("", None), [error(path, "is neither an ARPA file nor a KenLM binary", remedy)]
    orders = [int(found[1]) for line in lines if (found := re.match(rb"ngram ([0-9]{1,3})=", line))]
    return LanguageModel("arpa", max(orders, default=0)), list(_examine_end(path))


def _unreadable(problem: InputError) -> tuple[LanguageModel, list[Finding]]:
    return LanguageModel("", None), [error(str(problem), "KenLM cannot read it", "make or copy it again")]


def _examine_binary(path: str, head: bytes) -> Iterator[Finding]:
    found = re.match(rb"mmap lm http://kheafield.com/code format version ([0-9]{1,9})", head)
    version = int(found[1]) if found else 0
    if version != _VERSION:
        problem = f"is a KenLM binary of format version {version}, where KenLM reads {_VERSION}"
        yield error(path, problem, "build it again from the ARPA file with build_binary")
        return
    try:
        with open(path, "rb") as stream:
            check_binary(path, stream)
    except InputError as damaged:
        yield error(str(damaged), "KenLM cannot read it", "make or copy it again")


def _examine_end(path: str) -> Iterator[Finding]:
    last = b""
    try:
        for line in read_lines(path):
            if line.strip():
                last = line.strip()
    except InputError as problem:
        yield error(str(problem), "KenLM cannot read it", "make or copy it again")
        return
    if last != b"\\end\\":
        yield error(path, "does not end in \\end\\: it was cut off", "make or copy it again")


def examine_order(path: str, model: LanguageModel, stated: int | None, *, ini: str) -> Iterator[Finding]:
    """Whether moses.ini names the order that the model has."""
    if stated is not None and model.order is not None and stated != model.order:
        problem = f"has order {model.order}, but {ini} says order={stated}"
        yield warning(path, problem, "KenLM goes by the file; correct the line so that nobody is misled")
