"""The table of limits in docs/serving.md has every limit of the server, with its default."""

from __future__ import annotations

import argparse
import re

from nmt_core.commands.server_limits import add_limit_options
from tests.docs.commands import ROOT


def limits() -> dict[str, str]:
    """Each option that is a limit, and its default as documents write it."""
    parser = argparse.ArgumentParser(formatter_class=lambda prog: argparse.HelpFormatter(prog, width=500))
    add_limit_options(parser.add_argument_group("limits"))
    found = re.findall(
        r"^ +(--max-(?!delay)\S+|--\w+-timeout) .*\(default: (\d+)\)$", parser.format_help(), re.MULTILINE
    )
    return {option: f"{int(default):,}" for option, default in found}


def test_every_limit_stands_in_the_table_with_its_default() -> None:
    assert len(limits()) > 15
    page = (ROOT / "docs" / "serving.md").read_text()
    rows = re.findall(r"^\| .* \| (.*) \| (.*) \| .* \|$", page, re.MULTILINE)
    for option, default in limits().items():
        found = [defaults for defaults, options in rows if f"`{option}`" in options]
        assert any(default in re.split("[ ;]+", defaults) for defaults in found), option
