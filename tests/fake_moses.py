#!/usr/bin/env python
"""A program with the options and pipes of ``moses`` that translates by a rule and fails when it is told to.

Every word is turned round; the list has that, and the words in the opposite order. Words that do something:

``DIE``    the process kills itself      ``HANG``    it says nothing any more
``SLEEP=S`` it says nothing for S seconds
``SPLIT``  it writes in pieces, with pauses inside characters
``ONCE=F`` it dies unless the file F is there, which it then makes
``FORK=F`` it starts a process that holds its pipes and writes its number into F, and dies
``NOTHING`` the sentence has no translation
``NAN``    the numbers of its list are none
``NOGRAPH``, ``HALF``, ``WRONG`` its search graph is not written, has half of its lines, or other scores
``ONCE-IN-GRAPH=F`` it dies behind half of the graph unless the file F is there, which it then makes

``FAKE_MOSES`` in the environment: ``load-fails`` ends while loading, ``dies`` kills the process at every sentence,
``garbage`` writes a line that is none,
``shifted`` counts sentences from 1, ``weighted`` takes the weights of its ini: its list are the best of all orders of
the words of a short sentence, with three features, whose TM0 has one value more where it has four weights;
``DIE-AT=N`` after it kills the process at sentence N, unless the file ``died`` is there, which it then makes.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import sys
import time
from typing import BinaryIO


def main() -> int:
    """Read sentences, write lists and marks."""
    options = dict(zip(sys.argv[1:], sys.argv[2:], strict=False))
    place = sys.argv.index("-n-best-list")
    lists, marks = sys.argv[place + 1], options.get("-output-unknowns", os.devnull)
    behaviour = os.environ.get("FAKE_MOSES", "")
    if behaviour == "load-fails":
        sys.stderr.write("line 1\nCould not read the phrase table nowhere.gz\n")
        return 1
    graphs = options.get("-output-search-graph-extended", os.devnull)
    with (
        open(lists, "wb", buffering=0) as nbest,
        open(marks, "wb", buffering=0) as unknowns,
        open(graphs, "wb") as graph,
    ):
        for number, line in enumerate(sys.stdin.buffer):
            words = re.findall(r"[^ \t\r\n]+", line.decode("utf-8", "surrogateescape"))
            for word in words:
                act(word)
            if behaviour == "dies":
                act("DIE")
            if behaviour == "garbage":
                nbest.write(b"no list at all\n")
            if behaviour.startswith("weighted"):
                act_at(number, behaviour)
                size = int(sys.argv[place + 2])
                lines = weighted(number, words, options["-f"], size)
            else:
                lines = entry(number + (behaviour == "shifted"), words)
            if graphs != os.devnull:
                write_graph(graph, graph_of(number, words, weights_of(options["-f"])), words)
            if "NOTHING" in words:
                lines = []
            if "NAN" in words:
                lines = [re.sub(r"= \S+", "= nan", line) for line in lines]
            content = "".join(lines).encode("utf-8", "surrogateescape")
            if "SPLIT" in words:
                for begin in range(0, len(content), 7):
                    nbest.write(content[begin : begin + 7])
                    time.sleep(0.002)
            else:
                nbest.write(content)
            unknowns.write(b"\n")
    return 0


def act(word: str) -> None:
    """Do what a word asks for."""
    if word == "DIE":
        os.kill(os.getpid(), signal.SIGKILL)
    elif word == "HANG":
        time.sleep(3600)
    elif word.startswith("SLEEP="):
        time.sleep(float(word[6:]))
    elif word.startswith("ONCE=") and not os.path.exists(word[5:]):
        open(word[5:], "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    elif word.startswith("FORK="):
        child = os.fork()
        if child == 0:
            time.sleep(3600)
        with open(word[5:], "w") as stream:
            stream.write(str(child))
        os.kill(os.getpid(), signal.SIGKILL)


def act_at(number: int, behaviour: str) -> None:
    """Die once, at that sentence."""
    if behaviour.endswith(f"DIE-AT={number}") and not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)


def weights_of(ini: str) -> dict[str, list[float]]:
    """Of each feature."""
    weights = {}
    with open(ini) as stream:
        for line in stream:
            if "= " in line:
                name, _, values = line.partition("#")[0].partition("= ")
                weights[name] = [float(value) for value in values.split()]
    return weights


def graph_of(number: int, words: list[str], weights: dict[str, list[float]]) -> list[str]:
    """The lines of a sentence's graph: a word is turned round, or stays as it is, or becomes two.

    The ini has features and weights in the same order.
    """
    flat = [value for values in weights.values() for value in values]
    lines, last = [f"{number} hyp=0 stack=0 forward=1 fscore=0.000\n"], len(words)
    for place, word in enumerate(words, start=1):
        for choice, target in enumerate([word[::-1], word, f"{word[::-1]} {word}"]):
            known = {"WordPenalty0": [-len(target.split(" "))], "LM0": [-0.5 - choice * place / 8]}
            core = [value for name, row in weights.items() for value in known.get(name, [0.0] * len(row))]
            transition = sum(weight * value for weight, value in zip(flat, core, strict=True))
            recombined = f"recombined={3 * place - 2} " if choice else ""
            numbers = ",".join(f"{value:.3f}" for value in core)
            lines.append(
                f"{number} hyp={3 * place - 2 + choice} stack={place} back={max(0, 3 * place - 5)} score=0.000"
                f" transition={transition:.3f} {recombined}forward={-1 if place == last else 3 * place + 1}"
                f' fscore=0.000 covered={place - 1}-{place - 1} scores="core=({numbers}) " out="{word}|{target}"\n'
            )
    return lines


def write_graph(stream: BinaryIO, lines: list[str], words: list[str]) -> None:
    """As much of it as the words want."""
    whole = lines[: len(lines) // 2] if "HALF" in words else lines
    content = "".join(whole).encode("utf-8", "surrogateescape")
    made = next((word.partition("=")[2] for word in words if word.startswith("ONCE-IN-GRAPH=")), None)
    if "NOGRAPH" in words:
        content = b""
    if "WRONG" in words:
        content = content.replace(b"transition=", b"transition=9")
    dies = made is not None and not os.path.exists(made)
    stream.write(content[: len(content) // 2] if dies else content)
    stream.flush()
    if dies:
        open(str(made), "w").close()
        os.kill(os.getpid(), signal.SIGKILL)


def weighted(number: int, words: list[str], ini: str, size: int) -> list[str]:
    """The best orders of the words: words in their order, words in alphabetical order, words that stay in place."""
    weights, found = weights_of(ini), []
    for order in itertools.permutations(range(len(words))):
        text = [words[place] for place in order]
        features = {
            "LM0": [sum(a <= b for a, b in itertools.pairwise(text)) - len(words)],
            "Distortion0": [-sum(abs(a - b) for a, b in enumerate(order))],
            "TM0": [-sum(a > b for a, b in itertools.pairwise(order)), -len(words)],
        }
        if len(weights["TM0"]) > 3:
            features["TM0"].append(-sum(a > b for a, b in itertools.pairwise(text)))
        used = {name: (weights[name][0], *weights[name][2:]) for name in features}  # of TM0 the second is not shown
        total = sum(w * v for name, row in features.items() for w, v in zip(used[name], row, strict=False))
        shown = " ".join(f"{name}= {' '.join(map(str, row))}" for name, row in features.items())
        found.append((-total, " ".join(text), shown))
    return [f"{number} ||| {text}  ||| {shown} ||| {-cost}\n" for cost, text, shown in sorted(found)[:size]]


def entry(number: int, words: list[str]) -> list[str]:
    """The two lines of a sentence's list."""
    texts = dict.fromkeys([" ".join(word[::-1] for word in words), " ".join(reversed(words))])
    return [
        f"{number} ||| {text}  ||| LM0= -{place}.5 WordPenalty0= -{len(words)} ||| -{place}\n"
        for place, text in enumerate(texts)
    ]


if __name__ == "__main__":
    sys.exit(main())
