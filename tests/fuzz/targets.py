"""The readers of files and messages from untrusted hands, and the valid inputs fuzzing begins with."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SEEDS = Path(__file__).parent / "seeds"


class Target(NamedTuple):
    """``read`` does with the bytes all that a command would; its errors name one of ``names_file``."""

    name: str
    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    tokens: tuple[bytes, ...] = ()
    share: float = 1.0
    names_file: tuple[str, ...] = ()


def targets(folder: str) -> dict[str, Target]:
    """All of them, by name; their files are written below ``folder``."""
    found = [*_tables(folder), *_lists(folder), *_records(folder), *_texts(folder), *_model_folders(folder)]
    found += _foreign(folder)
    return {target.name: target for target in [*found, *_messages(folder)]}


def seeds(name: str) -> tuple[bytes, ...]:
    """The kept inputs of a target."""
    return tuple(path.read_bytes() for path in sorted((SEEDS / name).glob("*")))


def _of_file(folder: str, name: str, read: Callable[[str], object], *, share: float = 1.0, tokens: str = "") -> Target:
    """A target whose bytes are a file of their own."""
    path = os.path.join(folder, name)

    def write_and_read(content: bytes) -> None:
        _write(path, content)
        read(path)

    return Target(name, write_and_read, seeds(name), tuple(tokens.encode().split()), share, (path, "--set"))


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as stream:
        stream.write(content)


def _all(items: Iterable[object]) -> None:
    for _ in items:
        pass


# ---- tables, lists, weights


def _tables(folder: str) -> list[Target]:
    from nmt_core.files.lexicon_lines import read_lexicon_lines
    from nmt_core.text.lexicon import Keep, read_lexicon
    from nmt_core.training.data.texts import read_phrase_pairs
    from smt_bridge.features.model1 import Lexicon
    from smt_bridge.moses.ini import read_ini
    from smt_bridge.moses.weights import format_weights, read_weights
    from smt_bridge.tables.filter import SourceFilter, SourceText, filter_by_sources
    from smt_bridge.tables.table import append_scores, phrases_of, read_windows, split_window
    from smt_bridge.tuning.moses_dat import pool_from_moses

    def table(path: str) -> None:
        for window in read_windows(path):
            columns = split_window(window)
            append_scores(columns, [b"0.5"] * len(columns.sources))
            phrases_of(window, columns)
        _all(filter_by_sources(path, SourceFilter(SourceText([b"a b"]))))

    def ini(path: str) -> None:
        found = read_ini(path)
        assert found.content == Path(path).read_bytes()
        table = found.phrase_table()
        found.weight_lines(table)
        found.with_phrase_scores(table, path="table.gz", weights=[0.1, 0.2])

    def lexicon(path: str) -> None:
        _all(read_lexicon_lines(path))
        _all(read_lexicon(path, Keep(top=2)).lines())
        Lexicon(path).table(["la"], ["the"])

    pair = [os.path.join(folder, name) for name in ("features.dat", "scores.dat")]

    def pool(path: str) -> None:
        other = pair[path == pair[0]]
        _write(other, (SEEDS / os.path.basename(other) / "plain").read_bytes())
        pool_from_moses(pair[:1], pair[1:])

    return [
        _of_file(folder, "phrase-table", table, share=3, tokens="||| 0.5 1e-7 0-0 [X] [X][X] das"),
        _of_file(folder, "phrase-pairs", lambda path: _all(read_phrase_pairs(path)), tokens="|||"),
        _of_file(folder, "moses.ini", ini, share=2, tokens="[feature] [weight] name= path= num-features= LM0= 0.5 #"),
        _of_file(folder, "weights", lambda path: format_weights(read_weights(path)), share=2, tokens="[weight] LM0= 1"),
        _of_file(folder, "lexicon", lexicon, tokens="NULL 0.5 1.0 la the"),
        *(
            _of_file(folder, os.path.basename(path), pool, tokens=tokens)._replace(names_file=tuple(pair))
            for path, tokens in zip(pair, ("FEATURES_TXT_BEGIN_0 LM0_0", "SCORES_TXT_BEGIN_0 BLEU"), strict=True)
        ),
    ]


def _lists(folder: str) -> list[Target]:
    from smt_bridge.graphs.reading import read_graphs
    from smt_bridge.graphs.strings import best_strings
    from smt_bridge.nbest.entry import format_entry, with_columns
    from smt_bridge.nbest.order import ordered_lists

    def read(path: str, format: str) -> None:
        with ordered_lists(path, format=format) as found:
            for group in found.lists:
                for entry in group.entries:
                    format_entry(with_columns(entry, ["NMT0"], [-1.5])._replace(total=-2.5))

    features = _graph_features(folder)

    def graphs(path: str) -> None:
        for graph in read_graphs(path, features):
            assert (graph.starts_E < graph.ends_E).all() and graph.ends_E.max(initial=0) < graph.nodes
            best_strings(graph, features.scores(graph), 3)

    formats = ("auto", "moses", "factors", "scored", "fairseq", "lines:2")
    tokens = "||| LM0= -1.5 0-0 H-0 P-0 D-0 0 the|DT"
    arcs = "hyp=1 stack=1 back=0 recombined=2 forward=-1 core=(0.000,-1.000)"
    return [
        *(
            _of_file(folder, f"nbest-{name.replace(':', '-')}", functools.partial(read, format=name), tokens=tokens)
            for name in formats
        ),
        _of_file(folder, "search-graph", graphs, share=2, tokens=arcs),
    ]


def _graph_features(folder: str) -> Any:
    from smt_bridge.graphs.features import GraphFeatures
    from tests.small_graphs import write_ini

    return GraphFeatures(write_ini(Path(folder)))


# ---- records in JSON, settings in YAML


def _records(folder: str) -> list[Target]:
    from nmt_core.config import read_yaml, with_overrides
    from nmt_core.jobs.journal import read_journal
    from nmt_core.preparation.record import read_record
    from nmt_core.preparation.settings import PreparationConfig
    from nmt_core.training.config import RunConfig
    from nmt_core.training.run import with_start_settings
    from smt_bridge.metadata import read_metadata
    from smt_bridge.tuning.loop_folder import read_rounds

    def journal(path: str) -> None:
        assert all(entry.shard.lines >= 0 for entry, _ in read_journal(path, {}))

    def training(path: str) -> None:
        RunConfig.from_mapping(with_start_settings(with_overrides(read_yaml(path), ["training.seed=2"])), origin=path)

    def preparation(path: str) -> None:
        PreparationConfig.from_mapping(read_yaml(path), origin=path)

    keys = "folder: model: type: rnnsearch hidden: data: source: target: training: seed: &a *a null .inf .nan 0o7"
    return [
        _of_file(
            folder,
            "state.json",
            lambda _: read_rounds(folder, {}),
            tokens='"rounds" "weights" "new" null NaN 1e999 [1]',
        ),
        _of_file(folder, "out.journal", journal, tokens='"journal" "identity" "shard" "outputs" "counts"'),
        _of_file(
            folder, "sidecar.json", read_metadata, tokens='"columns" "scores_before" "signatures" "added" "nmt:x|a:b"'
        ),
        _of_file(folder, "preparation.json", read_record, share=0.3, tokens='"models" "settings"')._replace(
            names_file=(folder,)
        ),
        _of_file(folder, "training.yaml", training, share=0.7, tokens=keys),
        _of_file(folder, "preparation.yaml", preparation, share=0.7, tokens=keys),
    ]


# ---- text, words, tokens


def _texts(folder: str) -> list[Target]:

    from nmt_core.files import read_lines
    from nmt_core.kenlm import NgramModel
    from nmt_core.preparation.steps import ModelFile
    from nmt_core.preparation.subwords import Bpe, Morphs
    from nmt_core.preparation.words import read_counts
    from nmt_core.serving.credentials import read_tokens
    from nmt_core.text.alignment import read_aligned
    from nmt_core.text.vocabulary import Vocabulary
    from smt_bridge.doctor.configuration import examine_model

    sides = [os.path.join(folder, name) for name in ("aligned.source", "aligned.target")]
    _write(sides[0], b"the house\nyes\n")
    _write(sides[1], b"la maison\noui\n")

    def vocabulary(path: str) -> None:
        found = Vocabulary.load(path)
        found.lines(with_counts=True), found.encode("a b"), found.fingerprint

    def language_model(path: str) -> None:
        list(examine_model(path, None, ini=""))
        NgramModel(path).log_prob(["a", "b"])

    return [
        _of_file(folder, "vocabulary", vocabulary, share=2, tokens="</s> <unk> the"),
        _of_file(folder, "alignment", lambda path: _all(read_aligned(*sides, path)), tokens="0-0 1-1")._replace(
            names_file=(os.path.join(folder, "alignment"), *sides)
        ),
        _of_file(folder, "text.gz", lambda path: _all(read_lines(path))),
        _of_file(
            folder, "language-model.arpa", language_model, share=0.5, tokens="\\data\\ \\1-grams: \\end\\ ngram 1=2"
        ),
        _of_file(folder, "counts", lambda path: _all(read_counts(ModelFile.read(path)))),
        _of_file(
            folder, "merges", lambda path: Bpe(ModelFile.read(path)).apply("the lowest"), tokens="#version: 0.2 e</w>"
        ),
        _of_file(folder, "morphs", lambda path: Morphs(ModelFile.read(path)).apply("the house"), share=0.3),
        _of_file(folder, "tokens", read_tokens, tokens="# alice 0123456789abcdef0123456789abcdef"),
    ]


# ---- files of other programs


def _foreign(folder: str) -> list[Target]:
    from nmt_core.foreign.arrays import Arrays
    from nmt_core.foreign.vocabularies import ordered, read_words

    def arrays(path: str) -> None:
        found = Arrays(path)
        for name in found.names:
            found.take(name, *found.shape(name, 2))
        found.finish()

    def words(path: str) -> None:
        ordered(read_words(path), 5, end=0, unknown=1, path=path)

    return [
        _of_file(folder, "foreign.npz", arrays, share=0.5, tokens="'descr': '<f4' 'shape': (2,3) 'fortran_order': |O"),
        _of_file(folder, "foreign-words.yml", words, tokens="\"\\x41\": 1 </s>: 0 <unk>: 'it''s': {\"the\": 2}"),
        _of_file(folder, "foreign-words.json", words, tokens='{"the": 2} "\\ud800": 1e9 [ ] NaN'),
        _of_file(folder, "foreign-words.txt", words, tokens="</s> <unk> the"),
    ]


# ---- model folders and the state of a run


def _model_folders(folder: str) -> list[Target]:
    from nmt_core.model_directory.loaded_model import load_model, save_model
    from nmt_core.model_directory.settings import FolderConfig
    from nmt_core.models.build import new_model
    from nmt_core.models.presets import preset
    from nmt_core.text.vocabulary import Vocabulary
    from nmt_core.training.fingerprint import RunIdentity
    from nmt_core.training.state import Progress, restore_state, save_state

    place = os.path.join(folder, "model")
    sizes = {"hidden": 2, "embedding": 2, "maxout": 1, "initialisation": "glorot"}
    config = preset("rnnencdec").model_copy(update=sizes)
    words = Vocabulary(["</s>", "<unk>", "the", "la"], [9, 0, 5, 4])
    model = new_model(config, len(words), len(words), seed=1)
    save_model(place, model, words, words, FolderConfig(model=config))
    optimizer = _optimizer(model)
    trained = dict(model.named_parameters())
    run = RunIdentity({}, {}, {"text": "0"}, {})
    save_state(place, trained, optimizer, Progress(), run)

    def load(content: bytes, name: str, read: Callable[[str], object]) -> None:
        path = os.path.join(place, name)
        valid = Path(path).read_bytes()
        try:
            _write(path, content)
            read(place)
        finally:
            _write(path, valid)

    def target(kind: str, name: str, read: Callable[[str], object], tokens: str, share: float) -> Target:
        valid = (Path(place, name).read_bytes(), *seeds(kind))
        load_it = functools.partial(load, name=name, read=read)
        return Target(kind, load_it, valid, tuple(tokens.encode().split()), share, (place,))

    header = '"dtype": "F32" "I32" "F64" "BF16" "shape": "data_offsets": [0,8] __metadata__'
    return [
        target("model-config", "config.yaml", load_model, "format_version: 1 hidden: 40000 type: &a *a .nan", 0.4),
        target("model-parameters", "model.safetensors", load_model, header, 0.5),
        target("model-vocabulary", "source.vocab", load_model, "</s> <unk>", 0.3),
        target(
            "training-state", "training.safetensors", lambda at: restore_state(at, trained, optimizer, run), header, 0.5
        ),
    ]


def _optimizer(model: Any) -> Any:
    import torch

    optimizer = torch.optim.Adadelta(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    return optimizer


# ---- messages of the service


def _messages(folder: str) -> list[Target]:
    return [
        Target(f"message-{name.lower()}", functools.partial(_call, folder, name), _message_seeds(name), share=0.1)
        for name in ("Translate", "Score", "Rerank", "Encode")
    ]


def _message_seeds(name: str) -> Sequence[Any]:
    from nmt_core.v1 import nmt_pb2 as pb

    pair = pb.Pair(source="the la", target="la")
    group = pb.SourceGroup(source="the", targets=["la", ""])
    listing = pb.NbestList(source="the", hypotheses=[pb.Hypothesis(target="la", values=[1.5])])
    column = pb.FeatureColumn(name="LM0", weight=0.5)
    messages = {
        "Translate": [
            pb.TranslateRequest(texts=["the la", ""], beam=2, nbest=2, with_attention=True, max_length_ratio=1.5),
            pb.TranslateRequest(texts=["the"], length_normalization=0.5, forbid_unknown=True, raw=True),
        ],
        "Score": [
            pb.ScoreRequest(pairs=[pair], groups=[group], per_word=True, with_attention=True, priority="PRIORITY_BULK")
        ],
        "Rerank": [pb.RerankRequest(columns=[column], model_weight=0.5, lists=[listing], best=1)],
        "Encode": [pb.EncodeRequest(texts=["the la"], raw=False), pb.EncodeRequest(texts=["the la"], raw=True)],
    }
    return tuple(message.SerializeToString() for message in messages[name])


def _call(folder: str, name: str, content: bytes) -> None:
    """Bytes to a request as gRPC does it, and the servicer's answer to that."""
    from google.protobuf.message import DecodeError

    from nmt_core.serving.limits import ACCOUNT, Account, Memory
    from nmt_core.serving.telemetry import CALL, Call
    from nmt_core.v1 import nmt_pb2 as pb

    try:
        request = getattr(pb, f"{name}Request").FromString(content)
    except DecodeError:
        return  # refused by gRPC itself
    loop, servicer = _service(os.path.join(folder, "model"))
    CALL.set(Call(name, "ipv4:127.0.0.1:1", ""))
    ACCOUNT.set(Account(Memory(1 << 30), "someone"))
    answer = loop.run_until_complete(getattr(servicer, name)(request, _Context()))
    getattr(pb, f"{name}Response").FromString(answer)


class _Context:
    """A call without a deadline: whatever is asked of it, it answers None."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


@functools.cache
def _service(folder: str) -> tuple[Any, Any]:
    """A servicer of one small model; made in the process that asks."""
    import asyncio

    from nmt_core.inference.search.config import DecodingConfig
    from nmt_core.serving.limits import Limits
    from nmt_core.serving.models.opening import open_served_model
    from nmt_core.serving.service import NmtServicer

    async def begin() -> NmtServicer:
        servicer = NmtServicer(limits=Limits(items=100, characters=200, words=20, beam=5, nbest=5))
        await servicer.device.load(
            lambda: {"m": open_served_model([folder], DecodingConfig(beam=2), device="cpu", dtype="float32")}
        )
        return servicer

    loop = asyncio.new_event_loop()
    return loop, loop.run_until_complete(begin())
