#!/usr/bin/env python
"""A small Transformer English-French on Multi30k, as a judge of Moses' lists; resumable.

    scripts/experiments/judges/train_judge.py --data DIR --out runs/judge [--recipe NAME] [--updates N] [--minutes N]

DIR has {train,val}.tok.{en,fr}.gz. The model reads and writes running text in pieces of one SentencePiece model for
both languages. It is trained with transformers (extra hf), and OUT/model-en-fr is a directory of that library, for
hf:OUT/model-en-fr or CTranslate2's converter. OUT/checkpoint.pt is from where a stopped training goes on.
OUT/log.tsv has, after each part of the training, updates, epochs, CPU minutes, and what the validation set costs in
nats a word (of the tokenised text, each sentence's end counted), by the parameters and by their mean over time.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import math
import os
import random
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from nmt_core.processes import keep_memory_of_tensors
from nmt_core.text.processing import TextConfig, TextProcessor

END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"
LONGEST = 100  # pieces of a side in training
PART = 400
MEAN = 0.999  # what the mean of the parameters keeps at an update


class Recipe(NamedTuple):
    """Sizes of the model and how it is trained: Adam, a linear warm-up, then a rate by 1/sqrt(update)."""

    layout: str  # marian: normalised after each sublayer; m2m_100: before
    layers: int
    width: int
    inner: int
    heads: int
    dropout: float
    rate: float
    warm_up: int
    tokens: int  # of a batch, both sides, with padding


RECIPES = {
    "wu": Recipe("marian", 4, 128, 256, 4, 0.3, 0.005, 2000, 8192),  # "Transformer-Tiny" of Wu et al. (2021)
    "post": Recipe("marian", 3, 256, 512, 4, 0.2, 0.001, 1000, 2048),
    "pre": Recipe("m2m_100", 3, 256, 512, 4, 0.2, 0.002, 500, 2048),
    "pre-tiny": Recipe("m2m_100", 4, 128, 256, 4, 0.2, 0.005, 500, 2048),
}


def prepare(data: Path, out: Path, pieces: int, layout: str) -> None:
    """Write OUT/text: running text of the tokenised files, and OUT/model-en-fr with the subwords."""
    text, folder = out / "text", out / "model-en-fr"
    text.mkdir(parents=True, exist_ok=True)
    folder.mkdir(exist_ok=True)
    for language in ("en", "fr"):
        processor = TextProcessor(TextConfig(source_language=language, target_language=language))
        for split in ("train", "val"):
            to = text / f"{split}.{language}"
            if not to.exists():
                with gzip.open(data / f"{split}.tok.{language}.gz", "rt", encoding="utf-8") as lines:
                    to.write_text("".join(processor.detokenize(line) + "\n" for line in lines))
    if not (folder / "vocab.json").exists():
        library = importlib.import_module("sentencepiece")
        library.SentencePieceTrainer.Train(
            input=[str(text / "train.en"), str(text / "train.fr")],
            model_prefix=str(out / "pieces"),
            vocab_size=pieces,
            character_coverage=1.0,
            minloglevel=2,
        )
        for side in ("source", "target"):
            shutil.copy(out / "pieces.model", folder / f"{side}.spm")
        model = library.SentencePieceProcessor(model_file=str(out / "pieces.model"))
        own = [model.IdToPiece(one) for one in range(model.GetPieceSize()) if not model.IsControl(one)]
        words = [UNKNOWN, *(name for name in own if name != UNKNOWN)]
        # where the library's position embeddings, and CTranslate2's converter, expect the padding
        names = [END, *words, PADDING] if layout == "marian" else [END, PADDING, *words]
        (folder / "vocab.json").write_text(json.dumps({name: place for place, name in enumerate(names)}))


def read_ids(out: Path, split: str, tokenizer: Any) -> list[tuple[list[int], list[int]]]:
    """The pairs of a split as ids, each with its end."""
    sides = []
    for key, language in (("text", "en"), ("text_target", "fr")):
        lines = (out / "text" / f"{split}.{language}").read_text().splitlines()
        sides.append(tokenizer(**{key: lines})["input_ids"])
    return list(zip(*sides, strict=True))


def batches(pairs: Sequence[tuple[list[int], list[int]]], tokens: int, draw: random.Random) -> list[list[int]]:
    """Indices of pairs of similar length, in random order."""
    order = sorted(range(len(pairs)), key=lambda one: (len(pairs[one][1]), len(pairs[one][0]), draw.random()))
    found, batch, widest = list[list[int]](), list[int](), 0
    for one in order:
        width = max(widest, len(pairs[one][0]) + len(pairs[one][1]))
        if batch and width * (len(batch) + 1) > tokens:
            found.append(batch)
            batch, width = [], len(pairs[one][0]) + len(pairs[one][1])
        batch.append(one)
        widest = width
    found.append(batch)
    draw.shuffle(found)
    return found


def padded(rows: Sequence[list[int]], value: int) -> torch.Tensor:
    """Rows of one length."""
    width = max(map(len, rows))
    return torch.tensor([row + [value] * (width - len(row)) for row in rows])


def build(recipe: Recipe, tokenizer: Any) -> Any:
    """The model with random parameters (Glorot and Bengio 2010; words from a normal distribution of 1/sqrt(width))."""
    library = importlib.import_module("transformers")
    padding, end = tokenizer.pad_token_id, tokenizer.eos_token_id
    config = library.AutoConfig.for_model(
        recipe.layout,
        vocab_size=len(tokenizer),
        d_model=recipe.width,
        **{f"{side}_layers": recipe.layers for side in ("encoder", "decoder")},
        **{f"{side}_ffn_dim": recipe.inner for side in ("encoder", "decoder")},
        **{f"{side}_attention_heads": recipe.heads for side in ("encoder", "decoder")},
        **{f"{side}_layerdrop": 0.0 for side in ("encoder", "decoder")},
        dropout=recipe.dropout,
        attention_dropout=0.0,
        activation_function="relu",
        max_position_embeddings=512,
        scale_embedding=True,
        pad_token_id=padding,
        eos_token_id=end,
        bos_token_id=None,
        forced_eos_token_id=end,
        decoder_start_token_id=padding if recipe.layout == "marian" else end,
    )
    model = library.AutoModelForSeq2SeqLM.from_config(config, attn_implementation="eager")  # faster for sentences
    for name, values in model.named_parameters():
        if not values.requires_grad:  # sines and cosines
            continue
        if "embed_tokens" in name or "shared" in name:
            torch.nn.init.normal_(values, std=recipe.width**-0.5)
            with torch.no_grad():
                values[padding] = 0.0
        elif values.dim() == 2:
            torch.nn.init.xavier_uniform_(values)
    model.generation_config.bad_words_ids = [[padding]]
    return model


def rate(recipe: Recipe, update: int) -> float:
    """The learning rate at an update, from 1."""
    return recipe.rate * min(update / recipe.warm_up, math.sqrt(recipe.warm_up / update))


def loss(model: Any, pairs: Sequence[tuple[list[int], list[int]]], *, smoothing: float = 0.0) -> torch.Tensor:
    """The sum of nats of the targets' pieces and ends."""
    padding = model.config.pad_token_id
    source = padded([one for one, _ in pairs], padding)
    target = padded([two for _, two in pairs], padding)
    before = torch.cat([torch.full((len(pairs), 1), model.config.decoder_start_token_id), target[:, :-1]], 1)
    attended, kept = source.ne(padding).long(), target.ne(padding)
    states = model.model(input_ids=source, attention_mask=attended, decoder_input_ids=before).last_hidden_state[kept]
    words = model.lm_head.weight
    if padding == len(words) - 1:
        words = words[:-1]  # Marian itself has no such piece
    return F.cross_entropy(F.linear(states, words).float(), target[kept], label_smoothing=smoothing, reduction="sum")


