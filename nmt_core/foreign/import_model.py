"""``nmt-core import``: a model directory of a checkpoint of Nematus or Marian."""

from __future__ import annotations

import argparse

from nmt_core.base.messages import say
from nmt_core.foreign.imported import Files
from nmt_core.foreign.marian import read_marian
from nmt_core.foreign.nematus import read_nematus
from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig, check_no_model
from nmt_core.text.processing import TextConfig

_READERS = {"nematus": read_nematus, "marian": read_marian}


def import_model(args: argparse.Namespace) -> int:
    """Read, check, write."""
    check_no_model(args.output)
    imported = _READERS[args.kind](Files(args.source, args.settings, args.source_vocab, args.target_vocab))
    languages = {"source_language": args.source_language, "target_language": args.target_language}
    text = TextConfig.from_mapping({name: value for name, value in languages.items() if value}, origin="--language")
    config = FolderConfig(model=imported.config, text=text, trained_with={"imported": args.kind})
    model = imported.model()
    save_model(args.output, model, imported.source, imported.target, config)
    size = sum(parameter.numel() for parameter in model.parameters())
    words = f"{len(imported.source):,} and {len(imported.target):,} words"
    say(f"{args.output}: {imported.config.type}, {size / 1e6:.1f} M parameters, {words}")
    return 0
