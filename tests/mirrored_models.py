"""Models of the same weights that write in the two orders."""

from __future__ import annotations

from pathlib import Path

from nmt_core.commands.main import main

WORDS = [f"w{number}" for number in range(12)]
ORDERS = {"l2r": "left-to-right", "r2l": "right-to-left"}


def make_models(place: Path, *, preset: str = "rnnsearch", seed: int = 1) -> dict[str, str]:
    """Two model folders in ``place``, by their names in ``ORDERS``."""
    (place / "words").write_text("\n".join(["</s>", "<unk>", *WORDS]) + "\n")
    arguments = ["--source-vocab", str(place / "words"), "--target-vocab", str(place / "words"), "--seed", str(seed)]
    overrides = ["hidden=12", "embedding=6", "initialisation=glorot"]
    overrides += {"rnnsearch": ["maxout=8", "alignment=5"], "rnnlm": []}.get(preset, ["maxout=8"])
    for name, order in ORDERS.items():
        settings = [*(f"model.{override}" for override in overrides), f"target_order={order}"]
        given = [argument for setting in settings for argument in ("--set", setting)]
        assert main(["init", str(place / name), "--preset", preset, *arguments, *given]) == 0
    return {name: str(place / name) for name in ORDERS}


def mirrored(text: str) -> str:
    """The words from the last to the first."""
    return " ".join(reversed(text.split()))


def turned(numbers: tuple) -> tuple:  # type: ignore[type-arg]
    """Numbers of words and end for the mirrored text."""
    return (*numbers[:-1][::-1], numbers[-1])
