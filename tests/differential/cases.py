"""What is asked of a model: options of a search, as the command line, Python and gRPC have them, and drawn lines."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.differential.models import ANNOTATED, FACTORED, RAW, RAW_WORDS, TAGS, WORDS

LINES = 40
WINDOW = 11  # lines of a range: four ranges
Draw = Callable[[random.Random, str], str]  # a line of a file, for a source line


@dataclass(frozen=True)
class Case:
    """One search.

    ``config`` and ``request`` are the same for Python and for gRPC, None where they have no such options. ``markup``
    marks up a source line. Where ``scored``, log-probabilities are what ``score`` gives the texts; where it is
    ``in_company``, what is found depends on the lines that are searched together.
    """

    name: str
    options: tuple[str, ...]
    config: Mapping[str, Any] | None = None
    request: Mapping[str, Any] | None = None
    markup: Draw | None = None
    scored: bool = False
    in_company: bool = False
    dtype: str = "float32"


def _search(name: str, *, served: bool = True, more: Mapping[str, Any] | None = None, **config: Any) -> Case:
    """A search that Python has; ``more`` are further fields of a request."""
    numbers = {"nbest": 3, "max_length_ratio": 1.0, **config}
    unknown = ["--search=forbid_unknown"] if numbers.get("forbid_unknown") else []
    options = [
        f"--{key}={value}" if key in ("beam", "nbest") else f"--search={key}={value}"
        for key, value in numbers.items()
        if key != "forbid_unknown"
    ]
    return Case(name, (*options, *unknown), numbers, {**numbers, **(more or {})} if served else None, scored=True)


def _markup(chance: random.Random, source: str) -> str:
    """The source with a translation of one of its words."""
    words = source.split(" ")
    place, (one, other) = chance.randrange(len(words)), chance.sample(WORDS, 2)
    choice = chance.choice([f'"{one}"', f'"{one}||{other}"', f'"{one}||{other} {one}" prob="0.7||0.3"'])
    words[place] = f"<np translation={choice}>{words[place]}</np>"
    return " ".join(words) if source else ""


_FIVE = ("--beam=5", "--nbest=5", "--search=max_length_ratio=1")


def _typed(dtype: str) -> Case:
    """A plain search in a floating-point format."""
    config = {"beam": 5, "nbest": 5, "max_length_ratio": 1.0}
    return Case(dtype, (*_FIVE, f"--dtype={dtype}"), config, scored=True, dtype=dtype)


SEARCHES = (
    _search("beam 2", beam=2, nbest=2, max_length_ratio=2.0),
    _search("beam 5", beam=5, nbest=5),
    _search("beam 12", beam=12),
    _search("by the root of the length", beam=5, max_length_ratio=1.5, length_normalization=0.5),
    _search("by log p", beam=3, nbest=2, length_normalization=0.0),
    _search("no short ones", served=False, beam=5, min_length=6),
    Case("samples", ("--search=samples=3", "--search=seed=5", "--search=max_length_ratio=1"), scored=True),
    Case(
        "warm samples",
        ("--search=samples=3", "--search=temperature=1.5", "--search=max_length_ratio=1"),
        scored=True,
    ),
    _typed("bfloat16"),
    _typed("float64"),
)
NO_UNKNOWN = _search("no <unk>", beam=4, nbest=4, max_length_ratio=0.5, forbid_unknown=True)
MARKUP = tuple(
    Case(f"{kind} markup", (*_FIVE, f"--xml-input={kind}"), markup=_markup)
    for kind in ("exclusive", "inclusive", "ignore")
)
CANDIDATES = Case("candidates", (*_FIVE, "--search=candidates=20"), in_company=True)
REPLACED = Case(
    "replaced",
    (*_FIVE, "--replace-unk=copy"),
    request={"beam": 5, "nbest": 5, "max_length_ratio": 1.0, "replace_unknown": True},
)


def cases_of(name: str, *, attends: bool, spells: bool) -> Iterator[Case]:
    """All that such a model takes."""
    plain = name not in (*ANNOTATED, *RAW)
    yield from SEARCHES
    yield from [CANDIDATES] if not spells else []
    yield from [NO_UNKNOWN] if name not in ANNOTATED else []
    yield from MARKUP if plain else ()
    yield from [REPLACED] if attends and not spells else []


def draw_sources(chance: random.Random, name: str) -> list[str]:
    """Lines of words, some of which the model does not know."""
    return [draw_line(chance, name) for _ in range(LINES)]


def draw_line(chance: random.Random, name: str) -> str:
    """One of them."""
    known = RAW_WORDS if name in RAW else WORDS
    words = [chance.choice(known) for _ in range(chance.randint(1, 7))]
    words = [f"x{chance.randrange(30)}" if chance.random() < 0.15 else word for word in words]
    return " ".join(f"{word}|{chance.choice(TAGS)}" if name in FACTORED else word for word in words)
