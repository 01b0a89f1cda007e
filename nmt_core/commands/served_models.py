"""What ``nmt-core serve`` serves: the folders, devices and candidate lists that its options name."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt_core.serving.further import FurtherModels
    from nmt_core.serving.models.devices import Load
    from nmt_core.serving.models.options import CandidateChoice, LexiconChoice
    from nmt_core.serving.models.served import ServedModel


def read_devices(args: argparse.Namespace) -> list[str]:
    """The devices to serve on. Raises ConfigError."""
    from nmt_core.base.errors import ConfigError
    from nmt_core.device import choose_device

    devices = [str(choose_device(name)) for name in args.device.split(",")]
    if len(set(devices)) < len(devices):
        raise ConfigError(f"--device {args.device}: a device is named twice")
    if args.threads is not None:
        import torch

        if args.threads < 1:
            raise ConfigError(f"--threads {args.threads}: expected at least 1")
        torch.set_num_threads(args.threads)
    return devices


def served_folders(args: argparse.Namespace, further: FurtherModels) -> dict[str, list[str]]:
    """The folders of all models but the ``further`` ones. Raises ConfigError."""
    from nmt_core.base.errors import ConfigError
    from nmt_core.serving.models.options import model_folders, named_folders

    folders = named_folders(args.model)
    for name, parts in (model_folders(args.models) if args.models else {}).items():
        if name in folders:
            raise ConfigError(f"--models {args.models}: there is a model {name} already")
        folders[name] = parts
    if not folders and not further.names:
        raise ConfigError("no model: give --model NAME=DIR, or --models DIR")
    if twice := sorted(folders.keys() & set(further.names)):
        raise ConfigError(f"two models are called {twice[0]}")
    return folders


def model_loader(args: argparse.Namespace, further: FurtherModels) -> Load:
    """What loads the models for a device. Raises ConfigError."""
    import functools

    from nmt_core.base.errors import ConfigError
    from nmt_core.inference.search.config import DecodingConfig
    from nmt_core.serving.models.opening import open_served_model
    from nmt_core.serving.models.options import named_candidates, named_lexicons

    folders = served_folders(args, further)
    lexicons, candidates = named_lexicons(args.lexicon, folders), named_candidates(args.candidates, folders)
    defaults = DecodingConfig.from_mapping({"beam": args.beam}, origin="--beam")

    if args.batch_tokens < 1:
        raise ConfigError(f"--batch-tokens {args.batch_tokens}: expected at least 1")
    decode_tokens = args.batch_tokens * args.beam

    def load(device: str) -> Mapping[str, ServedModel]:
        options: dict[str, Any] = {"device": device, "dtype": args.dtype, "decode_tokens": decode_tokens}

        @functools.cache
        def of_folders(
            parts: tuple[str, ...], lexicon: LexiconChoice | None = None, candidates: CandidateChoice | None = None
        ) -> ServedModel:
            return open_served_model(parts, defaults, lexicon=lexicon, candidates=candidates, **options)

        models = {
            name: of_folders(tuple(parts), lexicons.get(name), candidates.get(name)) for name, parts in folders.items()
        }
        return models | dict(further.load(device, lambda parts: of_folders(tuple(parts), None, None)))

    return load
