"""A recipe: all that makes a hybrid of Moses and a neural model, in one JSON file.

``smt-bridge translate --nbest-output LIST`` writes beside the list of a development set how it was made, ``tune
--recipe`` adds the weights that it found, and ``translate --recipe`` makes such lists and chooses by these weights.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nmt_core.errors import ConfigError, InputError
from nmt_core.files import open_output
from smt_bridge.merging import Columns, Fill

FORMAT = "hybridmt recipe"
VERSION = 1


@dataclass(frozen=True)
class Recipe:
    """How lists are made, what their columns are, and the weights to choose by (None before tuning).

    ``features`` are specs of ``smt_bridge.catalogue``; ``signatures`` says what each of their columns depends on.
    ``columns`` are those of the merged list; empty before the first sentence.
    """

    moses_ini: str
    moses_nbest: int
    moses_factor: int
    model: str
    beam: int
    nmt_nbest: int
    forbid_unknown: bool
    fill: Fill
    exact: tuple[str, ...]
    features: tuple[str, ...]
    columns: tuple[Columns, ...] = ()
    signatures: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[str, tuple[float, ...]] | None = None

    def as_json(self) -> dict[str, Any]:
        """The content of the file."""
        content = asdict(self) | {"columns": [part._asdict() for part in self.columns]}
        return {"format": FORMAT, "version": VERSION, **content}


def write_recipe(path: str, recipe: Recipe) -> None:
    """Write the file."""
    with open_output(path) as stream:
        stream.write(json.dumps(recipe.as_json(), indent=1, ensure_ascii=False).encode() + b"\n")


def read_recipe(path: str) -> Recipe:
    """Read a file of ``write_recipe``; raises InputError for any other."""
    try:
        content = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(path, "is not JSON; expected a recipe of `smt-bridge tune --recipe`") from error
    return recipe_of(content, path)


def recipe_of(content: Any, path: str) -> Recipe:
    """The recipe in a JSON object; raises InputError, in the name of ``path``, where it is none."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(path, "is not a recipe; `smt-bridge tune --recipe FILE` writes one")
    if content.get("version") != VERSION:
        raise InputError(path, f"is a recipe of version {content.get('version')!r}; this program reads {VERSION}")
    try:
        return Recipe(
            moses_ini=_text(content["moses_ini"]),
            moses_nbest=_count(content["moses_nbest"]),
            moses_factor=_count(content["moses_factor"]),
            model=_text(content["model"]),
            beam=_count(content["beam"]),
            nmt_nbest=_count(content["nmt_nbest"]),
            forbid_unknown=bool(content["forbid_unknown"]),
            fill=content["fill"] if content["fill"] in ("last", "mean", "zero", "drop") else _refuse(content["fill"]),
            exact=_texts(content["exact"]),
            features=_texts(content["features"]),
            columns=tuple(_columns(part) for part in content["columns"]),
            signatures={_text(name): _text(value) for name, value in content["signatures"].items()},
            weights=None if content["weights"] is None else _weights(content["weights"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(path, f"is a damaged recipe ({error!r}); tune again with --recipe") from error


def check_signatures(recipe: Recipe, found: Mapping[str, str]) -> None:
    """Raise ConfigError where a column would be computed by another model than the weights were tuned with."""
    for name, signature in recipe.signatures.items():
        if name in found and _identity(found[name]) != _identity(signature):
            raise ConfigError(
                f"the column {name} was tuned with another model or setting: {signature}; now it is {found[name]}."
                " Tune again, or bring the old model back"
            )


def _identity(signature: str) -> list[str]:
    """What of a signature has to be the same: the version of the software and the machine may differ."""
    loose = ("version:", "device:", "torch:", "cpu:")
    return [part for part in signature.split("|") if not part.startswith(loose)]


def _columns(part: Mapping[str, Any]) -> Columns:
    arities = tuple(_count(size) for size in part["arities"])
    return Columns(_text(part["system"]), _texts(part["names"]), _texts(part["renamed"]), arities, bool(part["totals"]))


def _weights(content: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    return {_text(name): tuple(float(value) for value in values) for name, values in content.items()}


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(map(_text, values))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _refuse(value)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else _refuse(value)


def _refuse(value: Any) -> Any:
    raise ValueError(f"unexpected value {value!r}")
