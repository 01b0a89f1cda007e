"""What can be known of models before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterable

from smt_bridge.models import REMOTE, model_folders, server_address


def check_specs(specs: Iterable[str]) -> None:
    """Raise ConfigError for a malformed spec and a folder that is not there; nothing is loaded or asked."""
    for spec in specs:
        if spec.startswith(REMOTE):
            server_address(spec)
        else:
            model_folders(spec)