@torch.no_grad()
def validate(model: Any, pairs: Sequence[tuple[list[int], list[int]]], words: int) -> float:
    """Nats a word."""
    model.eval()
    order = sorted(pairs, key=lambda pair: len(pair[1]))
    total = sum(float(loss(model, order[first : first + 64])) for first in range(0, len(order), 64))
    model.train()
    return total / words


def save(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint, all of it or none."""
    torch.save(state, f"{path}.new")
    os.replace(f"{path}.new", path)


def train(args: argparse.Namespace) -> None:
    """Train, from the checkpoint where there is one."""
    library = importlib.import_module("transformers")
    keep_memory_of_tensors()
    recipe, out = RECIPES[args.recipe], Path(args.out)
    prepare(Path(args.data), out, args.pieces, recipe.layout)
    folder, checkpoint = out / "model-en-fr", out / "checkpoint.pt"
    # CTranslate2's converter wants a name for the beginning, too
    tokenizer = library.MarianTokenizer.from_pretrained(str(folder), local_files_only=True, bos_token=END)
    pairs = [pair for pair in read_ids(out, "train", tokenizer) if max(map(len, pair)) <= LONGEST]
    held_out = read_ids(out, "val", tokenizer)
    with gzip.open(Path(args.data) / "val.tok.fr.gz", "rt", encoding="utf-8") as lines:
        words = sum(len(line.split()) + 1 for line in lines)
    torch.manual_seed(args.seed)
    model = build(recipe, tokenizer)
    mean = {name: values.clone() for name, values in model.state_dict().items()}
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    update, epoch, place, spent = 0, 0, 0, 0.0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        mean, (update, epoch, place), spent = state["mean"], state["at"], state["spent"]
    count = sum(values.numel() for values in model.parameters())
    print(f"{count:,} parameters, {len(pairs):,} pairs, {len(tokenizer):,} pieces", file=sys.stderr)
    model.train()
    before = time.process_time() - spent
    while update < args.updates:
        order = batches(pairs, recipe.tokens, random.Random(args.seed + epoch))
        while place < len(order) and update < args.updates:
            chosen = [pairs[one] for one in order[place]]
            update, place = update + 1, place + 1
            torch.manual_seed(args.seed + update)  # of dropout: as if it had not been stopped
            for group in optimizer.param_groups:
                group["lr"] = rate(recipe, update)
            with torch.autocast("cpu", torch.bfloat16, enabled=args.bfloat16):
                total = loss(model, chosen, smoothing=0.1)
            optimizer.zero_grad()
            (total / sum(len(target) for _, target in chosen)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            keep = min(MEAN, update / (update + 9))
            with torch.no_grad():
                for name, values in model.state_dict().items():
                    mean[name].lerp_(values, 1 - keep)
            spent = time.process_time() - before
            stops = spent > 60 * args.minutes
            if update % PART and update < args.updates and not stops:
                continue
            current = {name: values.clone() for name, values in model.state_dict().items()}
            found = [validate(model, held_out, words)]
            model.load_state_dict(mean)
            found.append(validate(model, held_out, words))
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            model.load_state_dict(current)
            line = f"{update}\t{epoch + place / len(order):.2f}\t{spent / 60:.1f}\t{found[0]:.4f}\t{found[1]:.4f}"
            with (out / "log.tsv").open("a") as log:
                log.write(f"{line}\n")
            print(line, file=sys.stderr)
            state = {"model": current, "optimizer": optimizer.state_dict(), "mean": mean, "spent": spent}
            save(checkpoint, state | {"at": (update, epoch, place)})
            if stops:
                return
        epoch, place = epoch + 1, 0


def main() -> None:
    """As the module says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, metavar="DIR")
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--recipe", choices=RECIPES, default="pre-tiny")
    parser.add_argument("--updates", type=int, default=20000, metavar="N")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, metavar="N", help="CPU minutes, of all starts together"
    )
    parser.add_argument("--pieces", type=int, default=4000, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--bfloat16", action="store_true", help="products in bfloat16; parameters stay float32")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
