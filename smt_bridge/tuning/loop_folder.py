"""The working folder of a tuning loop: what it is of, its rounds, and one program at a time.

``state.json`` is written when a round is complete, so that a loop that ended anywhere goes on behind its last round.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import FiniteFloat, TypeAdapter

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.files import file_digest, open_output, read_blocks
from nmt_core.files.output import locked
from nmt_core.files.reading import read_json
from smt_bridge.errors import FormatError
from smt_bridge.moses.ini import MosesIni
from smt_bridge.moses.process import MosesOptions, MosesProcess
from smt_bridge.tuning.options import TuningOptions

STATE = "state.json"
_LOCK = "lock"
_OURS = re.compile(r"round[0-9]+\.(?:ini|nbest\.gz|[0-9]{8}\.gz)|state\.json")
_FORMAT = 2

Weights = Mapping[str, Sequence[FiniteFloat]]


@dataclass(frozen=True)
class Round:
    """A round: the weights it decoded with, what its translations score, and the weights that tuning found then.

    ``hypotheses`` are all that were known then, ``new`` those of this round. ``tuned`` is None in the last round.
    """

    weights: Weights
    score: FiniteFloat
    hypotheses: int
    new: int
    tuned: Weights | None = None
    tuned_score: FiniteFloat | None = None
    deviation: FiniteFloat | None = None


_ROUNDS = TypeAdapter(list[Round])


@contextlib.contextmanager
def held(folder: str) -> Iterator[None]:
    """Make the folder, and hold it.

    Raises ConfigError where other files are in it, NmtError where it cannot be made or another program holds it.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        others = [name for name in os.listdir(folder) if name != _LOCK and not _OURS.fullmatch(name.lstrip("."))]
        if not os.path.exists(os.path.join(folder, _LOCK)) and os.listdir(folder):
            raise ConfigError(f"{folder}: has {sorted(others or [STATE])[0]}; choose a new folder as --working-dir")
    except OSError as error:
        raise NmtError(f"{folder}: cannot be written ({error.strerror})") from error
    with locked(os.path.join(folder, _LOCK), shown=folder):
        yield


def is_of_loop(path: str, folder: str) -> bool:
    """Whether a loop in ``folder`` has, or may come to have, a file of this name."""
    place, name = os.path.split(os.path.realpath(path))
    return place == os.path.realpath(folder) and (name == _LOCK or _OURS.fullmatch(name) is not None)


_OPTIONS = ("nbest", "metric", "tokenize", "detokenize")


def describe(args: argparse.Namespace, ini: MosesIni, tuning: TuningOptions) -> dict[str, Any]:
    """What the rounds depend on: the content of files, those that the ini names among them, and options."""
    options: dict[str, Any] = {"--moses-options": shlex.join(args.moses_options)}
    options |= {f"--{name}": getattr(args, name) for name in _OPTIONS}
    options["--tuner"] = tuning.model_dump(exclude={"features"})
    tables = {option.path: _digest(option.file) for option in ini.paths if option.file is not None}
    files = {"MOSES.INI": _content(args.ini), "--source": _content(args.source)}
    return {**files, "--reference": [_content(path) for path in args.reference], **options, **tables}


def _content(path: str) -> str:
    """The digest of what a text has, however it is compressed."""
    digest = hashlib.sha256()
    for block in read_blocks(path):
        digest.update(block)
    return digest.hexdigest()


def _digest(path: str) -> str:
    """Of a file, or of the names and files of a folder, in which a binary table may be."""
    if os.path.isfile(path):
        return file_digest(path)
    names = sorted(os.path.join(folder, name) for folder, _, files in os.walk(path) for name in files)
    digests = [f"{os.path.relpath(name, path)} {file_digest(name)}" for name in names if os.path.isfile(name)]
    return hashlib.sha256("\n".join(digests).encode("utf-8", "surrogateescape")).hexdigest()


def read_rounds(folder: str, description: Mapping[str, Any]) -> list[Round]:
    """The rounds that are complete. Raises ConfigError for what is not known to be of these files and options.

    FormatError where the record of them is damaged.
    """
    path, remedy = os.path.join(folder, STATE), f"remove {folder}, and start again"
    if not os.path.exists(path):
        left = sorted(filter(_OURS.fullmatch, os.listdir(folder)))
        if left:
            raise ConfigError(f"{folder}: has {left[0]} but no {STATE}, which says what it is of; remove {folder}")
        return []
    content = read_json(path, remedy=remedy)
    try:
        if content["format"] != _FORMAT:
            raise ConfigError(f"{path}: is of another version of the program; {remedy}")
        before = dict(content["description"])
        rounds = _ROUNDS.validate_python(content["rounds"])
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(path, f"is not the state of a tuning loop; {remedy}") from error
    if not rounds and not any(name.endswith(".gz") for name in os.listdir(folder)):
        return []  # nothing was decoded of what it was begun with
    for name, value in description.items():
        if before.get(name) != value:
            problem = f"was begun with another {name}"
            raise ConfigError(f"{folder}: {problem}; use the same again, or another --working-dir")
    return rounds


def write_rounds(folder: str, description: Mapping[str, Any], rounds: Sequence[Round]) -> None:
    """Have them outlive what comes."""
    content = {"format": _FORMAT, "description": description, "rounds": [asdict(one) for one in rounds]}
    with open_output(os.path.join(folder, STATE)) as stream:
        stream.write(json.dumps(content, indent=1).encode() + b"\n")


_PART = 100  # sentences


def decode(
    options: MosesOptions, sentences: Sequence[bytes], folder: str, name: str, tell: Callable[[int], None]
) -> None:
    """Write ``FOLDER/NAME.nbest.gz``, unless it is there; ``tell`` gets the number of sentences that are done.

    Sentences that Moses fails at twice have no list. Raises MosesFailed.
    """
    path = os.path.join(folder, f"{name}.nbest.gz")
    firsts = range(0, len(sentences), _PART)
    parts = {first: os.path.join(folder, f"{name}.{first:08d}.gz") for first in firsts}
    if not os.path.exists(path):
        _decode_parts(options, sentences, parts, tell)
        with open_output(path, as_it_is=True) as whole:
            for part in parts.values():
                with open(part, "rb") as stream:
                    whole.write(stream.read())
    for part in parts.values():  # also those of a program that was killed here
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)


def _decode_parts(
    options: MosesOptions, sentences: Sequence[bytes], parts: Mapping[int, str], tell: Callable[[int], None]
) -> None:
    """Write the files that are not there; ``parts`` has them by their first sentence."""
    with contextlib.ExitStack() as stack:
        process: MosesProcess | None = None
        for first, part in parts.items():
            if not os.path.exists(part):
                process = process or stack.enter_context(MosesProcess(options))
                _write(part, first, process.translate(sentences[first : first + _PART]))
            tell(min(first + _PART, len(sentences)))


def _write(path: str, first: int, lists: Sequence[Sequence[bytes] | None]) -> None:
    with open_output(path) as stream:
        for sentence, lines in enumerate(lists, start=first):
            stream.writelines(b"%d ||| %b\n" % (sentence, line) for line in lines or ())
