#!/usr/bin/env python
"""A program with the options and pipes of ``moses`` that translates by a rule and fails when it is told to.

Every word is turned round; the list has that, and the words in the opposite order. Words that do something:

``DIE``    the process kills itself      ``HANG``    it says nothing any more
``SPLIT``  it writes in pieces, with pauses inside characters
``ONCE=F`` it dies unless the file F is there, which it then makes
``FORK=F`` it starts a process that holds its pipes and writes its number into F, and dies

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


def main() -> int:
    """Read sentences, write lists and marks."""
    options = dict(zip(sys.argv[1:], sys.argv[2:], strict=False))
    place = sys.argv.index("-n-best-list")
    lists, marks = sys.argv[place + 1], options.get("-output-unknowns", os.devnull)
    behaviour = os.environ.get("FAKE_MOSES", "")
    if behaviour == "load-fails":
        sys.stderr.write("line 1\nCould not read the phrase table nowhere.gz\n")
        return 1
    with open(lists, "wb", buffering=0) as nbest, open(marks, "wb", buffering=0) as unknowns:
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


def weighted(number: int, words: list[str], ini: str, size: int) -> list[str]:
    """The best orders of the words: words in their order, words in alphabetical order, words that stay in place."""
    weights = {}
    with open(ini) as stream:
        for line in stream:
            if "= " in line:
                name, _, values = line.partition("#")[0].partition("= ")
                weights[name] = [float(value) for value in values.split()]
    found = []
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
