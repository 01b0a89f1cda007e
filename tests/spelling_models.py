"""Small hybrid word-character models with weights at random."""

from __future__ import annotations

import torch

from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.hybrid import HybridConfig
from nmt_core.text.sentence import TargetOrder
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary

SOURCE = Vocabulary([*SPECIAL_WORDS, "the", "of", "is"])
TARGET = Vocabulary([*SPECIAL_WORDS, "la", "de", "b", "c"])
CONFIG = HybridConfig(
    embedding=6,
    hidden=6,
    depth=2,
    character_depth=2,
    init_range=0.7,
    source_characters="axoltquke",
    target_characters="abcd",
    longest_spelling=6,
)


def spelling_model(
    seed: int = 1,
    *,
    source: Vocabulary = SOURCE,
    order: TargetOrder = TargetOrder.LEFT_TO_RIGHT,
    dtype: torch.dtype = torch.float32,
    **settings: object,
) -> LoadedModel:
    """A model that spells; it often writes ``<unk>``."""
    config = HybridConfig.model_validate({**CONFIG.to_mapping(), **settings})
    model = new_model(config, len(source), len(TARGET), seed=seed).eval().requires_grad_(False).to(dtype)
    folder = FolderConfig(model=config, target_order=order)
    return LoadedModel(model, source, TARGET, folder, f"{seed:012}", f"hybrid{seed}")
