"""The command line of Moses: how it is started, and which options commands give themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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


class MosesOptions(NamedTuple):
    """How Moses is started.

    ``factor`` is its ``-n-best-factor``: how many derivations it looks through for each distinct hypothesis.
    ``timeout`` is in seconds, for one sentence; loading has no limit.
    """

    program: str = "moses"
    ini: str = "moses.ini"
    nbest: int = 100
    threads: int = 1
    factor: int = 100
    timeout: float = 60.0
    more: tuple[str, ...] = ()

    def command(self, lists: int, unknowns: int, graphs: int | None = None) -> list[str]:
        """The command line, given file descriptors."""
        graph = [] if graphs is None else ["-output-search-graph-extended", f"/dev/fd/{graphs}"]
        return [
            *(self.program, "-f", self.ini, "-v", "0", "-threads", str(self.threads)),
            *("-n-best-list", f"/dev/fd/{lists}", str(self.nbest), "distinct", "-n-best-factor", str(self.factor)),
            *("-labeled-n-best-list", "true"),  # whatever the ini says
            *("-output-unknowns", f"/dev/fd/{unknowns}", *graph, *self.more),
        ]


def has_words(line: bytes) -> bool:
    """Whether Moses finds a word in a line; a no-break space is one."""
    return bool(line.strip(b" \t\r"))
