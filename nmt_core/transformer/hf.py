"""A Transformer in the library transformers, for what CTranslate2 cannot convert: any model from sequence to sequence.

Nothing is loaded from a network, and no code of a model's directory runs.
"""

from __future__ import annotations

import importlib
import itertools
import math
import os
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from nmt_core.base.errors import ConfigError, ModelError
from nmt_core.base.messages import first_line
from nmt_core.base.pauses import yield_point
from nmt_core.device import choose_device, choose_dtype, name_arithmetic, name_precision
from nmt_core.transformer import HF
from nmt_core.transformer.model import Transformer
from nmt_core.transformer.text import WordsOfSide
from nmt_core.version import VERSION

_BATCH_PIECES = 1024  # of a batch, of its longer side with padding; each has a number for every piece of the vocabulary


class HfModel(Transformer):
    """A directory that ``save_pretrained`` of transformers wrote, a model and its tokeniser.

    The tokeniser cuts running text; of tokenised words it is given the words (``text: tokenised``). Raises ConfigError
    where the package, the precision or a language is missing; ModelError for a directory that is no such model.
    """

    def __init__(self, folder: str, *, device: str = "cpu", dtype: str = "float32") -> None:
        super().__init__(f"{HF}{folder}")
        try:
            library = importlib.import_module("transformers")
        except ImportError as error:
            raise ConfigError(f"hf:{folder} needs transformers: pip install 'hybridmt[hf]'") from error
        if not os.path.isdir(folder):  # whose name the library would look up in a hub
            raise ModelError(f"hf:{folder} is no directory; expected one that transformers wrote")
        self._device = choose_device(device)
        languages = (self.text.source_language, self.text.target_language)
        is_running = self.text.text != "tokenised"
        self._sides = [WordsOfSide(folder, language, is_running=is_running) for language in languages]
        library.logging.set_verbosity_error()
        library.logging.disable_progress_bar()
        precision, how = choose_dtype(dtype, self._device), {"local_files_only": True, "trust_remote_code": False}
        try:
            self._model, found = library.AutoModelForSeq2SeqLM.from_pretrained(
                folder, dtype=precision, output_loading_info=True, **how
            )
            self._tokenizer = library.AutoTokenizer.from_pretrained(folder, **how)
            tasks = getattr(self._model.config, "task_specific_params", None) or {}
            prefixes = [task["prefix"] for task in tasks.values() if task.get("prefix")]
        except Exception as error:  # of a damaged file the library raises what its parts do
            raise ModelError(f"hf:{folder} is no model of transformers: {first_line(error)}") from error
        if missing := [*found["missing_keys"], *found["mismatched_keys"]]:  # they would be random numbers
            raise ModelError(f"hf:{folder} lacks {len(missing):,} of the model's parameters, such as {missing[0]}")
        if len(self._tokenizer) > self._model.get_input_embeddings().num_embeddings:
            raise ModelError(f"hf:{folder}: its tokeniser has {len(self._tokenizer):,} pieces, more than the model")
        if getattr(self._tokenizer, "tgt_lang", "") is None:  # it would take the source's
            raise ModelError(f"hf:{folder}: its tokeniser names no languages; save it with src_lang=… and tgt_lang=…")
        if hasattr(self._model.config, "tgt_vocab_size"):  # of FSMT, whose tokeniser only reads with it
            raise ModelError(f"hf:{folder}: its tokeniser cuts targets into pieces of the source's vocabulary")
        self._before = self._prefix([*getattr(self._tokenizer, "supported_language_codes", ()), *prefixes]), ""
        self._empty = self._cut(1, [""])[0]
        self._library = library
        self._model.to(self._device).eval()
        self._padding, self._end = self._tokenizer.pad_token_id, self._tokenizer.eos_token_id
        if self._padding is None or self._end not in self._empty:
            raise ModelError(f"hf:{folder}: its tokeniser has no padding, or writes no end behind a text")
        framing = {*self._tokenizer.all_special_ids, self._padding} - {self._end, self._tokenizer.unk_token_id}
        self._framing = torch.tensor(sorted(framing), device=self._device)
        settings = (self._model.generation_config, self._model.config)
        starts = (getattr(one, "decoder_start_token_id", None) for one in settings)
        self._start = next((one for one in starts if one is not None), self._empty[-1])  # mBART's is the language
        self._model.generation_config = library.GenerationConfig()  # not its makers', who may draw samples
        self._most = getattr(self._model.config, "max_position_embeddings", math.inf)
        self.fingerprint = self._fingerprint(sorted(one.name for one in os.scandir(folder) if one.is_file()))

    def size(self, side: int) -> int:
        """How many pieces a side has."""
        return len(self._tokenizer)

    @property
    def signature(self) -> str:
        """Fingerprint, precision, device and versions, in one line."""
        parameter = next(self._model.parameters())
        return (
            f"nmt:hf|model:{self.fingerprint}|log:e|norm:none|dtype:{name_precision(parameter)}"
            f"|{name_arithmetic(parameter)}|transformers:{self._library.__version__}|version:{VERSION}"
        )

    def _cut(self, side: int, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        read = [f"{self._before[side]} {self._sides[side].text_of(text)}".strip(" ") for text in texts]
        named = {("text", "text_target")[side]: read}
        return list(self._tokenizer(**named, split_special_tokens=True)["input_ids"])  # their names are text, too

    def _unknown(self, side: int, pieces: Sequence[int]) -> int:
        return pieces.count(self._tokenizer.unk_token_id)

    @torch.inference_mode()
    def _log_probs(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[float]:
        answers = list[float]()
        self._check(itertools.chain(sources, targets))
        for batch in _batches(sources, targets):
            yield_point()
            source, target = self._padded(sources[batch]), self._padded(targets[batch])
            labels = target["input_ids"]
            before = torch.cat([torch.full_like(labels[:, :1], self._start), labels[:, :-1]], 1)
            logits = self._model(**source, decoder_input_ids=before, use_cache=False).logits.float()
            if self._padding != self._end:
                logits[..., self._padding] = -math.inf  # is no word: the others sum to 1
            nats = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view_as(labels)
            framing = torch.isin(labels, self._framing) | ~target["attention_mask"].bool()
            answers += nats.double().masked_fill(framing, 0.0).sum(1).neg().tolist()
        return answers

    @torch.inference_mode()
    def _search(
        self, sources: Sequence[list[int]], *, beam: int, longest: int, forbid_unknown: bool
    ) -> list[list[str]]:
        self._check(sources)
        first = self._empty[0]
        never = {self._padding, self._tokenizer.unk_token_id if forbid_unknown else None} - {self._end, None}
        config = self._library.GenerationConfig(
            num_beams=beam,
            num_return_sequences=beam,
            length_penalty=0.0,
            max_new_tokens=int(min(longest, self._most - 1)),
            decoder_start_token_id=self._start,
            forced_bos_token_id=first if first in self._framing else None,
            pad_token_id=self._padding,
            eos_token_id=self._end,
            suppress_tokens=sorted(never) or None,
        )
        answers = list[list[str]]()
        together = max(1, _BATCH_PIECES // (beam * len(sources[0])))
        for begin in range(0, len(sources), together):
            yield_point()
            rows = self._model.generate(**self._padded(sources[begin : begin + together]), generation_config=config)
            found = self._tokenizer.batch_decode(rows, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            texts = [self._sides[1].words_of(text) for text in found]
            answers += [texts[one : one + beam] for one in range(0, len(texts), beam)]
        return answers

    def _check(self, texts: Iterable[Sequence[int]]) -> None:
        for pieces in texts:
            if len(pieces) > self._most:
                shown = self._tokenizer.convert_ids_to_tokens(pieces[:20])
                raise self._too_long(shown, len(pieces), f"it takes {self._most:,}")

    def _padded(self, rows: Sequence[list[int]]) -> dict[str, Tensor]:
        width = max(map(len, rows))
        ids = [row + [self._padding] * (width - len(row)) for row in rows]
        mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
        return {
            "input_ids": torch.tensor(ids, device=self._device),
            "attention_mask": torch.tensor(mask, device=self._device),
        }


def _batches(sources: Sequence[list[int]], targets: Sequence[list[int]]) -> Iterator[slice]:
    """Pairs that are computed together."""
    first, widest = 0, 0
    for place, pair in enumerate(zip(sources, targets, strict=True)):
        widest = max(widest, *map(len, pair))
        if place > first and widest * (place + 1 - first) > _BATCH_PIECES:
            yield slice(first, place)
            first, widest = place, max(map(len, pair))
    if first < len(sources):
        yield slice(first, len(sources))
