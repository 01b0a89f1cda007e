"""The table of limits in docs/serving.md has every limit of the server, with its default."""

from __future__ import annotations

import re

from nmt_core.serving.limits import Limits
from tests.docs.commands import ROOT


def test_every_limit_stands_in_the_table_with_its_default() -> None:
    page = (ROOT / "docs" / "serving.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \| [^|]+ \|$", page, re.MULTILINE))
    assert rows.keys() == Limits.model_fields.keys()
    for key, field in Limits.model_fields.items():
        if field.default is not None:
            whole = isinstance(field.default, int)
            assert rows[key] == (f"{field.default:,}" if whole else f"{field.default:,g}"), key
