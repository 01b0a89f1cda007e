"""A corpus through all steps.

The first pass cleans, tokenises and filters. Each step that learns reads what there is so far and is
then applied in a pass of its own. Everything is written into a directory beside the output and put in
place in the end; what goes wrong before leaves older files as they were.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nmt_core.base.errors import ConfigError, InputError, NmtError
from nmt_core.base.languages import say_if_without_rules
from nmt_core.base.messages import counted
from nmt_core.files import file_digest, open_output, overwritten, partial_output, write_lines
from nmt_core.files.output import PARTIAL
from nmt_core.jobs.run import open_workers
from nmt_core.preparation.bundled import BundledPreprocessor
from nmt_core.preparation.corpus import Chunk, read_chunks
from nmt_core.preparation.filters import DUPLICATE, Filters, Hashes, Reason, Seen, are_swapped, hash_of
from nmt_core.preparation.record import NAME, DropCounts, Record, read_record, render_record
from nmt_core.preparation.settings import LEARNED, PLAIN, PreparationConfig, learn, model_names, models_in, open_steps
from nmt_core.preparation.steps import Side


class Prepared(NamedTuple):
    """What is left of a chunk: the lines of each side, their numbers and hashes, and what was dropped."""

    sides: tuple[list[str], ...]
    numbers: list[int]
    hashes: Hashes
    drop_counts: DropCounts


class ChunkWorker:
    """Applies ``names``, steps of the preparation; ``first`` says that this is the pass with the filters."""

    def __init__(
        self, config: PreparationConfig, names: Sequence[str], folder: str, _number: int, *, first: bool
    ) -> None:
        self._steps = [open_steps(config, side, names, models_in(folder)) for side in config.languages]
        self._filters = Filters(config.filters, config.languages) if first else None
        self._hashing = first and config.filters.duplicates

    @property
    def description(self) -> dict[str, str]:
        """There is no model."""
        return {}

    def __call__(self, chunk: Chunk) -> Prepared:
        """Do one chunk."""
        drop_counts = DropCounts()
        rows: list[list[str]] = []
        numbers: list[int] = []
        for number, raw in enumerate(zip(*chunk.sides, strict=True), start=chunk.first):
            drop_counts.read += 1
            found = self._prepare(raw)
            if isinstance(found, Reason):
                drop_counts.drop(found, number)
            else:
                rows.append(found)
                numbers.append(number)
        hashes = np.array([hash_of(row) for row in rows] if self._hashing else [], dtype=np.uint64)
        sides = tuple([row[place] for row in rows] for place in range(len(self._steps)))
        return Prepared(sides, numbers, hashes, drop_counts)

    def _prepare(self, raw: Sequence[bytes]) -> list[str] | Reason:
        texts = [line.decode() for line in raw] if self._filters is None else self._filters.decode(raw)
        if isinstance(texts, Reason):
            return texts
        lines = list(texts)
        for place, steps in enumerate(self._steps):
            for step in steps:
                lines[place] = step.apply(lines[place])
        verdict = None if self._filters is None else self._filters.judge(texts, lines)
        return lines if verdict is None else verdict


Progress = Callable[[str, int], None]


@dataclass
class Preparation:
    """``inputs`` has a file for each side; ``output`` is the prefix of the files to make.

    ``like`` is an earlier preparation, of the same languages on the same sides, whose models are taken instead
    of learning. ``spared`` are other files that the settings come from.
    ``progress`` is called with the name of the pass and numbers of lines as they are done. Each pass is done by
    ``jobs`` workers.
    """

    config: PreparationConfig
    inputs: Mapping[Side, str]
    output: str
    jobs: int = 1
    packed: bool = False
    like: BundledPreprocessor | None = None
    spared: Sequence[str] = ()
    progress: Progress = lambda _name, _lines: None
    drop_counts: DropCounts = field(default_factory=DropCounts, init=False)

    def run(self) -> Record:
        """Do it all. Raises InputError for files that do not fit together or are no text."""
        self.config.check()
        for language in self.config.languages.values() if self.config.tokenization is not None else ():
            say_if_without_rules(language)  # which its processes do not
        folder, prefix = os.path.split(os.path.abspath(self.output))
        names = {side: f"{prefix}.{language}" + ".gz" * self.packed for side, language in self.config.languages.items()}
        self._check_names([*self.inputs.values(), *names.values()])
        self._check_spared([os.path.join(folder, name) for name in self._files(names)])
        with _work_folder(folder, prefix) as work:
            _check_owner(folder, names)
            corpus = self._passes(work)
            for side, name in names.items():
                _move_or_pack(corpus[side], os.path.join(work, name))
            models = {name: file_digest(os.path.join(work, name)) for name in model_names(self.config, LEARNED)}
            record = self._record(names, models)
            with open_output(os.path.join(work, NAME)) as stream:
                stream.write(render_record(record))
            with partial_output(os.path.join(folder, NAME)):
                _check_owner(folder, names)  # once more: another one may have come meanwhile
                _publish(work, folder, [*models, *names.values()])
        return record

    def _files(self, names: Mapping[Side, str]) -> list[str]:
        """All that is written into the directory of the output."""
        return [*names.values(), NAME, *model_names(self.config, LEARNED)]

    def _check_names(self, names: Sequence[str]) -> None:
        if set(self.inputs) != set(self.config.languages):
            raise ConfigError("give --source with --source-language, --target with --target-language, one file each")
        if list(self.inputs.values()).count("-") > 1:
            raise ConfigError("only one side can be standard input")
        for path in names:
            if path.encode(errors="replace").decode() != path:
                raise ConfigError(f"{path}: this name is not UTF-8, and {NAME} cannot have it; rename it")

    def _check_spared(self, written: Sequence[str]) -> None:
        found = overwritten([*self.inputs.values(), *self.spared], written)
        if found is not None:
            raise ConfigError(f"{found} would be overwritten; choose another --output")

    def _passes(self, work: str) -> dict[Side, str]:
        """The corpus after all steps."""
        corpus = dict(self.inputs)
        pending: list[str] = list(PLAIN)
        for step in LEARNED:
            if not self.config.sides_of(step):
                continue
            if self.like is not None:
                self.like.write_models(work, model_names(self.config, [step]))
            else:
                corpus, pending = self._pass(corpus, pending, work), []
                learn(self.config, step, corpus, work)
            pending.append(step)
        return self._pass(corpus, pending, work)

    def _pass(self, corpus: Mapping[Side, str], names: Sequence[str], work: str) -> dict[Side, str]:
        """Apply some steps; the files read go if they are our own."""
        first = corpus == self.inputs
        worker = functools.partial(ChunkWorker, self.config, names, work, first=first)
        after = {side: os.path.join(work, f"{names[-1]}.pass.{side}") for side in corpus}
        seen = Seen() if first and self.config.filters.duplicates else None
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(open_output(path)) for path in after.values()]
            chunks = read_chunks(list(corpus.values()))
            chunks = self._not_swapped(chunks) if first else chunks
            workers = stack.enter_context(open_workers(worker, self.jobs))
            for found in workers.answers(chunks):
                if first:
                    self.drop_counts.add(found.drop_counts)
                self.progress(names[-1], found.drop_counts.read)
                kept = found.sides if seen is None else self._without_duplicates(found, seen)
                for stream, lines in zip(streams, kept, strict=True):
                    write_lines(stream, lines)
        if first:
            self._check_drop_counts()
        else:
            for path in corpus.values():
                os.unlink(path)
        return after

    def _not_swapped(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """The chunks; ConfigError where the first one shows that each side is in the other's language."""
        for chunk in chunks:
            if chunk.first == 1 and are_swapped(_texts(self.config.languages, chunk), self.config.languages):
                source, target = self.inputs["source"], self.inputs["target"]
                raise ConfigError(
                    f"{source} is in '{self.config.target_language}' and {target} in '{self.config.source_language}': "
                    "swap --source and --target, or the languages"
                )
            yield chunk

    def _without_duplicates(self, found: Prepared, seen: Seen) -> list[list[str]]:
        new = seen.first_times(found.hashes)
        for place in np.flatnonzero(~new):
            self.drop_counts.drop(Reason(DUPLICATE, None), found.numbers[place])
        return [[line for line, is_new in zip(lines, new, strict=True) if is_new] for lines in found.sides]

    def _check_drop_counts(self) -> None:
        """Files of another encoding, and filters that leave nothing, are mistakes."""
        read = self.drop_counts.read
        for side, path in self.inputs.items():
            lines, first = self.drop_counts.junk(side)
            if lines > self.config.filters.junk.maximum_lines * read:
                share = f"{lines:,} of {counted(read, 'line is', 'lines are')}"
                problem = f"{share} no UTF-8 text, here is the first; convert it with iconv"
                raise InputError(path, problem, line=first)
        if not self.drop_counts.kept:
            reasons = (
                ", ".join(f"{row.reason}: {row.lines:,}" for row in self.drop_counts.dropped()) or "the file is empty"
            )
            raise InputError(self.inputs["target"], f"no line is left of {read:,} ({reasons})")

    def _record(self, names: Mapping[Side, str], models: dict[str, str]) -> Record:
        return Record(
            settings=self.config,
            models=models,
            inputs=dict(self.inputs),
            outputs=dict(names),
            read=self.drop_counts.read,
            kept=self.drop_counts.kept,
            dropped=self.drop_counts.dropped(),
        )


