#!/usr/bin/env python
"""Sentence pairs of one topic, and long ones, held out of the training text of Multi30k before it is aligned.

    held_out_sentences.py --data DIR --out OUT

DIR has train.tok.{en,fr}.gz and may have train.fr.gz, the same lines as running text; else French is detokenised.
A pair with a word of TOPIC in English is of the part topic, another of LONG English words or more of the part long,
the rest is train. OUT/*.tok.{en,fr}.gz and the running text OUT/{topic,long}.fr.gz have all pairs of train, and the
first 1,000 of the others. Pairs with an empty side or more than 80 words are in no part. The sizes are printed as
Markdown; unseen is the share of running words that are not in train. Marks are words, too.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from nmt_core.base.words import split_words
from nmt_core.files import open_output, read_parallel_lines, write_lines
from nmt_core.text.processing import TextConfig, TextProcessor

TOPIC = re.compile(  # sports of two teams with a ball or a puck
    r"\b(soccer|footballs?|footballers?|baseball|basketballs?|hockey|volleyball|softball|rugby|lacrosse|cricket|handball"
    r"|goalie|goalkeeper|pucks?|umpire|quarterbacks?|outfielders?|infielder)\b",
    re.IGNORECASE,
)
LONG, LONGEST = 22, 80  # words: of an English side; of any side
TEST = 1000  # pairs


def read_pairs(data: Path) -> Iterator[tuple[str, ...]]:
    """English words, French words, French running text. Raises InputError for files of unequal length."""
    words, running = [str(data / f"train.tok.{language}.gz") for language in ("en", "fr")], data / "train.fr.gz"
    if running.exists():
        yield from read_parallel_lines([*words, str(running)])
    else:
        processor = TextProcessor(TextConfig(source_language="fr", target_language="fr"))
        yield from ((en, fr, processor.detokenize(fr)) for en, fr in read_parallel_lines(words))


def part_of(english: str, french: str) -> str | None:
    """``topic``, ``long``, ``train``, or none."""
    sizes = [len(split_words(side)) for side in (english, french)]
    if min(sizes) == 0 or max(sizes) > LONGEST:
        return None
    if TOPIC.search(english):
        return "topic"
    return "long" if sizes[0] >= LONG else "train"


def main() -> None:
    """Write the parts, and print their sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="OUT")
    args = parser.parse_args()
    parts: dict[str | None, list[tuple[str, ...]]] = {"train": [], "topic": [], "long": [], None: []}
    for pair in read_pairs(args.data):
        parts[part_of(*pair[:2])].append(pair)
    args.out.mkdir(parents=True, exist_ok=True)
    known = [{word for pair in parts["train"] for word in split_words(pair[side])} for side in (0, 1)]
    print("| part | pairs | written | English words | a pair | unseen | French words | a pair | unseen |")
    print("|---" * 9 + "|")
    for name in ("train", "topic", "long"):
        written = parts[name] if name == "train" else parts[name][:TEST]
        for place, ending in enumerate(["tok.en", "tok.fr"] if name == "train" else ["tok.en", "tok.fr", "fr"]):
            with open_output(str(args.out / f"{name}.{ending}.gz")) as stream:
                write_lines(stream, [pair[place] for pair in written])
        row = f"| {name} | {len(parts[name]):,} | {len(written):,} |"
        for side in (0, 1):
            words = [word for pair in written for word in split_words(pair[side])]
            unseen = sum(word not in known[side] for word in words) / len(words)
            row += f" {len(words):,} | {len(words) / len(written):.1f} | {unseen:.2%} |"
        print(row)


if __name__ == "__main__":
    main()
