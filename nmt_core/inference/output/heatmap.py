"""A picture of the attention weights of a translation, as Figure 3 of Bahdanau et al. 2015.

Source words stand along the top, target words down the side; black is a weight of 0, white of 1. Matplotlib draws it,
imported only when a picture is asked for (extra ``viz``). ``AlignedPair.svg`` needs no library.
"""

from __future__ import annotations

from typing import Any

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.files import open_output
from nmt_core.inference.output.alignment import AlignedPair

_INCHES_PER_WORD = 0.28
_LARGEST = 60.0  # inches; longer sentences get smaller cells


def write_heatmap(path: str, pair: AlignedPair) -> None:
    """Draw the attention of a pair into a PNG."""
    if pair.attention is None:
        raise ConfigError("heat maps need a model with attention (such as rnnsearch); this one has none")
    figure = _draw(pair)
    with open_output(path) as stream:
        figure.savefig(stream, format="png", bbox_inches="tight")


def _draw(pair: AlignedPair) -> Any:
    figure_class = load_figure_class()
    rows, columns = len(pair.target_labels), len(pair.source_labels)
    cell = min(_INCHES_PER_WORD, _LARGEST / max(rows, columns))
    figure = figure_class(figsize=(columns * cell + 1, rows * cell + 1), dpi=100)
    axes = figure.add_subplot()
    axes.imshow(pair.attention, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest", aspect="equal")
    size = min(10.0, cell * 36)
    # parse_math: a dollar sign is a word here.
    axes.set_xticks(range(columns), pair.source_labels, rotation=90, fontsize=size, parse_math=False)
    axes.set_yticks(range(rows), pair.target_labels, fontsize=size, parse_math=False)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    return figure


def load_figure_class() -> Any:
    """Matplotlib's figure without pyplot: no display, no state shared between pictures.

    Raises NmtError where matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NmtError("heat maps need matplotlib: pip install 'hybridmt[viz]'") from error
    return Figure
