"""What can go wrong in the bridge, as one tree below ``nmt_core.base.errors.NmtError``.

BridgeError(NmtError)     one clear line for the user; commands print it and exit with 2
├── FormatError           a line of a Moses file is malformed (path, line, what was expected)
└── WiringError           files that must fit together do not (table and ini, weights and features)
"""

from __future__ import annotations

from nmt_core.base.errors import InputError, NmtError


class BridgeError(NmtError):
    """An error of the bridge that a user caused or can mend."""


class FormatError(BridgeError, InputError):
    """A line of a Moses file is malformed."""


class WiringError(BridgeError):
    """Files that must fit together do not."""
