"""What `smt-bridge doctor` prints: a line for each finding, and how many there are."""

from __future__ import annotations

import argparse
import json

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say, show
from nmt_core.files.small import check_regular
from smt_bridge.doctor.examination import Files, examine
from smt_bridge.model_specs import REMOTE
from smt_bridge.nbest.formats import check_format

NAME = "doctor"


def diagnose(args: argparse.Namespace) -> int:
    """Print what is found in the files of the options."""
    if args.scorer.startswith(REMOTE):
        raise ConfigError(f"--scorer {args.scorer}: a server does not show its vocabularies; give the model's folder")
    given = (args.ini, args.table, args.nbest, args.weights, args.source, args.reference, args.scorer, args.lm)
    if not any(given):
        raise ConfigError("give a moses.ini or other files to look at")
    files = Files(*given, args.lines, check_format(args.nbest_format))
    for path in filter(None, (args.source, args.reference)):
        check_regular(path)  # read more than once
    errors = warnings = 0
    for finding in examine(files):
        print(json.dumps(finding._asdict()) if args.json else show(finding), flush=True)
        errors += finding.level == "error"
        warnings += finding.level == "warning"
    say(f"{NAME}: {counted(errors, 'error')}, {counted(warnings, 'warning')}")
    return 1 if errors else 0
