"""JoeyNMT 2.3.0 at the same work, in its own environment: ``peer_joeynmt.py score|decode|train OPTIONS < PAIRS``.

Its recurrent model with vocabularies of 30,000 words: a GRU of 1000 units, embeddings of 620 and Bahdanau
attention, unless the options say otherwise. The model is called as JoeyNMT calls it, on batches sorted by
length; reading and splitting text is not counted. Prints one JSON object.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
from types import SimpleNamespace

import torch
from joeynmt.batch import Batch
from joeynmt.builders import build_gradient_clipper, build_optimizer
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary

WORDS = 30_000
SPECIALS = SimpleNamespace(
    unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None,
    unk_id=0, pad_id=1, bos_id=2, eos_id=3, sep_id=None, lang_tags=[],
)  # fmt: skip


class QuickVocabulary(Vocabulary):
    """The same list, filled without looking through it for every word."""

    def add_tokens(self, tokens: list[str]) -> None:
        for token in dict.fromkeys(tokens):
            if token not in self._stoi:
                self._stoi[token] = len(self._itos)
                self._itos.append(token)


def vocabulary(sentences: list[list[str]]) -> Vocabulary:
    known = list(dict.fromkeys(word for sentence in sentences for word in sentence))[: WORDS - 4]
    return QuickVocabulary([*known, *(f"filling{number}" for number in range(WORDS - 4 - len(known)))], SPECIALS)


def model_of(source: Vocabulary, target: Vocabulary, options):
    torch.manual_seed(1)
    dropout = options.get("dropout", 0.0)
    units = options.get("hidden", 1000)
    half = {
        "type": "recurrent", "rnn_type": options.get("cell", "gru"), "hidden_size": units,
        "embeddings": {"embedding_dim": options.get("embedding", 620), "dropout": dropout},
        "num_layers": options.get("layers", 1), "dropout": dropout,
    }  # fmt: skip
    encoder = {**half, "hidden_size": options.get("each_way", units), "bidirectional": True}
    decoder = {**half, "attention": options.get("attention", "bahdanau"), "init_hidden": options.get("start", "bridge")}
    model = build_model({"encoder": encoder, "decoder": {**decoder, "input_feeding": True}}, source, target)
    model.loss_function = ("crossentropy", 0.0)
    return model


def batch_of(pairs, indices, source, target, device, *, with_target=True):
    def pad(rows):
        longest = max(map(len, rows))
        return torch.tensor([row + [1] * (longest - len(row)) for row in rows])

    sources = [[source.lookup(word) for word in pairs[index][0]] + [3] for index in indices]
    targets = [[2] + [target.lookup(word) for word in pairs[index][1]] + [3] for index in indices]
    return Batch(
        src=pad(sources), src_length=torch.tensor([len(row) for row in sources]), src_prompt_mask=None,
        trg=pad(targets) if with_target else None, trg_prompt_mask=None, indices=torch.tensor(list(indices)),
        device=device, pad_index=1, eos_index=3, is_train=with_target,
    )  # fmt: skip


def main() -> None:
    logging.disable(logging.CRITICAL)
    task, options = sys.argv[1], json.loads(sys.argv[2])
    pairs = [tuple(side.split() for side in line.rstrip("\n").split("\t")) for line in sys.stdin]
    source, target = vocabulary([pair[0] for pair in pairs]), vocabulary([pair[1] for pair in pairs])
    device = torch.device(options.get("device", "cpu"))
    model = model_of(source, target, options).to(device)
    autocast = {"device_type": device.type, "enabled": options.get("dtype") == "bfloat16", "dtype": torch.bfloat16}
    order = sorted(range(len(pairs)), key=lambda index: (len(pairs[index][0]), len(pairs[index][1])))
    size = options.get("batch", 128)
    groups = [order[first : first + size][::-1] for first in range(0, len(order), size)]
    batches = [batch_of(pairs, group, source, target, device, with_target=task != "decode") for group in groups]
    answer = {"score": score, "decode": decode, "train": train}[task](model, batches, autocast, options)
    answer["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(answer))


def score(model, batches, autocast, options) -> dict[str, float]:
    model.eval()

    def one(batch) -> None:
        with torch.no_grad(), torch.autocast(**autocast):
            _, log_probs, _, _ = model(return_type="loss", **vars(batch))
            picked = log_probs.gather(2, batch.trg.unsqueeze(2)).squeeze(2)
            picked.masked_fill(batch.trg == 1, 0.0).sum(dim=1).tolist()

    one(batches[0])
    begin = _clocks()
    for batch in batches:
        one(batch)
    return _since(begin)


def decode(model, batches, autocast, options) -> dict[str, float]:
    model.eval()
    begin, words = _clocks(), 0
    for batch in batches:
        output, _, _ = search(
            model=model, batch=batch, max_output_length=options["length"], beam_size=options["beam"],
            beam_alpha=1.0, n_best=1, autocast=autocast, return_prob="none", generate_unk=True,
            repetition_penalty=-1, no_repeat_ngram_size=-1, min_output_length=options.get("least", 1),
        )  # fmt: skip
        words += sum(row.tolist().index(3) if 3 in row.tolist() else len(row) for row in output)
    return _since(begin) | {"words": words}


def train(model, batches, autocast, options) -> dict[str, float]:
    optimizer = build_optimizer({"optimizer": "adam", "learning_rate": 0.0005}, model.parameters())
    clip = build_gradient_clipper({"clip_grad_norm": 1.0, "clip_grad_val": None})
    model.train()
    words, begin = 0, _clocks()
    for number, batch in enumerate(batches):
        if number == 2:
            words, begin = 0, _clocks()
        with torch.autocast(**autocast):
            loss, _, _, _ = model(return_type="loss", **vars(batch))
            loss = batch.normalize(loss, "tokens")
        loss.backward()
        clip(parameters=model.parameters())
        optimizer.step()
        model.zero_grad()
        words += batch.ntokens
    return _since(begin) | {"words": words}


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(begin: tuple[float, float]) -> dict[str, float]:
    """Seconds by the clock, and of processor time."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    clock, processor = _clocks()
    return {"seconds": clock - begin[0], "processor_seconds": processor - begin[1]}


if __name__ == "__main__":
    main()
