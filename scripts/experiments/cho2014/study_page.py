"""The page, and the files for papers, of what ``table_study`` found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nmt_core.base.messages import counted
from scripts.experiments.cho2014.table_study import (
    CELLS,
    CLASSES,
    LOWEST,
    Outlier,
    SignTest,
    Source,
    Study,
    Target,
    differences,
    spearman_of_cells,
)
from smt_bridge.metadata import Metadata
from smt_bridge.report.page import density, listed, page, pairs, section, table, text

_TIE, _KNOWN = "\u00a0=", "\u00a0*"  # no line begins with a mark
_KINDS = ("frequent", "rare")


class Drawn(NamedTuple):
    """Targets that the model proposed for a source, the likeliest first, and whether the table has them."""

    source: str
    targets: list[tuple[str, float, bool]]


def tsv(rows: Sequence[Sequence[str]]) -> str:
    """A line for each row, with tabs between its cells; a tab within a cell becomes a blank."""
    return "".join("\t".join(cell.replace("\t", " ") for cell in row) + "\n" for row in rows)


def claims(found: Study, drawn: Sequence[Drawn]) -> dict[str, Any]:
    """What the paper says of the model, as numbers: of the pool, or of all pairs by source count."""
    follows = [model for model, _ in found.follows]
    measured: dict[str, Any] = {
        "shorter": {"claim": "prefers shorter phrases in general", **_tested(differences(found.lengths)),
                    "unit": "words of the model's first target less those of phi's first"},
        "literal": {"claim": "closer to actual or literal translations", **_tested(differences(found.literal)),
                    "unit": "ln lex(target|source) per word of the model's first target less that of phi's first"},
        "frequencies": {"claim": "does not simply learn the frequencies",
                        **_tested(differences([model - phi for model, phi in found.follows])),
                        "model": _mean(follows), "phi": _mean([phi for _, phi in found.follows]),
                        "unit": "rank correlation with the joint counts within a source: model's less phi's"},
        "rare": {"claim": "phi is badly estimated for rare phrases",
                 "unit": "rank correlation of ln phi and ln p over all pairs, by source count (in cells of Figure 3)",
                 "by_count": {_class_name(place): spearman_of_cells(found.histograms[place])
                              for place in range(len(CLASSES))}},
    }  # fmt: skip
    if drawn:
        shares = [sum(known for *_, known in one.targets) / len(one.targets) for one in drawn if one.targets]
        measured["overlap"] = {"claim": "proposals do not overlap completely with the table",
                               "share": _mean(shares), "sources": len(shares),
                               "unit": "share of the proposed targets that the table has"}  # fmt: skip
    return measured


def study_page(
    found: Study,
    metadata: Metadata,
    drawn: Sequence[Drawn],
    *,
    top: int,
    path: str,
    maps: Sequence[str] = (),
) -> str:
    """The whole page; ``maps`` are sections of their own."""
    pool = found.pool
    seen = ", ".join(f"{found.pool_sources[kind]:,} {kind}" for kind in _KINDS)
    parts = [
        section(
            "The targets that either score likes best",
            *(_best_of(kind, found.chosen[kind], top) for kind in _KINDS),
            remark=f"Cho et al. 2014, Table 2. Source phrases of at least {pool.minimum_words} words with at least 3"
            f" targets, drawn at random (seed {pool.seed}) from {seen} ones: {pool.frequent} occurrences or more,"
            f" {pool.rare} or fewer. By phi(target|source) and by the model; '{_TIE.strip()}' marks a target with"
            " the same phi as the one before it, ordered by count, then by text.",
        ),
        *([_proposals(drawn)] if drawn else []),
        section("What the paper claims, measured here", _claims_table(claims(found, drawn))),
        section(
            "Figure 3: all pairs by both scores",
            '<div class="columns">' + "".join(_panels(found)) + "</div>",
            remark="ln phi(target|source) against ln p of the model, by how often the source was seen: where that is"
            f" once, phi is 1 or a simple fraction. The stronger the colour, the more pairs; what is below"
            f" {LOWEST[0]:g} or {LOWEST[1]:g} lies in the border cells.",
        ),
        *maps,
        section("Pairs that the model likes much better than the table", _outliers(found.model_likes)),
        section("Pairs that the table likes much better than the model", _outliers(found.table_likes)),
        section("What was looked at", pairs(_counted(found, metadata))),
    ]
    return page("What the model knows of the phrase table", path, parts)


def data_files(found: Study, drawn: Sequence[Drawn], *, top: int) -> dict[str, str]:
    """Names and contents of the files for papers, but for the claims."""
    rows = [("kind", "source", "count", "rank", "by_phi", "ln_phi", "tied", "by_model", "ln_p")]
    for kind in _KINDS:
        for source in found.chosen[kind]:
            both = zip(source.by_phi, source.by_model, strict=True)
            ties = _ties(source.by_phi)
            for rank, (phi, model) in enumerate(list(both)[:top], start=1):
                rows.append((kind, source.text, f"{source.seen:g}", str(rank), phi.text, f"{phi.phi:.6f}",
                             str(int(ties[rank - 1])), model.text, f"{model.model:.6f}"))  # fmt: skip
    cells = [("source_count", "ln_phi", "ln_p", "pairs")]
    for place in range(len(CLASSES)):
        for across, up in zip(*found.histograms[place].nonzero(), strict=True):
            middle = [LOWEST[axis] * (1 - (cell + 0.5) / CELLS) for axis, cell in enumerate((across, up))]
            number = str(int(found.histograms[place][across, up]))
            cells.append((_class_name(place), f"{middle[0]:.4f}", f"{middle[1]:.4f}", number))
    files = {"table2.tsv": tsv(rows), "figure3.tsv": tsv(cells)}
    if drawn:
        proposed = [("source", "rank", "target", "ln_p", "in_table")]
        for one in drawn:
            for rank, (target, log_prob, known) in enumerate(one.targets, start=1):
                proposed.append((one.source, str(rank), target, f"{log_prob:.6f}", str(int(known))))
        files["table3.tsv"] = tsv(proposed)
    return files


def _class_name(place: int) -> str:
    low, high = CLASSES[place]
    return f"≥ {low}" if high is None else str(low) if low == high else f"{low} to {high}"


def _tested(found: SignTest) -> dict[str, Any]:
    return {"mean": found.mean, "below": found.below, "above": found.above, "p": found.p_value}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _ties(targets: Sequence[Target]) -> list[bool]:
    """Whether each has the phi of the one before it."""
    return [place > 0 and target.phi == targets[place - 1].phi for place, target in enumerate(targets)]


def _best_of(kind: str, sources: Sequence[Source], top: int) -> str:
    rows = []
    for source in sources:
        phi = [one.text + _TIE * tied for one, tied in zip(source.by_phi, _ties(source.by_phi), strict=True)]
        model = [one.text for one in source.by_model]
        shown = (source.text, round(source.seen), listed(phi[:top]), listed(model[:top]))
        rows.append(shown)
    heads = ("source", "seen", "by the table", "by the model")
    return f"<h3>Long, {kind} source phrases</h3>" + (table(heads, rows) if rows else "<p>There is none.</p>")


def _proposals(drawn: Sequence[Drawn]) -> str:
    rows = [(one.source, listed(target + _KNOWN * known for target, _, known in one.targets)) for one in drawn]
    return section(
        "What the model proposes",
        table(("source", "targets, the likeliest first"), rows),
        remark="Cho et al. 2014, Table 3: the likeliest of the targets drawn for the same sources;"
        f" '{_KNOWN.strip()}' marks what the table has.",
    )


def _claims_table(measured: Mapping[str, Mapping[str, Any]]) -> str:
    rows = []
    for one in measured.values():
        if "by_count" in one:
            value = "; ".join(f"{name}: {number:.2f}" for name, number in one["by_count"].items())
            tested = ""
        elif "share" in one:
            value, tested = f"{one['share']:.2f} of {counted(one['sources'], 'source')}", ""
        else:
            value = f"{one['mean']:+.3f}"
            tested = f"{one['below']:,} below 0, {one['above']:,} above, p {one['p']:.3g}"
        rows.append((one["claim"], one["unit"], value, tested))
    return table(("claim", "measured as", "found", "sign test"), rows)


def _panels(found: Study) -> list[str]:
    drawings = [("source seen once", found.histograms[0])]
    drawings += [
        (f"source seen {_class_name(place)} times", found.histograms[place]) for place in range(1, len(CLASSES))
    ]
    drawings.append((f"sources of {found.pool.minimum_words} words or more", found.long_histogram))
    return [
        f"<figure><figcaption>{text(title)}: {counted(int(counts.sum()), 'pair')}</figcaption>"
        + density(counts, low=LOWEST, high=(0.0, 0.0), title=title, names=("ln phi", "ln p of the model"))
        + "</figure>"
        for title, counts in drawings
        if counts.any()
    ]


def _outliers(found: Sequence[Outlier]) -> str:
    rows = [(one.source, one.target, one.phi, one.model, round(one.seen)) for one in found]
    return table(("source", "target", "ln phi", "ln p of the model", "source seen"), rows)


def _counted(found: Study, metadata: Metadata) -> list[tuple[str, str]]:
    signature = (metadata.signatures or {}).get("scorer", "")
    return [
        ("pairs", f"{found.lines:,}"),
        ("sources", f"{found.sources:,}"),
        (f"of {found.pool.minimum_words} words or more", f"{found.long_sources:,}"),
        ("the model", f'<span class="signature">{text(signature)}</span>'),
    ]
