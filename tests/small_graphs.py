"""Small search graphs as Moses writes them, and all their derivations by enumeration."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

INI = """[feature]
UnknownWordPenalty
WordPenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=2 path=table input-factor=0 output-factor=0
KENLM name=LM0 factor=0 path=lm order=3

[weight]
LM0= 0.5
WordPenalty0= -0.3
TranslationModel0= 0.2 0.7
"""
WEIGHTS = (1.0, -0.3, 0.2, 0.7, 0.5)


class Arc(NamedTuple):
    start: int
    end: int
    words: str
    values: tuple[float, ...]

    @property
    def score(self) -> float:
        return sum(weight * value for weight, value in zip(WEIGHTS, self.values, strict=True))


class SmallGraph(NamedTuple):
    """Nodes 0 … nodes-1, of which ``complete`` are complete; the end is one more node."""

    sentence: int
    nodes: int
    arcs: tuple[Arc, ...]
    complete: tuple[int, ...]

    def text(self) -> str:
        def forward(node: int) -> int:
            return -1 if node in self.complete else node + 1

        lines = [f"{self.sentence} hyp=0 stack=0 forward={forward(0)} fscore=-1.5"]
        seen, new = {0}, self.nodes
        for arc in self.arcs:
            hypothesis, recombined = arc.end, ""
            if arc.end in seen:
                hypothesis, new, recombined = new, new + 1, f"recombined={arc.end} "
            seen.add(arc.end)
            core = ",".join(f"{value:.3f}" for value in arc.values)
            lines.append(
                f"{self.sentence} hyp={hypothesis} stack={arc.end} back={arc.start} score=-1.000"
                f" transition={arc.score:.3f} {recombined}forward={forward(arc.end)} fscore=-2.000 covered=0-0"
                f' scores="core=({core}) " out="wort|{arc.words}"'
            )
        return "\n".join(lines) + "\n"

    def derivations(self) -> list[tuple[tuple[str, ...], tuple[Arc, ...]]]:
        """The words and arcs of all paths."""
        return [(tuple(word for arc in path for word in arc.words.split()), path) for path in self._paths(0)]

    def _paths(self, node: int) -> Iterator[tuple[Arc, ...]]:
        if node in self.complete:
            yield ()
        for arc in self.arcs:
            if arc.start == node:
                yield from ((arc, *rest) for rest in self._paths(arc.end))

    def best_strings(self) -> dict[tuple[str, ...], float]:
        """Every string with the score of its best derivation."""
        found: dict[tuple[str, ...], float] = {}
        for words, path in self.derivations():
            score = sum(arc.score for arc in path)
            found[words] = max(score, found.get(words, score))
        return found


def random_graph(seed: int, *, nodes: int = 6, arcs: int = 14, words: str = "abc", sentence: int = 0) -> SmallGraph:
    """A connected graph with phrases of 0 to 3 words, few words, and several complete nodes."""
    chance = random.Random(seed)
    pairs = [(chance.randrange(node), node) for node in range(1, nodes)]
    pairs += [tuple(sorted(chance.sample(range(nodes), 2))) for _ in range(max(0, arcs - len(pairs)))]
    made = []
    for start, end in pairs:
        phrase = " ".join(chance.choice(words) for _ in range(chance.choice((0, 1, 1, 2, 3))))
        values = tuple(round(chance.uniform(-3, 0), 3) for _ in WEIGHTS)
        made.append(Arc(start, end, phrase, values))
    made.sort(key=lambda arc: arc.end)
    complete = {nodes - 1, *(node for node in range(nodes) if not any(arc.start == node for arc in made))}
    return SmallGraph(sentence, nodes, tuple(made), tuple(sorted(complete)))


def write_ini(folder: Path) -> str:
    path = folder / "moses.ini"
    path.write_text(INI)
    return str(path)
