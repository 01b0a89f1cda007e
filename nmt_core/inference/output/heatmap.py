"""A picture of the attention weights of a translation, as Figure 3 of Bahdanau et al. 2015.

Source words stand along the top, target words down the side. An SVG is the drawing of ``attention_svg``. In a PNG black
is a weight of 0, white of 1; matplotlib draws it, imported only when a picture is asked for (extra ``viz``).
"""

from __future__ import annotations

import os
from typing import Any

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.files import open_output
from nmt_core.inference.output.attention_svg import attention_svg
from nmt_core.inference.output.finish import Translation

FORMATS = ("png", "svg")

_INCHES_PER_WORD = 0.28
_LARGEST = 60.0  # inches; longer sentences get smaller cells


def write_heatmap(path: str, translation: Translation) -> None:
    """Draw ``translation.attention`` into ``path``; its suffix (.png, .svg) says the format."""
    kind = os.path.splitext(path)[1].lstrip(".").lower()
    if kind not in FORMATS:
        raise ConfigError(f"{path}: heat maps are written as {', '.join(FORMATS)}; end the name with one of them")
    weights = translation.attention
    if weights is None:
        raise ConfigError("heat maps need a model with attention (such as rnnsearch); this one has none")
    if kind == "svg":
        drawing = attention_svg(
            weights.tolist(), translation.source_labels, translation.target_labels, namespace=True
        ).encode("utf-8", "surrogatepass")
        with open_output(path) as stream:
            stream.write(drawing)
        return
    figure = _draw(translation)
    with open_output(path) as stream:
        figure.savefig(stream, format="png", bbox_inches="tight")


def _draw(translation: Translation) -> Any:
    figure_class = load_figure_class()
    rows, columns = len(translation.target_labels), len(translation.source_labels)
    cell = min(_INCHES_PER_WORD, _LARGEST / max(rows, columns))
    figure = figure_class(figsize=(columns * cell + 1, rows * cell + 1), dpi=100)
    axes = figure.add_subplot()
    axes.imshow(translation.attention, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest", aspect="equal")
    size = min(10.0, cell * 36)
    # parse_math: a dollar sign is a word here.
    axes.set_xticks(range(columns), translation.source_labels, rotation=90, fontsize=size, parse_math=False)
    axes.set_yticks(range(rows), translation.target_labels, fontsize=size, parse_math=False)
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
