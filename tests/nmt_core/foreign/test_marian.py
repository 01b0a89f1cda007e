"""``nmt-core import marian``: the scores of an imported model are those of Marian's equations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import yaml

from nmt_core.commands.main import main
from nmt_core.foreign import marian
from tests.nmt_core.foreign.checkpoints import DIM, DIM_WORD, Checkpoint, Kind, assert_refused, assert_scores

# models/amun.h and models/nematus.h: Nematus' names, and those that type s2s stores
CELL, GATES, READOUTS = ("U", "Ux", "W", "Wx", "b", "bx"), ("U", "Ux", "b", "bx"), ("prev", "lstm", "ctx")
NAMES = {
    **{f"decoder_{array}": f"decoder_cell1_{array}" for array in CELL},
    **{f"decoder_{array}_nl": f"decoder_cell2_{array}" for array in GATES},
    **{f"decoder_{array}_nl_drt_{n}": f"decoder_cell{n + 2}_{array}" for array in GATES for n in (1, 2)},
    "decoder_Wc": "decoder_cell2_W",
    "decoder_Wcx": "decoder_cell2_Wx",
    **{f"ff_logit_{name}_{one}": f"decoder_ff_logit_l1_{one}{n}" for n, name in enumerate(READOUTS) for one in "Wb"},
    **{f"ff_logit_{name}_ln_{s}": f"decoder_ff_logit_l1_ln_{s}{n}" for n, name in enumerate(READOUTS) for s in "sb"},
    **{f"ff_logit_l1_gamma{number}": f"decoder_ff_logit_l1_gamma{number}" for number in range(3)},
    **{f"ff_logit_{array}": f"decoder_ff_logit_l2_{array}" for array in "Wb"},
    **{f"ff_state_{array}": f"decoder_ff_state_{array}" for array in ("W", "b", "gamma", "ln_s", "ln_b")},
    "Wemb_dec": "decoder_Wemb",
    "Wemb": "encoder_Wemb",
    **{
        f"encoder{side}_{array}": f"encoder_bi{side}_{array}"
        for side in ("", "_r")
        for array in (*CELL, "gamma1", "gamma2", "cell2_gamma2", "cell3_gamma2")
    },
    **{
        f"encoder{side}_{array}_drt_{number}": f"encoder_bi{side}_cell{number + 1}_{array}"
        for side in ("", "_r")
        for array in GATES
        for number in (1, 2)
    },
}
PAIRS = [("das Haus", 'the "'), ("", "é é the"), ("it's nowhere das", ""), ("das das", "the nowhere")]


class MarianCheckpoint(Checkpoint):
    program = "marian"
    source: ClassVar = {"</s>": 0, "<unk>": 1, "das": 2, "Haus": 3, "it's": 4}
    target: ClassVar = {"</s>": 0, "<unk>": 1, "the": 2, '"': 3, "é": 5}

    def __init__(self, folder: Path, kind: Any, **settings: Any) -> None:
        super().__init__(folder, kind)
        if kind.normalisation == "marian":
            self.arrays["decoder_c_tt"] = np.zeros((1, 0), np.float32)
        cell = "gru-nematus" if kind.normalisation == "nematus" else "gru"
        self.settings = {
            "type": "s2s",
            "enc-type": "bidirectional",
            "enc-cell": cell,
            "dec-cell": cell,
            "enc-depth": 1,
            "dec-depth": 1,
            "enc-cell-depth": kind.encoder,
            "dec-cell-base-depth": kind.decoder,
            "dec-cell-high-depth": 1,
            "dim-emb": DIM_WORD,
            "dim-rnn": DIM,
            "dim-vocabs": list(self.words),
            "layer-normalization": kind.normalisation != "none",
            "skip": False,
            "tied-embeddings": kind.tied and not kind.shared,
            "tied-embeddings-src": kind.shared and not kind.tied,
            "tied-embeddings-all": kind.shared and kind.tied,
            "version": "v1.9.0",
            **settings,
        }

    def write(self) -> tuple[str, str]:
        place = self.folder
        stored: dict[str, Any] = {}
        for name, values in self.arrays.items():
            if self.settings["type"] == "s2s":
                if name == "decoder_c_tt":
                    continue
                ending = next((end for end in ("_lns", "_lnb") if name.endswith(end)), "")
                first = name.removesuffix(ending)
                name = "Wemb" if first == "Wemb" and self.kind.shared else NAMES.get(first, first) + ending
            stored[name] = values.reshape(1, -1) if values.ndim == 1 else values
        if not self.kind.tied:
            stored |= {"history_errs": np.zeros(2), "uidx": np.zeros(1), "decoder_c_tt": np.zeros((1, 0))}
        text = yaml.safe_dump(self.settings).encode() + b"\0"
        np.savez(place / "model.npz", **{**stored, "special:model.yml": np.frombuffer(text, dtype=np.int8)})
        for name, words in (("source", self.source), ("target", self.target)):
            lines = [f"{YAML_KEYS.get(word, word)}: {number}\n" for word, number in words.items()]
            (place / f"{name}.yml").write_text("".join(lines))
        return str(place / "source.yml"), str(place / "target.yml")


YAML_KEYS = {'"': '"\\""'}


KINDS = {
    "plain": Kind(),
    "tied": Kind(tied=True),
    "all tied": Kind(tied=True, shared=True),
    "one table": Kind(shared=True),
    "deep": Kind(encoder=3, decoder=4),
    "normalised": Kind(normalisation="marian"),
    "normalised deep": Kind(normalisation="marian", encoder=3, decoder=4, tied=True),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_scores_of_s2s_are_those_of_the_equations(tmp_path: Path, kind: Any) -> None:
    assert_scores(MarianCheckpoint(tmp_path, kind), PAIRS)


@pytest.mark.parametrize("kind", [Kind(), Kind(normalisation="marian", tied=True)])
def test_scores_of_amun_are_those_of_the_equations(tmp_path: Path, kind: Any) -> None:
    assert_scores(MarianCheckpoint(tmp_path, kind, type="amun"), PAIRS)


@pytest.mark.parametrize("own", [False, True])
def test_scores_of_nematus_are_those_of_the_equations(tmp_path: Path, own: bool) -> None:
    kind = Kind(normalisation="nematus", encoder=2, decoder=3)
    more = {"original-type": "nematus"} if own else {"type": "nematus"}
    assert_scores(MarianCheckpoint(tmp_path, kind, **more), PAIRS)


def test_the_output_matrix_may_be_stored_turned_and_without_a_bias(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = MarianCheckpoint(tmp_path, Kind(), **{"output-omit-bias": True})
    wanted = MarianCheckpoint(tmp_path, Kind())
    wanted.arrays["ff_logit_b"][:] = 0
    monkeypatch.setitem(NAMES, "ff_logit_Wt", "decoder_ff_logit_l2_Wt")
    checkpoint.arrays["ff_logit_Wt"] = checkpoint.arrays.pop("ff_logit_W").T
    del checkpoint.arrays["ff_logit_b"]
    assert_scores(checkpoint, PAIRS[:1], wanted)


def test_one_table_of_words_has_one_order_of_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_line: Callable[..., str]
) -> None:
    monkeypatch.setattr(MarianCheckpoint, "target", {**MarianCheckpoint.target, "</s>": 1, "<unk>": 0})
    checkpoint = MarianCheckpoint(tmp_path, Kind(shared=True, tied=True))
    assert_refused(checkpoint, "one table of words for both sides; give both one vocabulary", error_line)


def test_a_bias_that_the_settings_do_not_omit_is_missed(tmp_path: Path, error_line: Callable[..., str]) -> None:
    checkpoint = MarianCheckpoint(tmp_path, Kind())
    del checkpoint.arrays["ff_logit_b"]
    assert_refused(checkpoint, "has no array decoder_ff_logit_l2_b", error_line)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.npz.yml", None, ""),
        ("model.npz.YAML", None, ""),
        (
            "decoder.yml",
            "models: [model.npz]\nbeam-size: 12\n",
            "decoder.yml: has no type; expected the settings of the model (model.npz.yml), not of the decoder",
        ),
        ("model.npz.yml", "type: x\n", "model.npz.yml: type is 'x'; only models with"),
        ("model.npz.yml", "type: s2s\nenc-depth: [1\n", "model.npz.yml:3: not valid YAML"),
        ("model.npz.yml", "- s2s\n", "model.npz.yml: expected 'key: value' lines"),
        ("settings", "type: s2s\n", "expected settings: JSON, or YAML under a name in .yml"),
    ],
)
def test_settings_may_be_a_yaml_file_of_their_own(
    tmp_path: Path, name: str, content: str | None, message: str, error_line: Callable[..., str]
) -> None:
    checkpoint = MarianCheckpoint(tmp_path, Kind(tied=True))
    checkpoint.more = ["--settings", str(tmp_path / name)]
    (tmp_path / name).write_text(content or yaml.safe_dump(checkpoint.settings))
    if content is None:
        assert_scores(checkpoint, PAIRS)
    else:
        assert_refused(checkpoint, message, error_line)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"type": "transformer"},
            "model.npz: type is 'transformer'; only models with 's2s' or 'amun' or 'nematus' can be read",
        ),
        ({"enc-cell": "lstm"}, "enc-cell is 'lstm'; only models with 'gru' or 'gru-nematus' can be read"),
        ({"dec-cell": "lstm"}, "dec-cell is 'lstm'; only models with 'gru' or 'gru-nematus' can be read"),
        ({"enc-depth": 2}, "enc-depth is 2; only models with 1 can be read"),
        ({"enc-depth": True}, "enc-depth is True; only models with 1 can be read"),
        ({"dec-depth": [1]}, "dec-depth is a list; only models with 1 can be read"),
        ({"dec-depth": None}, "dec-depth is None; only models with 1 can be read"),
        ({"enc-cell-depth": 2}, "enc-cell-depth is 2, but the arrays are of 1"),
        ({"enc-cell-depth": 0}, "enc-cell-depth is 0; expected a whole number of at least 1"),
        ({"dec-cell-base-depth": 3}, "dec-cell-base-depth is 3, but the arrays are of 2"),
        ({"layer-normalization": True}, "has no array encoder_bi_gamma1"),
        (
            {"layer-normalization": True, "dec-cell": "gru-nematus"},
            "mixes the layer normalisation of Marian and of Nematus (enc-cell, dec-cell, original-type); "
            "models with one of them can be read",
        ),
        ({"layer-normalization": True, "original-type": "nematus"}, "mixes the layer normalisation"),
        ({"tied-embeddings": True}, "no part of a known model: decoder_ff_logit_l2_W 4x7"),
        ({"tied-embeddings": 1}, "tied-embeddings is 1; only models with False or True can be read"),
        ({"tied-embeddings-src": 1}, "tied-embeddings-src is 1"),
        ({"tied-embeddings-all": 1}, "tied-embeddings-all is 1"),
        ({"output-omit-bias": "yes"}, "output-omit-bias is 'yes'; only models with False or True can be read"),
        ({"dim-rnn": 6}, "dim-rnn is 6; only models with 5 can be read"),
        ({"dim-emb": 5}, "dim-emb is 5; only models with 4 can be read"),
        ({"right-left": True}, "right-left is True; only models with False can be read"),
        ({"skip": True}, "skip is True; only models with False can be read"),
        ({"lemma-dim-emb": 8}, "lemma-dim-emb is 8; only models with 0 can be read"),
    ],
)
def test_what_is_not_as_expected_is_named_and_nothing_written(
    tmp_path: Path, settings: Any, message: str, error_line: Callable[..., str]
) -> None:
    assert_refused(MarianCheckpoint(tmp_path, Kind(), **settings), message, error_line)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            None,
            "has no special:model.yml: is it a model of Nematus ('nmt-core import nematus')? Or give --settings FILE",
        ),
        (b"a: [\0", "special:model.yml in it is not YAML ("),
        (b"- s2s\0", "special:model.yml in it has no settings"),
    ],
)
def test_an_archive_without_its_settings_is_one_line(
    tmp_path: Path, content: bytes | None, message: str, error_line: Callable[..., str]
) -> None:
    checkpoint = MarianCheckpoint(tmp_path, Kind(tied=True))
    source, target = checkpoint.write()
    stored = {} if content is None else {"special:model.yml": np.frombuffer(content, dtype=np.int8)}
    np.savez(tmp_path / "model.npz", decoder_c_tt=np.zeros(1), **stored)
    command = ["import", "marian", str(tmp_path / "model.npz"), str(tmp_path / "model")]
    line = error_line(main, [*command, "--source-vocab", source, "--target-vocab", target])
    assert line.startswith(f"nmt-core import: {tmp_path / 'model.npz'}: {message}")


@pytest.mark.parametrize("names", [("</s>", "<unk>"), ("eos", "UNK"), ("</s>", "UNK")])
def test_special_words_are_where_the_vocabulary_has_them(tmp_path: Path, names: tuple[str, str]) -> None:
    """Without their names they are the first two rows."""
    end, unknown = names
    (tmp_path / "v.yml").write_text(f"{end}: 2\na: 1\n{unknown}: 0\n")
    found = marian._rows(4, str(tmp_path / "v.yml"))
    assert (found.vocabulary.words, found.rows.tolist()) == (("</s>", "<unk>", "a", "<row:3>"), [2, 0, 1, 3])
    (tmp_path / "v.yml").write_text("x: 0\na: 2\n")
    assert marian._rows(3, str(tmp_path / "v.yml")).rows.tolist() == [0, 1, 2]
