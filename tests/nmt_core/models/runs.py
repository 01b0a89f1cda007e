"""Short training runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from nmt_core.commands.main import main


def train(
    place: Path,
    name: str,
    *options: str,
    source: str = "a b c\nd d\nb\n" * 20,
    target: str = "u w y\nx\nv v\n" * 20,
    model: Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
    **training: Any,
) -> int:
    """Train the model ``name`` on these texts; the exit code of the command."""
    (place / "s").write_text(source)
    (place / "t").write_text(target)
    settings: dict[str, Any] = {
        "folder": str(place / name),
        "data": {"source": str(place / "s"), "target": str(place / "t"), "hold_out": 5, **(data or {})},
        "training": {"max_updates": 12, "batch_sentences": 5, "select_by": "nll", **training},
    }
    if model is not None:
        settings["model"] = dict(model)
    (place / f"{name}.yaml").write_text(yaml.safe_dump(settings))
    return main(["train", str(place / f"{name}.yaml"), "--quiet", "--device", "cpu", *options])
