#!/usr/bin/env python
"""A third of a mixed text trains a model: taken at random, or by `nmt-core prepare select`.

    selected_third.py --data DIR --messages DIR --out runs/selection random axelrod moore-lewis all
    selected_third.py --data DIR --out runs/selection --table

--data has {train,val}.tok.{en,fr}.gz and val.fr.gz of Multi30k; below --messages are French translations of programs,
*.mo. OUT/mixture.{en,fr} is made of both, shuffled; OUT/domain.{en,fr} is other pairs of Multi30k, the sample of the
domain. OUT/SEED/ROW.{en,fr} is what a row trains on, OUT/SEED/ROW its model, OUT/SEED/ROW.out its translation of val
(beam 4), and OUT/SEED/ROW.json what was measured. The seed is for training, the random third, and the sample
of general text. What is finished is not done again.
"""

from __future__ import annotations

import argparse
import gettext
import json
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from nmt_core.base.errors import NmtError
from nmt_core.base.words import split_words
from nmt_core.device import has_bfloat16
from nmt_core.files import open_output, read_text_lines, write_lines
from nmt_core.text.vocabulary import Vocabulary
from smt_bridge.metrics.references import detokenizer
from smt_bridge.metrics.significance import compare, sacrebleu_metric

ROWS = {
    "random": "a third at random",
    "moore-lewis": "Moore and Lewis, by the English side",
    "axelrod": "Axelrod et al., by both sides",
    "all": "the whole mixture",
}
DOMAIN, NEAR, FAR = 2000, 20000, 40000  # pairs: the domain's sample; of the mixture from the domain, and messages
_KEY_MARK = re.compile(r"[_~&](?=\w)")  # before the letter that is a key
_MARKUP = re.compile(r"<[^<>]*>")
Found = dict[str, Any]


def messages(folder: Path) -> Iterator[tuple[str, str]]:
    """Translated messages with letters, without markup and marks of keys; of plurals the first form."""
    for path in sorted(folder.rglob("*.mo")):
        with path.open("rb") as stream:
            translations: dict[Any, str] = getattr(gettext.GNUTranslations(stream), "_catalog", {})
        for key, translation in translations.items():
            message, form = key if isinstance(key, tuple) else (key, 0)
            sides = (message.rpartition("\x04")[2], translation)  # what stands before it is its context
            english, french = (" ".join(_KEY_MARK.sub("", _MARKUP.sub("", side)).split()) for side in sides)
            if form == 0 and english != french and all(re.search(r"[^\W\d_]{2}", side) for side in (english, french)):
                yield english, french


