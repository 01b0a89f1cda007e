"""The lines of n-best lists, as Moses has them."""

from __future__ import annotations

from nmt_core.base.errors import ConfigError


def nbest_line(number: int, text: str, features: str, score: float) -> str:
    """``number ||| text ||| features ||| score``; three bars inside the text, which would cut it, are escaped."""
    escaped = text.replace("|||", "&#124;&#124;&#124;")
    return f"{number} ||| {escaped} ||| {features} ||| {score:.6f}"


def check_feature_name(name: str) -> None:
    """Raises ConfigError for what cannot be a label in a list."""
    if not name or any(letter in name for letter in " \t|="):
        raise ConfigError(f"--feature-name {name!r}: expected a name without spaces, '|' or '='")
