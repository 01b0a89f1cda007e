"""Signatures are taken apart and kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.errors import InputError
from nmt_core.device import name_arithmetic
from nmt_core.version import VERSION
from smt_bridge.metadata import (
    OF_THE_MACHINE,
    Signature,
    file_fingerprint,
)

SCORER = "nmt:rnnsearch|model:c6a6575452b0|log:e|norm:none|dtype:float32|version:0.1.0"


def test_fields_of_a_signature() -> None:
    signature = Signature.parse(f"feature:coverage|direction:forward|{SCORER}|tok:none")
    wanted = {"feature": "coverage", "model": "c6a6575452b0", "nmt": "rnnsearch", "version": "0.1.0", "seed": None}
    assert {key: signature.get(key) for key in wanted} == wanted


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_a_signature_and_stays(text: str) -> None:
    assert str(Signature.parse(text)) == text


def test_a_field_is_set_where_it_stands_or_before_the_version() -> None:
    signature = Signature.parse("a:1|norm:none|version:3")
    assert str(signature.with_field("norm", "words")) == "a:1|norm:words|version:3"
    assert str(signature.with_field("tok", "none")) == "a:1|norm:none|tok:none|version:3"
    assert str(Signature.parse("lengths").with_field("tok", "none")) == "lengths|tok:none"


def test_signature_of_a_feature_has_tokenisation_and_version() -> None:
    assert str(Signature.of("mine", log="e")) == f"feature:mine|log:e|tok:none|version:{VERSION}"


def test_all_fields_of_the_machine_are_known() -> None:
    computed = Signature.parse(name_arithmetic(torch.zeros(1)))
    assert str(computed) and computed.without(OF_THE_MACHINE).fields == ()
    assert Signature.parse("model:1|sums:8508232a|version:3").without(["sums", "version"]).fields == ("model:1",)


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
