"""A recipe: all that makes a hybrid of Moses and a neural model, in one JSON file.

``smt-bridge translate --nbest-output LIST`` writes beside the list of a development set how it was made. ``tune
--recipe`` adds the weights that it found, and ``translate --recipe`` makes such lists and chooses by these weights. A
recipe with guidance has no weights: ``translate --search guidance_weight=W --write-recipe`` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.files import open_output
from nmt_core.files.reading import json_bytes, read_json
from smt_bridge.metadata import OF_THE_MACHINE, first_problem, without_fields
from smt_bridge.moses.process import check_further_options
from smt_bridge.nbest.entry import LARGEST
from smt_bridge.nbest.merge import Columns

MOSES, NEURAL, GRAPH = "moses", "nmt", "graph"
"""The systems whose lists a recipe can merge."""

FORMAT = "hybridmt recipe"
VERSION = 2
Count = Annotated[int, Field(ge=1, le=1_000_000)]
GuidanceNumber = Annotated[float, Field(ge=0.0, le=1000.0)]
Weight = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]


@dataclass(frozen=True)
class GraphSearch:
    """How Moses' search graphs are pruned (``gap``), and how the neural model searches in them."""

    nbest: Count
    beam: Count
    gap: Annotated[float, Field(ge=0.0, le=LARGEST)]


@dataclass(frozen=True)
class GuidanceOptions:
    """``weight`` and ``factors`` are those of the search; a hypothesis of a list weighs exp(``scale`` · total)."""

    weight: GuidanceNumber
    factors: Annotated[tuple[Weight, ...], Field(min_length=1, max_length=9)]
    scale: GuidanceNumber


@dataclass(frozen=True)
class Recipe:
    """How lists are made, what their columns are, and the weights to choose by (None before tuning).

    ``features`` are such as ``smt_bridge.features.registry`` opens. ``signatures`` says what their columns and the
    totals of the neural model depend on. ``columns`` are those of the merged list; empty before the first sentence.
    ``moses_options`` are further words of Moses' command line. ``graph`` is for lists of Moses' search graphs (None:
    there are none). A server runs ``moses_program`` with ``moses_threads`` and ``moses_timeout`` (seconds for a
    sentence); with ``degrade`` the neural model answers alone where Moses cannot be used. With ``guidance`` lists are
    not merged, and there are no weights: Moses' list guides the neural search. ``preparation`` is the
    ``preparation.json`` of Moses' text, "" for that of the neural model (``smt_bridge.running_text``).
    """

    moses_ini: str
    moses_nbest: Count
    moses_factor: Count
    model: str
    beam: Count
    nmt_nbest: Count
    forbid_unknown: bool
    exact: tuple[str, ...]
    features: tuple[str, ...]
    columns: tuple[Columns, ...] = ()
    signatures: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[str, tuple[Weight, ...]] | None = None
    moses_options: tuple[str, ...] = ()
    graph: GraphSearch | None = None
    moses_program: str = "moses"
    moses_threads: Count = 1
    moses_timeout: Annotated[float, Field(gt=0.0, lt=1e9)] = 60.0
    degrade: bool = False
    guidance: GuidanceOptions | None = None
    preparation: str = ""

    @property
    def systems(self) -> tuple[str, ...]:
        """Whose lists are merged, in this order."""
        return (MOSES, NEURAL) if self.graph is None else (MOSES, NEURAL, GRAPH)

    def as_json(self) -> dict[str, Any]:
        """The content of the file."""
        content = asdict(self) | {"columns": [part._asdict() for part in self.columns]}
        return {"format": FORMAT, "version": VERSION, **content}


def write_recipe(path: str, recipe: Recipe) -> None:
    """Write the file. Raises ConfigError as ``check_names``."""
    check_names(recipe)
    with open_output(path) as stream:
        stream.write(json_bytes(recipe.as_json(), indent=1))


def check_names(recipe: Recipe) -> None:
    """Raise ConfigError for a name in the recipe, such as that of a model's folder, that is not UTF-8."""
    text = json.dumps(recipe.as_json(), ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        name = text[text.rindex('"', 0, error.start) + 1 : text.index('"', error.end)]
        raise ConfigError(f"{name}: this name is not UTF-8, and a recipe cannot have it; rename it") from error


def read_recipe(path: str) -> Recipe:
    """Read a file of ``write_recipe``, to translate by it; raises InputError for any other, and without weights."""
    recipe = parse_recipe(read_json(path, remedy="expected a recipe of `smt-bridge tune --recipe`"), path)
    if recipe.weights is None and recipe.guidance is None:
        raise InputError(path, "has no weights; `smt-bridge tune --recipe` writes them")
    return recipe


def parse_recipe(content: Any, path: str) -> Recipe:
    """The recipe in a JSON object; raises InputError, in the name of ``path``, where it is none."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(path, "is not a recipe; `smt-bridge tune --recipe FILE` writes one")
    if content.get("version") != VERSION:
        read = f"this program reads {VERSION}; make it and its lists again"
        raise InputError(path, f"is a recipe of version {content.get('version')!r}; {read}")
    fields = {name: value for name, value in content.items() if name not in ("format", "version")}
    if fields.pop("fill", "last") != "last":
        raise InputError(path, "has a way to fill columns (`fill`) that is gone; make it and its lists again")
    try:
        recipe = TypeAdapter(Recipe).validate_json(json.dumps(fields), strict=True)
    except ValidationError as error:
        raise InputError(path, f"is a damaged recipe ({first_problem(error)}); tune again with --recipe") from error
    _check_columns(recipe, path)
    if recipe.guidance and (recipe.weights or recipe.columns or recipe.features or recipe.exact or recipe.graph):
        raise InputError(
            path, "is a damaged recipe (guidance: expected none beside lists that are merged); write it again"
        )
    try:
        check_further_options(recipe.moses_options, graphs=recipe.graph is not None)
    except ConfigError as error:
        raise InputError(path, f"has options for Moses (moses_options) that cannot be used: {error}") from error
    return recipe


def _check_columns(recipe: Recipe, path: str) -> None:
    systems = tuple(part.system for part in recipe.columns)
    sizes = {(len(part.names) - len(part.renamed), len(part.names) - len(part.arities)) for part in recipe.columns}
    if systems not in ((), recipe.systems) or sizes - {(0, 0)} or (recipe.weights is not None and not systems):
        problem = (
            f"is a damaged recipe (columns: expected those of {' and '.join(recipe.systems)}); tune again with --recipe"
        )
        raise InputError(path, problem)


def check_signatures(recipe: Recipe, found: Mapping[str, str]) -> None:
    """Raise ConfigError where a column would be computed by another model than the weights were tuned with."""
    for name, signature in recipe.signatures.items():
        if name in found and _identity(found[name]) != _identity(signature):
            raise ConfigError(
                f"the column {name} was tuned with another model or setting: {signature}; now it is {found[name]}."
                " Tune again, or bring the old model back"
            )


def _identity(signature: str) -> str:
    """What of a signature has to be the same: the version of the software and the machine may differ."""
    return without_fields(signature, ("version", *OF_THE_MACHINE))