def _texts(sides: Iterable[Side], chunk: Chunk) -> dict[Side, list[str]]:
    texts = ([line.decode(errors="replace") for line in lines] for lines in chunk.sides)
    return dict(zip(sides, texts, strict=True))


@contextlib.contextmanager
def _work_folder(folder: str, prefix: str) -> Iterator[str]:
    """A hidden directory for one program at a time, by our name; what a killed program left is removed."""
    work = os.path.join(folder, f".{prefix}{PARTIAL}")
    try:
        with contextlib.ExitStack() as stack:
            os.makedirs(work, exist_ok=True)
            lock = os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            stack.callback(os.close, lock)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ConfigError(f"{folder}/{prefix}: another program is making it now; wait for it") from error
            stack.callback(shutil.rmtree, work, ignore_errors=True)
            for entry in list(os.scandir(work)):
                shutil.rmtree(entry) if entry.is_dir(follow_symlinks=False) else os.unlink(entry)
            yield work
    except OSError as error:
        raise NmtError(f"{folder}: cannot be written ({error.strerror})") from error


def _check_owner(folder: str, names: Mapping[Side, str]) -> None:
    """A directory holds one preparation: models of another one would be overwritten."""
    path = os.path.join(folder, NAME)
    if os.path.exists(path):
        outputs = read_record(path).outputs
        if outputs != names:
            raise ConfigError(f"{path} belongs to {', '.join(outputs.values())}; choose another directory")


def _move_or_pack(path: str, output: str) -> None:
    if not output.endswith(".gz"):
        os.replace(path, output)
        return
    with open(path, "rb") as plain, open_output(output) as packed:
        shutil.copyfileobj(plain, packed, 1 << 20)
    os.unlink(path)


def _publish(work: str, folder: str, names: Sequence[str]) -> None:
    """The record is removed first and written last: where there is one, all files that it names are there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, NAME))
    for name in [*names, NAME]:
        os.replace(os.path.join(work, name), os.path.join(folder, name))
