"""What must be the same for a run to be resumed, and which of it is another.

Settings that decide how parameters change or how users of the model cut text, and the content of what it is made
from. Names of files do not count, their content does; nor does what decides only when a run ends or
which snapshots it keeps; ``average`` does.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt_core.config import dotted
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.text.alignment import pharaoh
from nmt_core.text.processing import TextConfig
from nmt_core.training.config import RunConfig, TrainingConfig
from nmt_core.training.data.corpus import ParallelCorpus
from nmt_core.training.data.stored import Sentences
from nmt_core.training.tasks import Task

_DIGITS = 16  # of a hash
_WITHOUT_EFFECT = {
    "training.max_epochs",
    "training.max_updates",
    "training.max_minutes",
    "training.patience",
    "training.save_every",
    "training.keep_best",
    "training.keep_every",
    "training.start_from",  # its content counts
}


@dataclass(frozen=True)
class RunIdentity:
    """``settings`` by dotted key where they are not the defaults, ``content`` as hashes, ``data`` to explain these."""

    settings: Mapping[str, Any]
    defaults: Mapping[str, Any]
    content: Mapping[str, str]
    data: Mapping[str, Any]

    def to_json(self) -> str:
        """What a saved state remembers."""
        return json.dumps({"settings": self.settings, "content": self.content, "data": self.data}, sort_keys=True)

    def difference(self, saved: str) -> str | None:
        """How the run that is saved as JSON was another, in words; None when it was this one."""
        try:
            then = json.loads(saved)
            settings, content, data = then["settings"], then["content"], then["data"]
            settings, content, data = dict(settings), dict(content), dict(data)
        except (ValueError, KeyError, TypeError, RecursionError):
            return "it was saved by an older version of hybridmt"
        for key in sorted(self.settings.keys() | settings.keys()):
            before, now = (mapping.get(key, self.defaults.get(key)) for mapping in (settings, self.settings))
            if before != now:
                return f"{key} was {_shown(before)} and is {_shown(now)}"
        for key in sorted(self.content.keys() | content.keys()):
            if self.content.get(key) != content.get(key):
                return f"{key} is another{self._because(data)}"
        return None

    def _because(self, before: Mapping[str, Any]) -> str:
        for key in sorted(self.data.keys() | before.keys()):
            if self.data.get(key) != before.get(key):
                return f"; {key} was {_shown(before.get(key))} and is {_shown(self.data.get(key))}"
        return ", since the content of a file changed"


def identity(run: RunConfig, content: Mapping[str, str]) -> RunIdentity:
    """The identity of a run whose texts, vocabularies and first parameters have these hashes."""
    given = run.to_mapping()
    settings = dotted({key: given[key] for key in ("model", "text", "training", "target_order", "copying")})
    defaults = dotted({"model": type(run.model)().to_mapping(), "training": TrainingConfig().to_mapping()})
    defaults |= dotted({"text": TextConfig().to_mapping()})
    defaults["copying"] = None
    defaults["target_order"] = RunConfig.model_fields["target_order"].default.value
    effective = {
        key: value
        for key, value in settings.items()
        if key not in _WITHOUT_EFFECT and (value != defaults.get(key) or key == "model.type")
    }
    return RunIdentity(effective, defaults, content, dotted({"data": run.data.to_mapping()}))


def hash_of_corpus(corpus: ParallelCorpus) -> str:
    """Changes with any word or factor of a corpus; with an unknown word where text is kept."""
    arrays = (array.data for side in (corpus.source, corpus.target) for array in _arrays(side))
    kept = (text for side in (corpus.source, corpus.target) for text in side.texts or ())
    texts = (f"{text}\n".encode("utf-8", "surrogateescape") for text in kept)
    return hash_of_bytes(itertools.chain(arrays, texts))


def _arrays(side: Sentences) -> Sequence[NDArray[np.integer]]:
    return side.ids, side.starts, *side.factors


def hash_of_text(lines: Iterable[str]) -> str:
    """Changes with any line."""
    return hash_of_bytes(f"{line}\n".encode("utf-8", "surrogateescape") for line in lines)


def hash_of_bytes(blocks: Iterable[bytes | memoryview]) -> str:
    """The first hexadecimal digits of SHA-256."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()[:_DIGITS]


def _shown(value: Any) -> str:
    return "not given" if value is None else str(value)


def content_of(run: RunConfig, tasks: Sequence[Task], start: LoadedModel | None) -> dict[str, str]:
    """Hashes of all that is read, by what the user calls it."""
    loaded = tasks[0].loaded
    found = {
        "the source vocabulary": loaded.source.fingerprint,
        "the target vocabulary": loaded.target.fingerprint,
        **{f"the vocabulary of source factor {n}": one.fingerprint for n, one in enumerate(loaded.factors, start=1)},
        "the training text": " ".join(f"{task.weight} {hash_of_corpus(task.corpus)}" for task in tasks),
        "the development set": " ".join(
            hash_of_text([*dev.sources, *dev.references, *map(pharaoh, dev.points or ())]) for dev in tasks[0].dev
        ),
    }
    for config, task in zip(run.tasks, tasks[1:], strict=False):
        words = task.loaded.source.fingerprint, task.loaded.target.fingerprint
        dev = [hash_of_text([*one.sources, *one.references]) for one in task.dev]
        found[f"task {config.name}"] = " ".join([config.share, *words, *dev])
    if loaded.preparation is not None:
        found["the preparation"] = loaded.preparation.fingerprint
    if loaded.lexicon is not None:
        found["the lexicon"] = loaded.lexicon.fingerprint
    if start is not None:
        key = "start_from" if run.training.mask_of is None else "mask_of"
        found[f"the model of training.{key}"] = start.fingerprint
    return found
