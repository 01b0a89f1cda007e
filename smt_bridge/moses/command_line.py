"""Options of Moses' command line that commands give themselves."""

from __future__ import annotations

from collections.abc import Sequence

from nmt_core.base.errors import ConfigError

_GIVEN_HERE = {
    ("-f", "-config"): "give --moses-ini",
    ("-threads", "-th"): "give --moses-threads",
    ("-n-best-list", "-n-best-factor"): "the options of this command say how long the lists are",
    (
        "-i",
        "-input-file",
        "-start-translation-id",
    ): "sentences go to Moses' standard input, and lists are counted from 0",
    ("-output-unknowns", "-v", "-verbose"): "this program reads them",
    ("-labeled-n-best-list",): "features of lists need their names",
}  # Moses takes the first of two, and reads another text with -i
_GRAPHS = ("-output-search-graph", "-osg", "-output-search-graph-extended", "-osgx")


def check_further_options(words: Sequence[str], *, graphs: bool) -> None:
    """Raise ConfigError for options among these words of Moses' command line that it gets from here.

    ``graphs``: search graphs are read.
    """
    given_here = _GIVEN_HERE | ({_GRAPHS: "this program reads search graphs"} if graphs else {})
    for names, remedy in given_here.items():
        given = next((word for word in words if word in names), None)
        if given is not None:
            raise ConfigError(f"leave out {given}: {remedy}")
