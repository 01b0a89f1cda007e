"""What can be known of models before anything is loaded, and what a server says of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nmt_core.base.errors import ConfigError
from smt_bridge.models import REMOTE, Remote, model_folders, server_address


def check_specs(specs: Iterable[str]) -> None:
    """Raise ConfigError for a malformed spec and a folder that is not there; nothing is loaded or asked."""
    for spec in specs:
        if spec.startswith(REMOTE):
            server_address(spec)
        else:
            model_folders(spec)


def described(model: Remote) -> Any:
    """What the server says of the model. Raises ConfigError for one that does not read words."""
    found = next(one for one in model.client.models() if one.name == model.client.model)
    if found.surface_signature != found.signature:
        raise ConfigError(f"the model {found.name} reads pieces of words: give its folder instead")
    return found
