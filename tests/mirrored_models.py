"""Models of the same weights that write in the two orders."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nmt_core.commands.main import main

WORDS = [f"w{number}" for number in range(12)]
SIZES = {
    "rnnsearch": ("embedding=6", "maxout=8", "alignment=5", "initialisation=glorot"),
    "rnnlm": ("embedding=6", "initialisation=glorot"),
    "luong2015-global-general-feed": ("depth=2", "embedding=12", "init_range=0.5"),
}
ORDERS = {"l2r": "left-to-right", "r2l": "right-to-left"}


def make_models(place: Path, *more: str, preset: str = "rnnsearch", seed: int = 1) -> dict[str, str]:
    """Two model folders in ``place``, by their names in ``ORDERS``; ``more`` are settings."""
    (place / "words").write_text("\n".join(["</s>", "<unk>", *WORDS]) + "\n")
    arguments = ["--source-vocab", str(place / "words"), "--target-vocab", str(place / "words"), "--seed", str(seed)]
    overrides = ["hidden=12", *SIZES[preset], *more]
    for name, order in ORDERS.items():
        settings = [*(f"model.{override}" for override in overrides), f"target_order={order}"]
        given = [argument for setting in settings for argument in ("--set", setting)]
        assert main(["init", str(place / name), "--preset", preset, *arguments, *given]) == 0
    return {name: str(place / name) for name in ORDERS}


def mirrored(text: str) -> str:
    """The words from the last to the first."""
    return " ".join(reversed(text.split()))


def mirrored_points(points: Iterable[tuple[int, int]], words: int) -> list[tuple[int, int]]:
    """Source-target points for the mirrored text of so many words."""
    return sorted(((source, words - 1 - target) for source, target in points), key=lambda point: point[1])


def turned(numbers: tuple) -> tuple:
    """Numbers of words and end for the mirrored text."""
    return (*numbers[:-1][::-1], numbers[-1])