class Experiment:
    """Makes rows in ``out``."""

    def __init__(self, out: Path, data: Path, folder: Path, updates: int) -> None:
        self.out, self.data, self.folder, self.updates = out, data, folder, updates
        self.mixture, self.domain = out / "mixture", out / "domain"

    def mix(self) -> None:
        """Write the domain's sample and the mixture."""
        if Path(f"{self.mixture}.fr").exists():
            return
        draw, raw, clean = random.Random(1), self.out / "raw" / "messages", self.out / "clean" / "messages"
        write_pairs(raw, messages(self.folder))
        source, target = both(raw)
        run("nmt_core", "prepare", "corpus", "--source", source, "--source-language", "en", "--target", target,
            "--target-language", "fr", "--output", clean, "--deduplicate", "--set", "filters.minimum_words=4",
            "--max-words", 40)  # fmt: skip
        far = read_pairs(*both(clean))
        near = read_pairs(*(str(self.data / f"train.tok.{language}.gz") for language in ("en", "fr")))
        if len(near) < DOMAIN + NEAR or len(far) < FAR:
            raise NmtError(f"{len(near)} pairs and {len(far)} messages are fewer than {DOMAIN + NEAR} and {FAR}")
        draw.shuffle(near)
        mixture = near[DOMAIN : DOMAIN + NEAR] + draw.sample(far, FAR)
        draw.shuffle(mixture)
        write_pairs(self.domain, near[:DOMAIN])
        write_pairs(self.mixture, mixture)

    def row(self, name: str, seed: int) -> None:
        """Measure a row unless that is done."""
        prefix = self.out / str(seed) / name
        if prefix.with_suffix(".json").exists():
            return
        self.mix()
        self.choose(name, seed)
        before = cpu_seconds()
        self.train(prefix, seed)
        found = {"minutes": (cpu_seconds() - before) / 60, **self.measured(prefix)}
        write(prefix.with_suffix(".json"), [json.dumps(found)])
        print(seed, name, json.dumps(found), flush=True)

    def choose(self, name: str, seed: int) -> None:
        """Write the pairs that a row trains on."""
        to, draw, pairs = self.out / str(seed) / name, random.Random(seed), read_pairs(*both(self.mixture))
        if name == "all":
            write_pairs(to, pairs)
        elif name == "random":
            write_pairs(to, [pairs[place] for place in sorted(draw.sample(range(len(pairs)), len(pairs) // 3))])
        else:
            general = to.parent / "general"
            write_pairs(general, draw.sample(pairs, DOMAIN))
            models = {text: [language_model(path) for path in both(text)] for text in (self.domain, general)}
            if name == "moore-lewis":  # with two equal models the French side has no say
                models[general][1] = models[self.domain][1]
            run("nmt_core", "prepare", "select", *both(self.mixture), "--output", *both(to), "--in-domain",
                *models[self.domain], "--general", *models[general], "--keep", len(pairs) // 3)  # fmt: skip

    def train(self, prefix: Path, seed: int) -> None:
        """Train a small RNNsearch, all updates; it is the last one that is kept, for it alone is validated."""
        source, target = both(prefix)
        texts = {"source": source, "target": target}
        for side, language in (("source", "en"), ("target", "fr")):
            texts[f"dev_{side}"] = str(self.data / f"val.tok.{language}.gz")
        settings = {
            "folder": str(prefix),
            "model": {"type": "rnnsearch", "hidden": 256, "embedding": 192, "maxout": 192, "alignment": 192,
                      "initialisation": "glorot"},
            "data": {**texts, "minimum_count": 2},
            "training": {"optimizer": "adam", "learning_rate": 0.002, "gradient": "word", "batch_sentences": 64,
                         "select_by": "nll", "precision": "bfloat16" if has_bfloat16() else "float32", "seed": seed,
                         "max_updates": self.updates, "validate_every": self.updates},
        }  # fmt: skip
        write(prefix.with_suffix(".yaml"), yaml.safe_dump(settings, sort_keys=False).splitlines())
        shutil.rmtree(prefix, ignore_errors=True)  # of a training that was stopped
        run("nmt_core", "train", prefix.with_suffix(".yaml"))

    def measured(self, prefix: Path) -> Found:
        """What the text has of the domain, nats a word of val, and the translation of val."""
        source, target = (str(self.data / f"val.tok.{language}.gz") for language in ("en", "fr"))
        run("nmt_core", "decode", "--model", prefix, "--beam", 4, "--input", source, "--output", f"{prefix}.out")
        known, pairs = Vocabulary.load(str(prefix / "target.vocab")), read_pairs(*both(prefix))
        near = set(read_pairs(*(str(self.data / f"train.tok.{language}.gz") for language in ("en", "fr"))))
        words = [word for line in read_text_lines(target) for word in split_words(line)]
        return {
            "share": sum(pair in near for pair in pairs) / len(pairs),
            "words": sum(len(split_words(french)) for _, french in pairs),
            "unknown": sum(word not in known for word in words) / len(words),
            "nats": json.loads((prefix / "training.json").read_text())["best"]["nats_per_word"],
        }

    def table(self) -> Iterator[str]:
        """All rows that are there, the means of their seeds; p is the largest of a seed's."""
        yield "| trained on | of Multi30k, % | French words | val unknown, % | nats a word | BLEU | p | CPU minutes |"
        yield "|---|---|---|---|---|---|---|---|"
        reference = list(read_text_lines(str(self.data / "val.fr.gz")))
        for name, title in ROWS.items():
            found, scores, p_values = list[Found](), list[float](), list[float]()
            for path in sorted(self.out.glob(f"*/{name}.json")):
                found.append(json.loads(path.read_text()))
                outputs = {one: list(map(detokenizer("fr"), read_text_lines(str(path.with_name(f"{one}.out")))))
                           for one in ("random", name)}  # fmt: skip
                scores.append(sacrebleu_metric("BLEU", tokenize="13a").corpus_score(outputs[name], [reference]).score)
                if name != "random":
                    (bleu,) = compare(outputs, [reference], tokenize="13a", metrics=("BLEU",))
                    p_values.append(bleu.last.p_value or 0.0)
            if found:
                share, words, unknown, nats, minutes = (statistics.mean(one[key] for one in found) for key in
                                                        ("share", "words", "unknown", "nats", "minutes"))  # fmt: skip
                each = ", ".join(f"{score:.2f}" for score in scores)
                p_value = f"{max(p_values):.4f}" if p_values else ""
                yield (f"| {title} | {100 * share:.1f} | {words:,.0f} | {100 * unknown:.1f} | {nats:.3f} | "
                       f"{statistics.mean(scores):.2f} ({each}) | {p_value} | {minutes:.1f} |")  # fmt: skip


def both(prefix: Path) -> list[str]:
    """The files of both sides."""
    return [f"{prefix}.en", f"{prefix}.fr"]


def read_pairs(source: str, target: str) -> list[tuple[str, str]]:
    """Lines that belong together."""
    return list(zip(*map(read_text_lines, (source, target)), strict=True))


def write_pairs(prefix: Path, pairs: Iterable[tuple[str, str]]) -> None:
    """Both sides; the French one last."""
    for path, lines in zip(both(prefix), zip(*pairs, strict=True), strict=True):
        write(Path(path), lines)


def write(path: Path, lines: Iterable[str]) -> None:
    """Lines, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_output(str(path)) as stream:
        write_lines(stream, list(lines))


def language_model(text: str) -> str:
    """An ARPA file of four-grams."""
    run("smt_bridge", "build-lm", "--order", 4, "--input", text, "--output", f"{text}.arpa")
    return f"{text}.arpa"


def run(module: str, *words: object) -> None:
    """Run a command of the product."""
    code = subprocess.run([sys.executable, "-m", module, *map(str, words)], check=False).returncode
    if code:
        raise NmtError(f"{module} {words[0]} ended with exit code {code}")


def cpu_seconds() -> float:
    """Of all processes that have ended here."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Make rows, or show what was made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the corpus")
    parser.add_argument("--messages", type=Path, metavar="DIR", help="translations of programs")
    parser.add_argument("--out", type=Path, default=Path("runs/selection"), help="where everything goes")
    parser.add_argument("--updates", type=int, default=800, help="of each training (800)")
    parser.add_argument("--seeds", type=int, default=3, help="how many (3)")
    parser.add_argument("--table", action="store_true", help="all rows made so far, as Markdown")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}")
    args = parser.parse_args()
    if unknown := [name for name in args.rows if name not in ROWS]:
        parser.error(f"there is no row {unknown[0]!r}; rows: {', '.join(ROWS)}")
    if not args.table and not (args.rows and args.messages):
        parser.error("give --messages and rows, or --table")
    experiment = Experiment(args.out, args.data, args.messages, args.updates)
    try:
        for seed in range(1, args.seeds + 1):
            for name in args.rows:
                experiment.row(name, seed)
        if args.table:
            print("\n".join(experiment.table()))
    except NmtError as error:
        print(f"selected_third: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
