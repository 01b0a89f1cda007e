"""``nmt-core fuse``: a translation model and a recurrent language model as one model (deep fusion)."""

from __future__ import annotations

import argparse
import dataclasses

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.model_directory.ensembles import check_same_order
from nmt_core.model_directory.loaded_model import read_model
from nmt_core.model_directory.settings import FolderConfig, check_no_model
from nmt_core.models.deep_fusion import DeepFusion, fuse
from nmt_core.models.rnnlm import RNNLM
from nmt_core.models.rnnsearch import RNNsearch
from nmt_core.text.vocabulary import END_ID, SPECIAL_WORDS, UNKNOWN_ID


def fuse_models(args: argparse.Namespace) -> int:
    """Fuse and write."""
    check_no_model(args.output)
    translation, language = read_model(args.model), read_model(args.lm)
    if not isinstance(translation.model, RNNsearch) or isinstance(translation.model, DeepFusion):
        raise ConfigError(f"{args.model}: deep fusion needs a model of type rnnsearch")
    if not isinstance(language.model, RNNLM):
        raise ConfigError(f"{args.lm}: is no recurrent language model (type rnnlm); 'nmt-core train' makes one")
    check_same_order(translation, language)
    words = translation.target.words[len(SPECIAL_WORDS) :]
    ids = [END_ID, UNKNOWN_ID, *language.target.encode_words(words)]
    unknown = sum(number == UNKNOWN_ID for number in ids) - 1
    fused = fuse(translation.model, language.model, ids, trained=args.trained)
    origin = {"fused": {"translation": translation.fingerprint, "language": language.fingerprint}}
    config = FolderConfig(
        model=fused.fusion,
        text=translation.text,
        target_order=translation.config.target_order,
        copying=translation.config.copying,
        trained_with=origin,
    )
    dataclasses.replace(translation, model=fused, config=config).save(args.output)
    size = sum(parameter.numel() for parameter in fused.trained())
    say(
        f"{args.output}: fused; the language model knows {len(ids) - unknown:,} of {len(ids):,} target words; "
        f"training changes {size / 1e6:.1f} M parameters"
    )
    return 0
