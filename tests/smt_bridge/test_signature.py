"""Signatures are taken apart and kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from nmt_core.base.errors import InputError
from nmt_core.device import name_arithmetic
from nmt_core.version import VERSION
from smt_bridge.metadata import (
    OF_THE_MACHINE,
    field_of,
    file_fingerprint,
    signature_of,
    with_field,
    without_fields,
)

SCORER = "nmt:rnnsearch|model:c6a6575452b0|log:e|norm:none|dtype:float32|version:0.1.0"


def test_fields_of_a_signature() -> None:
    signature = f"feature:coverage|direction:forward|{SCORER}|tok:none"
    wanted = {"feature": "coverage", "model": "c6a6575452b0", "nmt": "rnnsearch", "version": "0.1.0", "seed": None}
    assert {key: field_of(signature, key) for key in wanted} == wanted


def test_a_field_is_set_where_it_stands_or_before_the_version() -> None:
    assert with_field("a:1|norm:none|version:3", "norm", "words") == "a:1|norm:words|version:3"
    assert with_field("a:1|norm:none|version:3", "tok", "none") == "a:1|norm:none|tok:none|version:3"
    assert with_field("lengths", "tok", "none") == "lengths|tok:none"


def test_signature_of_a_feature_has_tokenisation_and_version() -> None:
    assert signature_of("mine", log="e") == f"feature:mine|log:e|tok:none|version:{VERSION}"


def test_all_fields_of_the_machine_are_known() -> None:
    computed = name_arithmetic(torch.zeros(1))
    assert computed and without_fields(computed, OF_THE_MACHINE) == ""
    assert without_fields("model:1|sums:8508232a|version:3", ["sums", "version"]) == "model:1"


def test_fingerprint_changes_with_every_part_and_the_size(tmp_path: Path) -> None:
    path = tmp_path / "lm"
    prints = set()
    size = 3 << 20
    middle = b"a" * (size // 2) + b"b" + b"a" * (size - size // 2 - 1)
    for content in (b"a" * size, b"b" + b"a" * (size - 1), b"a" * (size - 1) + b"b", b"a" * (size + 1), b"", middle):
        path.write_bytes(content)
        prints.add(file_fingerprint(str(path)))
    assert len(prints) == 6
    assert {len(each) for each in prints} == {12}
    with pytest.raises(InputError, match="cannot be read"):
        file_fingerprint(str(tmp_path / "absent"))
