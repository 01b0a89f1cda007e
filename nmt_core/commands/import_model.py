"""``nmt-core import``: a model folder of a checkpoint of GroundHog, Nematus or Marian."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nmt_core.base.messages import say
from nmt_core.commands.file_types import NewModelFolder
from nmt_core.files import InputFile

if TYPE_CHECKING:
    from nmt_core.foreign.imported import Files, Imported

_EPILOG = """\
examples:
  nmt-core import groundhog search_model.npz runs/imported --settings search_state.pkl \\
      --source-vocab vocab.en.pkl --target-vocab vocab.fr.pkl
  nmt-core import nematus model.npz runs/imported --source-vocab vocab.en.json --target-vocab vocab.de.json
  nmt-core import marian model.npz runs/imported --source-vocab vocab.en.yml --target-vocab vocab.de.yml

The folder is one like any other: 'score', 'decode', 'serve' and smt-bridge use it. Nothing is unpickled but
dictionaries, lists, text and numbers. Every array has to be a part of the model, with the shape that its sizes ask for;
otherwise it is named and nothing is written. Vocabularies give each word its number: .json, .yml, .pkl, or one word a
line. What is read, and what is not: docs/foreign-models.md.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.add_argument("kind", choices=["groundhog", "nematus", "marian"], help="the program that trained it")
    parser.add_argument("source", type=InputFile, metavar="SRC", help="its checkpoint, a NumPy archive (.npz)")
    parser.add_argument("output", type=NewModelFolder, metavar="OUT", help="the model folder to make")
    parser.add_argument("--source-vocab", type=InputFile, required=True, metavar="F", help="its source vocabulary")
    parser.add_argument("--target-vocab", type=InputFile, required=True, metavar="F", help="its target vocabulary")
    parser.add_argument(
        "--settings",
        type=InputFile,
        metavar="F",
        help="what it was trained with, .json, .yml or .pkl (needed for groundhog; nematus: beside SRC, marian: in it)",
    )
    parser.add_argument("--source-language", metavar="LANG", help="language of the source, for raw text (such as en)")
    parser.add_argument("--target-language", metavar="LANG", help="language of the target")


def _read(kind: str, files: Files) -> Imported:
    match kind:
        case "groundhog":
            from nmt_core.foreign.groundhog import read_groundhog

            return read_groundhog(files)
        case "nematus":
            from nmt_core.foreign.nematus import read_nematus

            return read_nematus(files)
        case _:
            from nmt_core.foreign.marian import read_marian

            return read_marian(files)


def run(args: argparse.Namespace) -> int:
    """Read, check, write."""
    from nmt_core.base.errors import ConfigError
    from nmt_core.foreign.imported import Files
    from nmt_core.model_directory.loaded_model import save_model
    from nmt_core.model_directory.settings import FolderConfig, check_no_model
    from nmt_core.text.processing import TextConfig

    check_no_model(args.output)
    if args.kind == "groundhog" and args.settings is None:
        raise ConfigError("--settings is missing: the state file of the model, such as search_state.pkl")
    imported = _read(args.kind, Files(args.source, args.settings, args.source_vocab, args.target_vocab))
    languages = {"source_language": args.source_language, "target_language": args.target_language}
    text = TextConfig.from_mapping({name: value for name, value in languages.items() if value}, origin="--language")
    config = FolderConfig(model=imported.config, text=text, trained_with={"imported": args.kind})
    model = imported.model()
    save_model(args.output, model, imported.source, imported.target, config)
    size = sum(parameter.numel() for parameter in model.parameters())
    words = f"{len(imported.source):,} and {len(imported.target):,} words"
    say(f"{args.output}: {imported.config.type}, {size / 1e6:.1f} M parameters, {words}")
    return 0
