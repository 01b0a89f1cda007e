"""Where a training run stands, so that it can resume as if it had never stopped; and the directory it writes.

The state is one file, replaced atomically: parameters, what the optimiser keeps of each (its moments) and the
random state as tensors, and the counters as JSON in the header. ``training.json`` shows the same counters to people.

What would stop a run after hours (no right to write, a full disk, a second run into the same directory) is found before
the text is read.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import glob
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from nmt_core.base.errors import ConfigError, ModelError, NmtError
from nmt_core.files import open_output, overwritten
from nmt_core.files.output import locked
from nmt_core.model_directory.directory import LEXICON, PARAMETERS, SETTINGS
from nmt_core.model_directory.tensors import check_tensors, read_tensors, save_tensors
from nmt_core.training.config import TrainingConfig
from nmt_core.training.fingerprint import RunIdentity
from nmt_core.training.tasks import Cursor
from nmt_core.training.validation import Validation

TENSORS = "training.safetensors"
_STEP = "step"  # the one number that optimisers keep for a parameter
COUNTERS = "training.json"


@dataclass(frozen=True)
class Progress:
    """The counters of a run. ``cursors`` say by name how far the tasks are, ``epochs`` how far the first is.

    ``best`` is the best validation of the run itself; ``kept`` is that of the model in the directory, which may
    be an average, and is replaced by a better one only. ``skipped`` updates in a row were left out.
    """

    update: int = 0
    cursors: Mapping[str, Cursor] = field(default_factory=dict)
    epochs: float = 0.0
    seconds: float = 0.0
    learning_rate: float = 0.0
    best: Validation | None = None
    kept: Validation | None = None
    since_best: int = 0
    since_decay: int = 0
    skipped: int = 0
    history: tuple[Validation, ...] = field(default=())

    def after_validation(self, validation: Validation, config: TrainingConfig) -> Progress:
        """The counters when this was measured: the best so far, for how long it has been, and the learning rate."""
        best, since_best, since_decay = self.best, self.since_best + 1, self.since_decay + 1
        if validation.better_than(best, config.select_by):
            best, since_best, since_decay = validation, 0, 0
        rate = self.learning_rate
        if config.decay_patience and since_decay >= config.decay_patience:
            since_decay, rate = 0, rate * config.decay
        return dataclasses.replace(
            self,
            best=best,
            kept=validation if validation.better_than(self.kept, config.select_by) else self.kept,
            since_best=since_best,
            since_decay=since_decay,
            learning_rate=rate,
            history=(*self.history, validation),
        )


def save_state(
    folder: str,
    trained: Mapping[str, nn.Parameter],
    optimizer: torch.optim.Optimizer,
    progress: Progress,
    run: RunIdentity,
) -> None:
    """Write the state of a run; ``run`` identifies settings and data, and must be the same on resuming.

    ``trained`` are the parameters of all tasks by name.
    """
    tensors: dict[str, Tensor] = {"random": torch.get_rng_state()}
    device = next(iter(trained.values())).device
    if device.type == "cuda":
        tensors["random.cuda"] = torch.cuda.get_rng_state(device)
    for name, parameter in trained.items():
        tensors[f"parameter.{name}"] = parameter.detach().cpu()
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer.{key}.{name}"] = value.detach().cpu()
    counters = json.dumps(dataclasses.asdict(progress))
    save_tensors(
        os.path.join(folder, TENSORS),
        {name: tensor.contiguous() for name, tensor in tensors.items()},
        {"progress": counters, "run": run.to_json()},
    )
    with open_output(os.path.join(folder, COUNTERS)) as stream:
        stream.write(json.dumps(json.loads(counters), indent=1).encode() + b"\n")


def restore_state(
    folder: str, trained: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer, run: RunIdentity
) -> Progress:
    """Put a saved state back into parameters and optimiser; the counters.

    Raises ModelError if it is of another run.
    """
    path = os.path.join(folder, TENSORS)
    tensors, metadata = read_tensors(path)
    different = run.difference(metadata.get("run", ""))
    if different is not None:
        raise ModelError(
            f"{path}: belongs to another run: {different}; "
            "resume with what it was started with, or train into another directory"
        )
    progress = _progress(path, metadata.get("progress", ""))
    moments = _moments(tensors, trained)
    check_tensors(path, tensors, _expected(tensors, trained, moments), hint="the run")
    _restore_random(path, tensors, next(iter(trained.values())).device)
    with torch.no_grad():
        for name, parameter in trained.items():
            parameter.copy_(tensors[f"parameter.{name}"])
            own = {key: tensors[whole] for key, whole in moments[name].items()}
            optimizer.state[parameter] = {key: value.to(parameter.device) for key, value in own.items()}
    return progress


def _moments(names: Iterable[str], trained: Iterable[str]) -> dict[str, dict[str, str]]:
    """What the optimiser keeps for each parameter, by the names in the file."""
    moments: dict[str, dict[str, str]] = {name: {} for name in trained}
    for whole in names:
        kind, _, rest = whole.partition(".")
        moment, _, name = rest.partition(".")
        if kind == "optimizer" and name in moments:
            moments[name][moment] = whole
    return moments


def _expected(
    names: Iterable[str], trained: Mapping[str, nn.Parameter], moments: Mapping[str, Mapping[str, str]]
) -> dict[str, Tensor]:
    """What a file with these names must hold, by shape and type."""
    expected: dict[str, Tensor] = {"random": torch.get_rng_state()}
    if "random.cuda" in names:
        expected["random.cuda"] = torch.empty(16, dtype=torch.uint8)
    for name, parameter in trained.items():
        expected[f"parameter.{name}"] = parameter
        for moment, whole in moments[name].items():
            expected[whole] = torch.tensor(0.0) if moment == _STEP else parameter
    return expected


def _restore_random(path: str, tensors: Mapping[str, Tensor], device: torch.device) -> None:
    try:
        torch.set_rng_state(tensors["random"])
        if "random.cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random.cuda"], device)
    except RuntimeError as error:
        raise ModelError(f"{path}: its random state is damaged; train again, or resume another run") from error


def has_state(folder: str) -> bool:
    """Whether a run was interrupted in ``folder``."""
    return os.path.exists(os.path.join(folder, TENSORS))


def size_of_state(trained: Mapping[str, nn.Parameter]) -> int:
    """Bytes of state and model, each next to the one before; snapshots (``keep_best``, ``keep_every``) come on top."""
    parameters = sum(parameter.numel() * parameter.itemsize for parameter in trained.values())
    return 2 * 4 * parameters  # parameters and two moments; and the model


def _progress(path: str, counters: str) -> Progress:
    try:
        return TypeAdapter(Progress).validate_json(counters)
    except ValidationError as error:
        raise ModelError(f"{path}: its counters are damaged; train again, or resume another run") from error


_LOCK = ".training.hybridmt.lock"
_WRITTEN = (SETTINGS, PARAMETERS, LEXICON, TENSORS, COUNTERS)


@contextlib.contextmanager
def run_folder(folder: str) -> Iterator[Callable[[], None]]:
    """Make ``folder`` and hold it inside the block; a directory made here that stays empty is removed.

    What it gives raises NmtError where the directory is gone or another one has its name. Raises NmtError when it
    cannot be written, or another run holds it.
    """
    is_new = not os.path.exists(folder)
    try:
        with locked(os.path.join(folder, _LOCK), shown=folder):
            place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)  # open, so that no other directory gets its number
            try:
                yield functools.partial(_check_place, folder, place)
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(_LOCK, dir_fd=place)  # also where the directory has another name now
                os.close(place)
    finally:
        if is_new:
            with contextlib.suppress(OSError):  # it is not empty, as it should be
                os.rmdir(folder)


def _check_place(folder: str, place: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.stat(folder), os.fstat(place)):
            return
    problem = "was removed, or moved away, while the run was at work; nothing more is saved there"
    raise NmtError(f"{folder}: {problem}: move it back and go on with --resume, or train again")


def check_spared(folder: str, read: Iterable[str]) -> None:
    """Raise ConfigError where a run in ``folder`` would write over one of the files or models ``read``."""
    found = overwritten(read, [folder, *(os.path.join(folder, name) for name in _WRITTEN)])
    if found is not None:
        raise ConfigError(f"folder: a run in {folder} would write over {found}; choose another directory")


def check_disk_space(folder: str, size: int) -> None:
    """Take the ``size`` bytes of a run from the disk of ``folder`` and give them back; a state is there perhaps.

    Raises NmtError when they are not there.
    """
    size -= sum(map(os.path.getsize, glob.glob(os.path.join(glob.escape(folder), "*.safetensors"))))
    try:
        with tempfile.TemporaryFile(dir=folder) as stream:  # without a name: nothing is left of it if we are killed
            os.posix_fallocate(stream.fileno(), 0, max(size, 1))
    except OSError as error:
        raise NmtError(
            f"{folder}: cannot hold the {size / 1e9:.2g} GB that a run writes ({error.strerror}); "
            "free some space or choose another directory"
        ) from error
