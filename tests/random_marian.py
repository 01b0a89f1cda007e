"""A MarianMT model of transformers with random parameters, and its tokeniser: what ``save_pretrained`` writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

ENGLISH = ["the old woman's house is near the river .", "a man sleeps in it , while she reads ."]
FRENCH = ["la maison de la vieille femme est près de l'eau .", "un homme y dort , pendant qu'elle lit ."]


def write_marian(folder: Path, *, seed: int = 1, positions: int = 512) -> Path:
    """The directory. It reads English running text, and writes French, in pieces of a language each."""
    library = pytest.importorskip("transformers", reason="needs transformers (extra hf)")
    torch = pytest.importorskip("torch")
    folder.mkdir(parents=True)
    names = ["</s>", "<unk>"]
    for name, lines in (("source", ENGLISH), ("target", FRENCH)):
        names += _sentence_pieces(folder / f"{name}.spm", lines * 30)
    names = [*dict.fromkeys(names), "<pad>"]  # as in Marian's converted models, the last
    (folder / "vocab.json").write_text(json.dumps({name: place for place, name in enumerate(names)}))
    padding = len(names) - 1
    config = library.MarianConfig(
        vocab_size=len(names), d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, max_position_embeddings=positions,
        activation_function="relu", scale_embedding=True, pad_token_id=padding, decoder_start_token_id=padding,
        eos_token_id=0, forced_eos_token_id=0, init_std=0.3,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = library.MarianMTModel(config).eval()
    model.final_logits_bias.normal_()
    model.save_pretrained(folder)
    library.MarianTokenizer.from_pretrained(folder).save_pretrained(folder)
    return folder


def convert(folder: Path, output: Path) -> Path:
    """The same model by CTranslate2's converter."""
    converters = pytest.importorskip("ctranslate2.converters")
    converters.TransformersConverter(str(folder), copy_files=["source.spm", "target.spm"]).convert(str(output))
    return output


def log_prob(folder: Path, source: str, target: str) -> float:
    """Log p(target | source) of running text by the library alone, without batches; its padding is no piece."""
    library, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    tokenizer = library.MarianTokenizer.from_pretrained(folder)
    model = library.MarianMTModel.from_pretrained(folder)
    asked: dict[str, Any] = dict(tokenizer(source, return_tensors="pt"))
    labels = tokenizer(text_target=target, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        logits = model(**asked, labels=labels).logits[0, :, :-1]
    return float(torch.log_softmax(logits.double(), -1).gather(1, labels[0][:, None]).sum())


def _sentence_pieces(path: Path, lines: list[str]) -> list[str]:
    library = pytest.importorskip("sentencepiece")
    library.SentencePieceTrainer.Train(
        sentence_iterator=iter(lines), model_prefix=str(path.with_suffix("")), vocab_size=40,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    shutil.move(path.with_suffix(".model"), path)
    model = library.SentencePieceProcessor(model_file=str(path))
    return [model.IdToPiece(one) for one in range(model.GetPieceSize()) if not model.IsControl(one)]
