#!/usr/bin/env python
"""What scoring lists with a Transformer costs: CTranslate2 bare, ours around it, transformers, and our RNNsearch.

    scripts/experiments/judges/measure_scoring.py --data DIR --nbest val.nbest100.gz --out runs/judge-speed [--lists N]

The model has the size of OPUS-MT (6 and 6 layers, width 512, inner 2,048, 58,101 pieces) and random parameters; its
subwords are learned from DIR/train.tok.{en,fr}.gz. The first N lists (3) are scored by one thread in turn, --rounds
times (3): by `score_batch` alone on pieces that are cut already, by `ct2:`, which detokenises and cuts, by `hf:`, and
by an RNNsearch of the size that `smt-bridge new` trains on 29,000 pairs, with random parameters and the words of DIR.
Printed is the CPU time, the best of the rounds, and pairs a second.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import importlib
import json
import time
from collections.abc import Callable
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import torch

from nmt_core.base.interfaces import SentencePair
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.layers.products import freeze
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.presets import preset
from nmt_core.processes import keep_memory_of_tensors
from nmt_core.text.vocabulary import build_vocabulary
from nmt_core.transformer.model import open_transformer
from smt_bridge.new.settings import SENTENCES

SIZE = 58101  # pieces of OPUS-MT en-fr less one, its padding


def make_models(data: Path, out: Path) -> tuple[Path, Path]:
    """The model of transformers and CTranslate2's, made once."""
    prepare = importlib.import_module("train_judge").prepare
    library = importlib.import_module("transformers")
    converters = importlib.import_module("ctranslate2.converters")
    folder, converted = out / "model-en-fr", out / "ct2-en-fr"
    if converted.exists():
        return folder, converted
    prepare(data, out, 8000, "marian")
    names = [name for name in json.loads((folder / "vocab.json").read_text()) if name != "<pad>"]
    names += [f"made-up-{number}" for number in range(SIZE - len(names))]
    (folder / "vocab.json").write_text(json.dumps({name: place for place, name in enumerate([*names, "<pad>"])}))
    sizes = {f"{side}_{key}": value for side in ("encoder", "decoder")
             for key, value in (("layers", 6), ("ffn_dim", 2048), ("attention_heads", 8))}  # fmt: skip
    config = library.MarianConfig(
        vocab_size=SIZE + 1, d_model=512, max_position_embeddings=512, activation_function="swish",
        scale_embedding=True, pad_token_id=SIZE, decoder_start_token_id=SIZE, eos_token_id=0, **sizes,
    )  # fmt: skip
    torch.manual_seed(1)
    library.MarianMTModel(config).save_pretrained(folder)
    library.MarianTokenizer.from_pretrained(folder).save_pretrained(folder)
    converters.TransformersConverter(str(folder), copy_files=["source.spm", "target.spm"]).convert(str(converted))
    return folder, converted


def rnnsearch(data: Path, dtype: torch.dtype) -> ModelPairScorer:
    """A random model of the size that `smt-bridge new` trains of so much text, with words seen twice."""
    vocabularies = []
    for language in ("en", "fr"):
        with gzip.open(data / f"train.tok.{language}.gz", "rt", encoding="utf-8") as lines:
            vocabularies.append(build_vocabulary((line.rstrip("\n") for line in lines), minimum_count=2))
    source, target = vocabularies
    names = ("hidden", "embedding", "alignment", "maxout")
    sizes = {name: getattr(SENTENCES["medium"], name) for name in names}
    config = preset("rnnsearch").model_copy(update=sizes)
    model = new_model(config, len(source.words), len(target.words), seed=1).to(dtype=dtype)
    freeze(model)
    return ModelPairScorer([LoadedModel(model, source, target, FolderConfig(model=config), "0" * 12, "random")])


def read_pairs(data: Path, path: Path, lists: int) -> list[SentencePair]:
    """Source and hypothesis of the first lists of val."""
    with gzip.open(data / "val.tok.en.gz", "rt", encoding="utf-8") as lines:
        sources = [line.strip() for line in lines]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        entries = (line.split(" ||| ") for line in lines)
        groups = islice(groupby(entries, key=lambda fields: int(fields[0])), lists)
        return [SentencePair(sources[number], fields[1].strip()) for number, found in groups for fields in found]


def measure(args: argparse.Namespace) -> None:
    """Score in turn, and print."""
    keep_memory_of_tensors()
    torch.set_num_threads(1)
    data = Path(args.data)
    folder, converted = make_models(data, Path(args.out))
    pairs = read_pairs(data, Path(args.nbest), args.lists)
    ours: Any = open_transformer(f"ct2:{converted}", threads=1)
    other = open_transformer(f"hf:{folder}")
    distinct = sorted(set(pairs), key=lambda pair: len(pair.source) + len(pair.target))
    sources = ours._cut(0, [pair.source for pair in distinct])
    targets = ours._cut(1, [pair.target for pair in distinct])
    options = {"max_batch_size": 2048, "batch_type": "tokens", "max_input_length": 0}
    ways: dict[str, Callable[[], object]] = {
        "score_batch": lambda: ours._translator.score_batch(sources, targets, **options),
        "ct2:": lambda: ours.score(pairs),
        "hf:": lambda: other.score(pairs),
    }
    for start, path, dtype in (("ct2", converted, "int8"), ("hf", folder, "bfloat16")):
        model = open_transformer(f"{start}:{path}", dtype=dtype, threads=1)
        ways[f"{start}: --dtype {dtype}"] = functools.partial(model.score, pairs)
    for dtype in ("float32", "bfloat16"):
        ways[f"RNNsearch, {dtype}"] = functools.partial(rnnsearch(data, getattr(torch, dtype)).score, pairs)
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(args.rounds):
        for name, work in ways.items():
            before = time.process_time()
            work()
            found[name].append(time.process_time() - before)
    print(f"{len(distinct):,} distinct pairs\n\n| | CPU seconds | pairs/s |\n|---|---|---|")
    for name, seconds in found.items():
        print(f"| `{name}` | {min(seconds):.2f} | {len(distinct) / min(seconds):,.1f} |")
    differences = (a.log_prob - b.log_prob for a, b in zip(ours.score(pairs), other.score(pairs), strict=True))
    print(f"\nlargest difference of the two, in nats: {max(map(abs, differences)):.1e}")


def main() -> None:
    """As the module says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, metavar="DIR")
    parser.add_argument("--nbest", required=True, metavar="FILE", help="lists of val")
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--lists", type=int, default=3, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
