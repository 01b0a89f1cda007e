"""The maps of a model's vectors, for the page and for papers: Figures 4 and 5 of Cho et al. 2014."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nmt_core.base.messages import counted
from scripts.experiments.cho2014.maps import Map, Shares
from scripts.experiments.cho2014.scatter import scatter
from scripts.experiments.cho2014.study_page import tsv
from smt_bridge.report.page import listed, section, table, text

ZOOMED = 40  # points of a part of a map


class Measured(NamedTuple):
    """What is near to what: for the model's vectors and, where words have vectors, for their sums (bags of words).

    ``told_apart`` is the share of ``reordered`` pairs of phrases, which have the same words in another order, that are
    not among each other's nearest; None without such pairs.
    """

    phrases: Shares
    bags: Shares | None
    told_apart: float | None
    reordered: int


class Maps(NamedTuple):
    """Both maps, parts of the second by the phrase they are around, and how they were made."""

    words: Map | None
    phrases: Map
    zooms: Sequence[tuple[str, Map]]
    measured: Measured
    made: str


def map_sections(found: Maps) -> list[str]:
    """The sections of the page."""
    sections = []
    if found.words is not None:
        drawing = scatter(found.words.texts, found.words.places_N2, title="map of words")
        remark = f"Cho et al. 2014, Figure 4: the {len(found.words.texts):,} most frequent words. {found.made}"
        sections.append(section("Figure 4: a map of words", drawing, remark=remark))
    named = [phrase for phrase, _ in found.zooms]
    drawing = scatter(found.phrases.texts, found.phrases.places_N2, title="map of phrases", marked=named)
    remark = f"Cho et al. 2014, Figure 5: {len(found.phrases.texts):,} source phrases of the table. {found.made}"
    parts = [drawing]
    for phrase, part in found.zooms:
        nearest = scatter(part.texts, part.places_N2, title=f"near {phrase}", marked=[phrase])
        summary = f"<summary>{counted(len(part.texts), 'phrase')}, the nearest on the map first</summary>"
        listing = f"<details>{summary}<p>{listed(map(text, part.texts))}</p></details>"
        parts.append(f"<h3>Near “{text(phrase)}”</h3>{nearest}{listing}")
    sections.append(section("Figure 5: a map of phrases", *parts, remark=remark))
    remark = "A map proves nothing: these are shares of the 10 nearest neighbours in all numbers of a vector."
    sections.append(section("What is near to what", _shares_table(found.measured), remark=remark))
    return sections


def map_claims(found: Maps) -> dict[str, Any]:
    """For claims.json."""
    measured = found.measured
    claim: dict[str, Any] = {
        "claim": "vectors of phrases tell of meaning and order",
        "unit": "share of the 10 nearest neighbours that have it in common",
        "points": len(found.phrases.texts),
        "phrases": measured.phrases._asdict(),
    }
    if measured.bags is not None:
        claim["bags_of_words"] = measured.bags._asdict()
    if measured.told_apart is not None:
        claim["other_order_not_near"] = {"share": measured.told_apart, "pairs": measured.reordered}
    return {"neighbours": claim}


def map_files(found: Maps) -> dict[str, str]:
    """Names and contents of the files for papers."""
    files = {"figure5.tsv": _points("phrase", found.phrases)}
    if found.words is not None:
        files["figure4.tsv"] = _points("word", found.words)
    return files


def _points(head: str, found: Map) -> str:
    rows = zip(found.texts, found.places_N2.tolist(), strict=True)
    return tsv([(head, "x", "y"), *((one, f"{x:.4f}", f"{y:.4f}") for one, (x, y) in rows)])


def _shares_table(measured: Measured) -> str:
    names = ("the same last word", "the same first word", "as many words")
    columns = [measured.phrases, *([] if measured.bags is None else [measured.bags])]
    rows: list[tuple[object, ...]] = [
        (name, *(float(one) for one in values)) for name, *values in zip(names, *columns, strict=True)
    ]
    heads = ["neighbours with", "the model's vectors", *([] if measured.bags is None else ["sums of word vectors"])]
    found = table(heads, rows)
    if measured.told_apart is None:
        return found
    pairs = counted(measured.reordered, "pair")
    remark = f"Of {pairs} of phrases of the same words in another order {measured.told_apart:.0%}"
    return f"{found}<p>{text(remark)} are not among each other's nearest; as sums of words none would be.</p>"
