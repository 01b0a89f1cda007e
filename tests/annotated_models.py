"""Small models of annotated text, and twins of the same weights that know nothing of annotation."""

from __future__ import annotations

from pathlib import Path

from nmt_core.model_directory.lexicon import CarriedLexicon
from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.text.copying import CopyScheme, with_tokens
from nmt_core.text.lexicon import Candidate, Lexicon
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary

WORDS = [f"w{number}" for number in range(8)]
LEXICON = Lexicon({"Rot": (Candidate("Rouge", 0.75), Candidate("w1", 0.25)), "w2": (Candidate("Deux", 1.0),)})


def make_annotated(
    place: Path,
    name: str,
    scheme: str,
    *,
    lexicon: Lexicon | None = LEXICON,
    attention: str | None = None,
    aligns: str = "written",
    words: list[str] = WORDS,
    seed: int = 1,
) -> tuple[str, str]:
    """The folders of a model and of its twin."""
    kind = CopyScheme(scheme)
    source = with_tokens(Vocabulary([*SPECIAL_WORDS, *words]), kind.source_tokens)
    target = with_tokens(Vocabulary([*SPECIAL_WORDS, *WORDS]), kind.target_tokens)
    config = DeepLSTMConfig(depth=1, hidden=10, embedding=6, attention=attention, aligns=aligns, init_range=2.0)
    model = new_model(config, len(source), len(target), seed=seed)
    carried = None if lexicon is None else CarriedLexicon.of(lexicon)
    folders = (str(place / name), str(place / f"{name}.twin"))
    save_model(folders[0], model, source, target, FolderConfig(model=config, copying=kind), lexicon=carried)
    save_model(folders[1], model, source, target, FolderConfig(model=config))
    return folders
