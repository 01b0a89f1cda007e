"""How Sphinx makes the site; ``scripts/release/site`` puts its pages together."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from nmt_core.version import VERSION  # noqa: E402 (found where ROOT says)

project = "hybridmt"
author = "The hybridmt authors"
release = version = VERSION
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
root_doc = "README"
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"hybridmt {VERSION}"
autodoc_typehints = "description"
autodoc_preserve_defaults = True
suppress_warnings = ["misc.highlighting_failure"]


def add_contents(app: Any, name: str, source: list[str]) -> None:
    """The list of documents, with the headings that it has, is also the contents of the site."""
    if name != root_doc:
        return
    _, *parts = re.split(r"^\*\*(.*)\*\*$", source[0], flags=re.MULTILINE)
    for caption, listed in zip(parts[::2], parts[1::2], strict=True):
        pages = re.findall(r"^- \[[^\]]*\]\(([\w-]+)\.md\)", listed, re.MULTILINE)
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"


def setup(app: Any) -> None:
    """Sphinx asks for this."""
    app.connect("source-read", add_contents)
