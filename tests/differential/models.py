"""Small random models of every preset and type, with logits as large as those of trained models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from nmt_core.model_directory.lexicon import CarriedLexicon
from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import AnyConfig, build_model
from nmt_core.models.deep_fusion import DeepFusionConfig
from nmt_core.models.presets import PRESETS
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnlm import RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.copying import CopyScheme, with_tokens
from nmt_core.text.lexicon import Candidate, Lexicon
from nmt_core.text.sentence import TargetOrder
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.nmt_core.inference.scoring.test_forms import make as make_prepared

WORDS = [f"w{number}" for number in range(40)]
TAGS = ("N", "V", "A")
LETTERS = "w0123456789"
LEXICON = Lexicon({f"x{number}": (Candidate(f"y{number}", 0.75), Candidate("w1", 0.25)) for number in range(9)})
_SIZES: dict[str, Any] = {
    "embedding": 16,
    "hidden": 16,
    "maxout": 8,
    "alignment": 12,
    "depth": 2,
    "places": 60,
    "radius": 3,
    "source_characters": LETTERS,
    "target_characters": LETTERS,
    "longest_spelling": 6,
}
_TINY: dict[str, Any] = {"embedding": 16, "hidden": 16, "maxout": 8}


def _sized(config: AnyConfig) -> AnyConfig:
    """The same settings in small sizes."""
    fields = type(config).model_fields
    sizes = {name: value for name, value in _SIZES.items() if name in fields}
    if config.type == "cslm":
        sizes = {"embedding": 16, "hidden": (24, 16)}
    if getattr(config, "output_rank", None) is not None:
        sizes["output_rank"] = 8
    return type(config).model_validate({**config.to_mapping(), **sizes})


def _search(**settings: Any) -> RNNsearchConfig:
    return RNNsearchConfig(alignment=12, **_TINY, **settings)


CONFIGS: dict[str, AnyConfig] = {
    **{name: _sized(config) for name, config in PRESETS.items()},
    "search-lstm": _search(cell="lstm"),
    "search-tied": _search(tied=True, shared_embeddings=True),
    "encdec-lstm": RNNencdecConfig(cell="lstm", **_TINY),
    "deep-fusion": DeepFusionConfig(translation=_search(), language=RNNLMConfig(embedding=16, hidden=16)),
}
LANGUAGE = tuple(name for name, config in CONFIGS.items() if config.type in ("rnnlm", "cslm"))
ANNOTATED = {f"annotated-{scheme.value}": scheme for scheme in CopyScheme}
REVERSED = {"reversed-search": "rnnsearch", "reversed-lstm": "luong2015-global-general-feed"}
FACTORED = ("factors",)
RAW: dict[str, dict[str, Any]] = {
    "raw-bpe": {"truecasing": {}, "subwords": {"type": "bpe", "merges": 25}},
    "raw-sentencepiece": {"subwords": {"type": "sentencepiece", "size": 40}},
}
RAW_WORDS = ["The", "men", "dog", "plan's", "sees", "well-known", "a", "&", "Good", "zebra", "dogs!", "A"]
ENSEMBLES = {
    "two-search": ("rnnsearch", "search-lstm"),
    "mixed": ("rnnencdec", "rnnsearch", "nematus"),
    "two-reversed": ("reversed-search", "reversed-lstm"),
}
ALL = (*CONFIGS, *ANNOTATED, *REVERSED, *FACTORED, *RAW, *ENSEMBLES)


def make(place: Path, name: str) -> str:
    """The folder of a model, made where it is not there; of an ensemble those of its members, with commas."""
    if name in ENSEMBLES:
        return ",".join(make(place, member) for member in ENSEMBLES[name])
    folder = place / name
    if not folder.exists():
        _makers().get(name, _plain)(str(folder), name)
    return str(folder)


def _makers() -> dict[str, Callable[[str, str], None]]:
    return {
        **dict.fromkeys(ANNOTATED, _annotated),
        **dict.fromkeys(REVERSED, _reversed),
        **dict.fromkeys(FACTORED, _factored),
        **dict.fromkeys(RAW, _prepared),
    }


def _plain(folder: str, name: str) -> None:
    _save(folder, FolderConfig(model=CONFIGS[name]))


def _reversed(folder: str, name: str) -> None:
    _save(folder, FolderConfig(model=CONFIGS[REVERSED[name]], target_order=TargetOrder.RIGHT_TO_LEFT))


def _factored(folder: str, name: str) -> None:
    _save(folder, FolderConfig(model=_search(source_factors=[4])), factors=[Vocabulary([*SPECIAL_WORDS, *TAGS])])


def _annotated(folder: str, name: str) -> None:
    kind = ANNOTATED[name]
    config = FolderConfig(model=CONFIGS["luong2015-global-general-feed"], copying=kind)
    _save(folder, config, kind.source_tokens, kind.target_tokens, lexicon=CarriedLexicon.of(LEXICON))


def _prepared(folder: str, name: str) -> None:
    Path(f"{folder}.raw").mkdir()
    loaded = make_prepared(Path(f"{folder}.raw"), RAW[name])
    save_model(folder, loaded.model, loaded.source, loaded.target, loaded.config, loaded.preparation)


def _save(
    folder: str,
    config: FolderConfig,
    source_tokens: tuple[str, ...] = (),
    target_tokens: tuple[str, ...] = (),
    **more: Any,
) -> None:
    words = Vocabulary([*SPECIAL_WORDS, *WORDS])
    source, target = with_tokens(words, source_tokens), with_tokens(words, target_tokens)
    factors = list(map(len, more.get("factors", [])))
    model = build_model(config.model, len(source), len(target), factors).requires_grad_(False)
    _draw(model)
    save_model(folder, model, source, target, config, **more)


def _draw(model: torch.nn.Module) -> None:
    """Output layers have a standard deviation of 1, all other parameters of 0.4."""
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        deviation = 1.0 if "output" in name or "generator" in name else 0.4
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * deviation)
