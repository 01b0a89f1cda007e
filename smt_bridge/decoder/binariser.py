"""Binarised phrase tables, made by Moses' own programs.

Which program, its options and the name of what it makes stand in ``formats/feature_kinds``. The program writes into a
temporary folder beside the table; what it has made gets its final name when the program has ended well. It ends with
the command, however that ends.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

from nmt_core.errors import ConfigError, NmtError
from nmt_core.files import in_turn, is_written_through, settle, temporary_folder
from nmt_core.files.writing import settle_folder
from nmt_core.processes import orderly_end
from nmt_core.tied import tied
from smt_bridge.formats.feature_kinds import FeatureKind, kind_of, missing_parts

BINARISERS = {"compact": "PhraseDictionaryCompact", "probing": "ProbingPT", "ondisk": "PhraseDictionaryOnDisk"}
_DIRECT = 2  # place of p(target | source) among the scores of Moses, from 0: by it targets are ranked
_NOT_NEEDED = ("cache",)  # by the decoder, but written by CreateProbingPT
_LAST = 2000  # characters of what the program says


def binarising_command(
    kind: str, table: str, *, scores: int, factors: tuple[int, int] = (1, 1), stem: str | None = None
) -> str:
    """The shell command that makes a table of that class of feature functions; names of files with blanks in quotes.

    ``factors`` are those of source and target words; ``stem`` is what the result's name begins with. Targets of a
    table with one or two scores are ranked by the last.
    """
    rank = min(_DIRECT, scores - 1)
    return kind_of(kind).made_by.format(
        table=shlex.quote(table),
        stem=shlex.quote(stem_of(table) if stem is None else stem),
        scores=scores,
        rank=rank,
        other_rank="" if rank == _DIRECT else f" -rankscore {rank}",
        source_factors=factors[0],
        target_factors=factors[1],
    )


def stem_of(table: str) -> str:
    """What the names of binarised tables begin with."""
    return table.removesuffix(".gz")


def binarised(name: str, table: str) -> str:
    """Where the binarised table will be."""
    facts = kind_of(BINARISERS[name])
    return stem_of(table) + (facts.made_as or facts.endings[0])


def check_binariser(name: str, table: str) -> None:
    """Raise ConfigError where the program is not on the PATH, or cannot read what the table is called."""
    program = binarising_command(BINARISERS[name], table, scores=1).split()[0]
    if shutil.which(program) is None:
        raise ConfigError(
            f"--binarise {name} needs Moses' program {program}, which is not on the PATH; add the folder bin of Moses"
            " to it, or leave --binarise out"
        )
    if table == "-" or table.endswith((".xz", ".zst")) or is_written_through(table):
        raise ConfigError("--binarise needs --output to be a file, plain or *.gz, which is what Moses' programs read")


def check_replaced(name: str, table: str) -> None:
    """Raise ConfigError where something lies under the binarised table's name that Moses' program did not make."""
    path = binarised(name, table)
    problem = _obstacle(path, kind_of(BINARISERS[name])) if os.path.lexists(path) else ""
    if problem:
        raise ConfigError(f"{path}: is there already and {problem}; move it away, or choose another --output")


def _obstacle(path: str, kind: FeatureKind) -> str:
    """What tells that the file or folder is no older table of that kind, or not that alone; nothing for a table."""
    if not kind.parts:
        return "is a folder" if os.path.isdir(path) else ""
    if not os.path.isdir(path):
        return "is no folder"
    program = kind.made_by.split()[0]
    missing = missing_parts(kind, path)
    if missing:
        return f"is no table of {program} (without {missing[0]})"
    others = sorted(set(os.listdir(path)) - {*kind.parts, *_NOT_NEEDED})
    return f"holds more than {program} writes ({others[0]})" if others else ""


def binarise(name: str, table: str, *, scores: int, factors: tuple[int, int]) -> str:
    """Make the binarised table; its path.

    Raises ConfigError as ``check_replaced``, and NmtError, with what the program said last, where it fails, and where
    ``table`` was replaced meanwhile.
    """
    check_replaced(name, table)
    kind, path = BINARISERS[name], binarised(name, table)
    by_hand = binarising_command(kind, table, scores=scores, factors=factors)
    try:
        with orderly_end(), temporary_folder(path) as folder:
            stem, made = (os.path.join(folder, os.path.basename(part)) for part in (stem_of(table), path))
            before = _state_of(table)
            problem = _run(binarising_command(kind, table, scores=scores, factors=factors, stem=stem))
            if problem or not os.path.exists(made):
                said = problem or "it made nothing"
                raise NmtError(f"{table}: is complete, but {by_hand.split()[0]} failed ({said}); by hand: {by_hand}")
            settle(_files_of(made))
            with in_turn(path):
                if _state_of(table) != before:
                    raise NmtError(f"{table}: was replaced while {path} was made of it; by hand: {by_hand}")
                check_replaced(name, table)
                _put(made, os.path.realpath(path), older=os.path.join(folder, "older"))
    except OSError as error:
        raise NmtError(f"{path}: cannot be made ({error.strerror}); {table} is complete") from error
    return path


def _run(command: str) -> str:
    """Run one of Moses' programs, which ends with this one; what is to be said where it fails, or nothing.

    Raises OSError where it cannot be started.
    """
    program, *arguments = shlex.split(command)
    found = shutil.which(program)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    with tempfile.TemporaryFile() as output:
        code = subprocess.run(
            tied([found, *arguments]), stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
        ).returncode
        output.seek(max(0, output.tell() - _LAST))
        words = " ".join(output.read().decode("utf-8", "replace").split())
    return f"exit code {code}: {words[-300:] or 'it said nothing'}" if code else ""


def _state_of(path: str) -> tuple[int, ...]:
    """What changes when the file is replaced."""
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _files_of(path: str) -> Iterator[str]:
    """The file, or those of the folder."""
    if not os.path.isdir(path):
        yield path
        return
    for folder, _, names in os.walk(path):
        yield from (os.path.join(folder, name) for name in names)


def _put(new: str, path: str, *, older: str) -> None:
    """Give what was made its name, in place of an older one; a folder with something in it is not replaced at once."""
    if os.path.isdir(path):
        os.rename(path, older)
        os.rename(new, path)
    else:
        os.replace(new, path)
    settle_folder(os.path.dirname(path))
