"""Features of a phrase-based system that can be computed for any hypothesis: its language model, its word penalty."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.kenlm import NgramModel
from smt_bridge.metadata import field_of, file_fingerprint, known_columns, signature_of
from smt_bridge.nbest.merge import Columns, ExactValue

_SIGNATURE = "exact"  # the feature that signatures of recomputed columns name

_WORD_PENALTY = "WordPenalty"
_OF_A_DERIVATION = ("UnknownWordPenalty", "PhrasePenalty", "Distortion")  # not of its words alone


def exact_values(options: Sequence[str], columns: Sequence[Columns]) -> dict[str, ExactValue]:
    """From options ``WordPenalty0`` and ``LM0=FILE`` to functions; raises ConfigError for what no list has."""
    arities = {name: size for part in columns for name, size in zip(part.renamed, part.arities, strict=True)}
    values: dict[str, ExactValue] = {}
    for option in options:
        name, equals, path = option.partition("=")
        if arities.get(name) != 1:
            known = ", ".join(name for name, size in arities.items() if size == 1)
            raise ConfigError(f"--exact {name}: no list has such a feature of one value; there are {known}")
        problem = "is given twice; give it once" if name in values else _problem(name, path if equals else None)
        if problem is not None:
            raise ConfigError(f"--exact {name} {problem}")
        values[name] = _by_kenlm(path) if equals else _word_penalty
    return values


def exact_signatures(options: Sequence[str]) -> dict[str, str]:
    """What the columns that ``exact_values`` computes depend on, by name."""
    named = [option.partition("=") for option in options]
    models = {name: {"model": file_fingerprint(path)} if path else {} for name, _, path in named}
    return {name: signature_of(_SIGNATURE, **model) for name, model in models.items()}


def is_word_penalty(name: str) -> bool:
    """Whether a feature of this name is taken for the word penalty of a decoder; other systems' names are longer."""
    return _kind(name).endswith(_WORD_PENALTY) and not _kind(name).endswith(_OF_A_DERIVATION)


def _kind(name: str) -> str:
    return name.rstrip("0123456789")


def recomputed_columns(nbest: str) -> tuple[str, ...]:
    """The columns of a merged list that ``exact_values`` computed, by its usable metadata."""
    known = known_columns(nbest).items()
    return tuple(name for name, signature in known if field_of(signature, "feature") == _SIGNATURE)


def _problem(name: str, path: str | None) -> str | None:
    """What is wrong with ``NAME=FILE``, or ``NAME`` where the path is None."""
    if _kind(name).endswith(_OF_A_DERIVATION):
        return "cannot be computed from the words of a hypothesis; a language model's feature and WordPenalty0 can"
    if is_word_penalty(name):
        return None if path is None else f"counts words and reads no file: leave out ={path}"
    if path is None:
        return f"needs a language model: {name}=FILE (only WordPenalty0 needs none)"
    return None if path else "has no file behind '='; give NAME=FILE"


def _word_penalty(text: str) -> float:
    return -float(len(text.split(" "))) if text else 0.0


def _by_kenlm(path: str) -> ExactValue:
    model = NgramModel(path)

    @functools.lru_cache(maxsize=1 << 16)
    def log_prob(text: str) -> float:
        return model.log_prob(text.split(" ") if text else [])

    return log_prob
