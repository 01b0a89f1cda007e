"""Every message in docs/troubleshooting.md is one that the code has."""

from __future__ import annotations

import re

import pytest

from tests.docs.commands import PROGRAMS, ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text().partition("## Doctor")[0]
MESSAGES = [
    message.replace(r"\|", "|")
    for row in re.findall(r"^\| (`.*?) \| ", PAGE, re.MULTILINE)
    for message in re.findall(r"`([^`]+)`", row)
]
CODE = "".join(path.read_text() for package in PROGRAMS.values() for path in (ROOT / package).rglob("*.py"))
JOINED = re.sub(r'["\'](?:\n\s*)f?["\']', "", CODE)  # strings that are cut into lines


@pytest.mark.parametrize("message", MESSAGES)
def test_the_message_is_in_the_code(message: str) -> None:
    assert message in JOINED
