"""Schedules, accumulation, several texts and development sets: their equations, and exact resumption."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from numpy.typing import NDArray

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.batches.padding import pad_pairs
from nmt_core.commands.main import main
from nmt_core.config import with_overrides
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from nmt_core.training.config import RunConfig, TrainingConfig, check_compatible
from nmt_core.training.data.corpus import BatchPlan, ParallelCorpus, encode_corpus
from nmt_core.training.data.partitions import cut_into_partitions
from nmt_core.training.data.stored import store_pairs
from nmt_core.training.data.texts import _hold_out, _name, _not_empty, read_phrase_pairs
from nmt_core.training.gradient import backpropagate
from nmt_core.training.optimizer import build_optimizer, rate_factor, rescale_gradient
from nmt_core.training.start import _difference, prepare
from nmt_core.training.tasks import task_of_update

LUONG = {"optimizer": "sgd", "gradient": "sentence", "clip": 5.0, "schedule": "halving", "decay_after": 0.5}


@pytest.mark.parametrize(
    "training",
    [
        pytest.param({**LUONG, "decay_every": 0.25}, id="sgd-halving"),
        pytest.param({"partition_words": 24, "average": 2, "freeze_embeddings_after": 15}, id="partitions"),
        pytest.param({"update_every": 2, "batch_sentences": 4, "partition_words": 24}, id="accumulation-partitions"),
        pytest.param({"warmup": 7, "optimizer": "adam", "gradient": "word", "decay_patience": 1}, id="adam"),
        pytest.param({"precision": "bfloat16", "update_every": 2, "gradient": "word"}, id="bfloat16"),
        pytest.param({"shuffle": "once", "batch_tokens": 60}, id="shuffled-once"),
    ],
)
def test_every_option_resumes_exactly(runs, training: dict[str, object]) -> None:
    runs.assert_resumes_exactly(**training)


def test_several_texts_with_weights_resume_exactly(runs) -> None:
    files = {side: [runs.file(f"{name}.{side[0]}") for name in ("train", "other")] for side in ("source", "target")}
    runs.assert_resumes_exactly(data={**files, "weights": [2, 1]}, optimizer="adam", learning_rate=0.01)
    cursors = runs.progress("whole")["cursors"]
    done = [
        cursor["epoch"] * updates + cursor["groups"] for cursor, updates in zip(cursors.values(), (24, 6), strict=True)
    ]
    assert sum(done) == 31
    assert all(done)


# --- the learning rate


def test_luongs_schedule_halves_every_epoch_after_the_fifth() -> None:
    config = TrainingConfig(**{**LUONG, "decay_after": 5})
    found = [rate_factor(config, update=1, epochs=epochs) for epochs in (0, 4.99, 5, 5.5, 6, 7, 9.9)]
    assert found == [1, 1, 0.5, 0.5, 0.25, 0.125, 0.5**5]
    half = TrainingConfig(**{**LUONG, "decay_after": 5, "decay_every": 0.5})
    assert [rate_factor(half, update=1, epochs=epochs) for epochs in (5, 5.5, 6)] == [0.5, 0.25, 0.125]


def test_warmup_rises_in_a_straight_line() -> None:
    found = [rate_factor(TrainingConfig(warmup=10), update=update, epochs=0) for update in (1, 5, 10, 50)]
    assert found == [0.1, 0.5, 1.0, 1.0]


# --- updates


def small_model(**sizes: object) -> torch.nn.Module:
    config = {"embedding": 4, "hidden": 5, "alignment": 3, "maxout": 3, "initialisation": "glorot", **sizes}
    return new_model(RNNsearchConfig(**config), 14, 14, seed=1).double().requires_grad_(True)


def test_sgd_is_the_step_along_the_rescaled_gradient() -> None:
    parameter = torch.nn.Parameter(torch.tensor([1.0, 2.0], dtype=torch.float64))
    optimizer = build_optimizer(TrainingConfig(optimizer="sgd", learning_rate=0.5), [parameter])
    parameter.grad = torch.tensor([6.0, 8.0], dtype=torch.float64)
    rescale_gradient([parameter], 5.0)
    optimizer.step()
    np.testing.assert_allclose(parameter.detach().numpy(), [1 - 0.5 * 3, 2 - 0.5 * 4], atol=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 0.07, 0.0711, 1.0, 1e3, float("nan")])
def test_rescaled_gradients_are_those_of_pytorch_and_are_not_written_to(scale: float) -> None:
    generator = torch.Generator().manual_seed(3)
    parameters = [torch.nn.Parameter(torch.zeros(size)) for size in (200, 1, 7)]
    others = [torch.nn.Parameter(torch.zeros(size)) for size in (200, 1, 7)]
    for parameter, other in zip(parameters[:2], others[:2], strict=True):  # the last has no gradient
        parameter.grad = scale * torch.randn(len(parameter), generator=generator)
        other.grad = parameter.grad.clone()
    before = [(parameter.grad, other.grad.clone()) for parameter, other in zip(parameters[:2], others[:2], strict=True)]
    norm, expected = rescale_gradient(iter(parameters), 1.0), torch.nn.utils.clip_grad_norm_(others, 1.0)
    assert torch.equal(norm, expected) or scale != scale
    for parameter, other in zip(parameters[:2], others[:2], strict=True):
        np.testing.assert_array_equal(parameter.grad.numpy(), other.grad.numpy())
    assert parameters[2].grad is None
    for gradient, copy in before:
        np.testing.assert_array_equal(gradient.numpy(), copy.numpy())


def test_accumulated_minibatches_are_one_larger_minibatch() -> None:
    vocabulary = Vocabulary([*SPECIAL_WORDS, *(f"w{number}" for number in range(12))])
    generator = np.random.default_rng(1)
    texts = [" ".join(f"w{w}" for w in generator.integers(0, 12, generator.integers(1, 7))) for _ in range(96)]
    corpus = encode_corpus(zip(texts[::2], texts[1::2], strict=True), vocabulary.encode, vocabulary.encode)
    large = BatchPlan(sentences=8, window=3, seed=2).epoch(corpus, 1)
    small = BatchPlan(sentences=2, window=12, seed=2, group=4).epoch(corpus, 1)
    assert [group[0].tolist() for group in large] == [np.concatenate(group).tolist() for group in small]
    pairs = [(corpus.source[index], corpus.target[index]) for index in large[0][0].tolist()]
    gradients = []
    for size in (8, 2):
        model = small_model()
        words = sum(len(target) + 1 for _, target in pairs)
        for first in range(0, 8, size):
            backpropagate(model, pad_pairs(pairs[first : first + size]), scale=1.0 / words)
        gradients.append([parameter.grad for parameter in model.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize(
    ("gradient", "parts"), [("sum", "update_every"), ("sentence", "microbatches"), ("word", "update_every")]
)
def test_a_run_that_accumulates_is_one_with_larger_minibatches(runs, gradient: str, parts: str) -> None:
    how = {"gradient": gradient, "max_updates": 12, "optimizer": "sgd", "learning_rate": 0.1, "model": {"dropout": 0}}
    runs.write("large", batch_sentences=12, window=2, **how)
    runs.write("small", batch_sentences=4, window=6, **{parts: 3}, **how)
    assert runs.go_on("large") == runs.go_on("small") == 0
    small = runs.model("small")
    for name, tensor in runs.model("large").items():
        torch.testing.assert_close(small[name], tensor, rtol=1e-4, atol=1e-6)


# --- what is read, and the order


@pytest.mark.parametrize(("monolingual", "kept"), [(False, [("a a", "a a"), ("a", "a")]), (True, [("", "a a")] * 3)])
def test_pairs_with_an_empty_or_too_long_side_are_left_out(monolingual: bool, kept: list[tuple[str, str]]) -> None:
    vocabulary = Vocabulary([*SPECIAL_WORDS, "a"])
    both = [("a a", "a a"), ("a a a", "a"), ("a", "a a a"), ("", "a"), ("a", ""), ("a", "a")]
    pairs = [("", "a a"), ("", "a a a"), ("", "")] + [("", "a a")] * 2 if monolingual else both
    corpus = encode_corpus(pairs, vocabulary.encode, vocabulary.encode, max_length=2, monolingual=monolingual)
    lengths = zip(corpus.source.lengths.tolist(), corpus.target.lengths.tolist(), strict=True)
    assert [*lengths] == [(len(source.split()), len(target.split())) for source, target in kept]
    assert corpus.left_out == len(pairs) - len(kept)


def test_one_shuffle_gives_every_epoch_the_same_minibatches() -> None:
    vocabulary = Vocabulary([*SPECIAL_WORDS, "a"])
    corpus = encode_corpus((("a " * (n % 5 + 1), "a") for n in range(50)), vocabulary.encode, vocabulary.encode)
    once, anew = BatchPlan(4, 2, once=True), BatchPlan(4, 2)
    orders = [[index for group in plan.epoch(corpus, epoch) for part in group for index in part.tolist()]
              for plan in (once, anew) for epoch in (0, 1)]  # fmt: skip
    assert orders[0] == orders[1] == orders[2] != orders[3]
    assert all(sorted(order) == list(range(50)) for order in orders)


@pytest.mark.parametrize(("updates", "alike"), [(24, True), (30, False)])
def test_a_run_has_another_order_in_its_second_epoch_unless_it_shuffles_once(runs, updates: int, alike: bool) -> None:
    for shuffle in ("every-epoch", "once"):
        runs.write(shuffle, shuffle=shuffle, max_updates=updates, validate_every=updates)
        assert runs.go_on(shuffle) == 0
    once = runs.model("once")
    assert all(torch.equal(tensor, once[name]) for name, tensor in runs.model("every-epoch").items()) == alike


def longest(corpus: ParallelCorpus, updates: Sequence[Sequence[NDArray[np.int64]]]) -> int:
    """Words, with padding, of the largest minibatch of every update."""
    sides = (corpus.source.lengths + 1, corpus.target.lengths + 1)
    return sum(max(len(part) * sum(int(side[part].max()) for side in sides) for part in parts) for parts in updates)


@pytest.mark.parametrize(("processes", "least"), [(2, 1.04), (4, 1.12)])
def test_minibatches_that_processes_share_are_divided_evenly(processes: int, least: float) -> None:
    vocabulary = Vocabulary([*SPECIAL_WORDS, "a"])
    lengths = np.random.default_rng(3).gamma(6.0, 2.0, (997, 2)).astype(int) + 1
    corpus = encode_corpus((("a " * s, "a " * t) for s, t in lengths.tolist()), vocabulary.encode, vocabulary.encode)
    plan = BatchPlan(16, 12, group=processes)
    neighbours, evenly = plan.epoch(corpus, 0), dataclasses.replace(plan, even=True).epoch(corpus, 0)
    for before, after in zip(neighbours, evenly, strict=True):
        assert sorted(np.concatenate(before).tolist()) == sorted(np.concatenate(after).tolist())
        assert 1 <= len(after) <= processes
    assert longest(corpus, neighbours) > least * longest(corpus, evenly)
    config = TrainingConfig(microbatches=processes, update_every=3)
    assert config.plan == BatchPlan(80, 20, seed=1, group=3 * processes, even=True)
    assert not config.model_copy(update={"batch_tokens": 9}).plan.even and not TrainingConfig().plan.even


@pytest.mark.parametrize(("pairs", "group", "parts"), [(4, 4, 4), (6, 4, 3), (9, 8, 5)])
def test_few_pairs_of_one_length_may_be_fewer_minibatches(pairs: int, group: int, parts: int) -> None:
    vocabulary = Vocabulary([*SPECIAL_WORDS, "a"])
    corpus = encode_corpus((("a", "a") for _ in range(pairs)), vocabulary.encode, vocabulary.encode)
    [update] = BatchPlan(sentences=4, group=group, even=True).epoch(corpus, 0)
    assert len(update) == parts


def test_texts_are_drawn_by_their_weights(runs) -> None:
    files = {side: [runs.file(f"{name}.{side[0]}") for name in ("train", "other")] for side in ("source", "target")}
    runs.write("run", data={**files, "weights": [3, 1]})
    run = RunConfig.from_mapping(yaml.safe_load(Path(runs.file("run.yaml")).read_text()), origin="test")
    tasks = prepare(run).tasks
    assert [len(task.corpus) for task in tasks] == [240, 60]
    drawn = Counter(task_of_update(tasks, seed=1, update=number) for number in range(1, 4001))
    assert drawn[0] / 4000 == pytest.approx(0.75, abs=0.03)  # four standard deviations
    assert len(tasks[1].loaded.source) == len(tasks[0].loaded.source)


def test_files_without_weights_are_one_text(runs) -> None:
    for side in ("s", "t"):
        both = Path(runs.file(f"train.{side}")).read_text() + Path(runs.file(f"other.{side}")).read_text()
        Path(runs.file(f"both.{side}")).write_text(both)
    lists = {side: [runs.file(f"{name}.{side[0]}") for name in ("train", "other")] for side in ("source", "target")}
    runs.write("list", max_updates=5, data=lists)
    runs.write("file", max_updates=5, data={"source": runs.file("both.s"), "target": runs.file("both.t")})
    for name in ("list", "file"):
        assert runs.go_on(name) == 0
    assert all(torch.equal(tensor, runs.model("file")[name]) for name, tensor in runs.model("list").items())


# --- development sets


def test_several_development_sets_are_measured_and_the_first_decides(runs, capsys: pytest.CaptureFixture[str]) -> None:
    dev = {f"dev_{side}": [runs.file(f"{name}.{side[0]}") for name in ("dev", "dev2")] for side in ("source", "target")}
    runs.write("several", max_updates=12, data=dev)
    runs.write("one", max_updates=12)
    assert main(["train", runs.file("several.yaml"), "--device", "cpu"]) == 0
    message = capsys.readouterr().err
    assert message.count("; dev2.s: BLEU") == 3  # two validations and the end
    assert runs.go_on("one") == 0
    history = [runs.progress(name)["history"] for name in ("several", "one")]
    others = [entry.pop("others") for entry in history[0]]
    assert [[other["name"] for other in entry] for entry in others] == [["dev2.s"]] * 2
    assert [{**entry, "others": []} for entry in history[0]] == history[1]


# --- what does not go together


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"schedule": "halfing"}, "'training.schedule': Input should be 'constant' or 'halving'"),
        ({"updates_every": 3}, "did you mean 'update_every'?"),
        ({"data": {"weights": [1, -2]}}, "'data.weights.1'"),
    ],
)
def test_what_does_not_go_together_is_one_line(
    runs, error_line: Callable[..., str], settings: dict[str, object], message: str
) -> None:
    runs.write("run", **settings)
    assert message in error_line(runs.go_on, "run")


KINDS = "give either source and target, or phrase_table, or for a language model text"
DEV = "dev_text goes with text, dev_source and dev_target go with the others"
TEXT = "data.text=x data.source=null data.target=null"
PLAIN = "data.dev_source=a data.dev_target=b"
PLACES = "make them equal, or data.max_length smaller"
TASK = '{"name":"x","kind":"autoencoder","share":"both","ratio":1,"source":"a"}'
TASKS = f"tasks=[{TASK}] model.type=deep-lstm"
LEFT = "target_order=right-to-left model.type=deep-lstm model.attention=dot model.window="


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        *((changes, f"f.yaml: 'data': {KINDS}") for changes in ("data.text=x", "data.target=null")),
        *((changes, f"f.yaml: 'data': {DEV}") for changes in ("data.dev_text=x", f"{TEXT} {PLAIN}")),
        ("data.dev_source=x", "f.yaml: 'data': give both dev_source and dev_target, or neither"),
        ("data.source=[a,b]", "f.yaml: 'data': source has 2 entries and target 1"),
        ("data.weights=[1,2]", "f.yaml: 'data': source has 1 entry and weights 2"),
        (f"{TEXT} data.weights=[1,2]", "f.yaml: 'data': text has 1 entry and weights 2"),
        (f"{PLAIN} data.dev_source=[a,b]", "f.yaml: 'data': dev_source has 2 entries and dev_target 1"),
        (f"{PLAIN} data.dev_alignment=[c,d]", "f.yaml: 'data': dev_source has 1 entry and dev_alignment 2"),
        ("data.source_vocabulary=0",
         "f.yaml: 'data.source_vocabulary': expected a file, or a size of at least 1 word (found 0)"),
        ("data.lexicon=l", "f.yaml: data.lexicon is for annotated text; say which scheme it has: copying: posunk"),
        (f"{TEXT} copying=posunk",
         "f.yaml: copying is of text that nmt-core annotate wrote: give it as data.source and data.target"),
        ("copying=posunk",
         "f.yaml: copying: give a development set of plain text as data.dev_source and data.dev_target"),
        (f"{PLAIN} copying=posunk model.source_factors=[3]",
         "f.yaml: copying is of words without factors; leave it out, or model.source_factors"),
        (f"{PLAIN} copying=posunk model.type=hybrid",
         "f.yaml: copying: a model of type hybrid spells unknown words; leave copying out"),
        (f"{PLAIN} copying=posall",
         "f.yaml: copying: posall: give data.dev_alignment, the word alignment of the development set"),
        ("model.source_factors=[3,4] data.source_factor_vocabularies=[v]",
         "f.yaml: data.source_factor_vocabularies has 1 entry and model.source_factors 2; give one for each factor"),
        ("model.source_factors=[3] data.preparation=p",
         "f.yaml: data.preparation is of words without factors; leave it out, or model.source_factors"),
        ("training.keep_zeros=true",
         "f.yaml: 'training': keep_zeros keeps the zeros of start_from, which is missing"),
        ("training.mask_of=m training.start_from=n",
         "f.yaml: 'training': mask_of is for a new model; with start_from give keep_zeros: true"),
        *((f"training.{key} training.partition_words=9",
           "f.yaml: 'training': partition_words does not go with keep_zeros or mask_of")
          for key in ("mask_of=m", "keep_zeros=true training.start_from=m")),
        *((f"training.{key}", f"f.yaml: 'training': {key.partition('=')[0]} goes with schedule: halving")
          for key in ("decay_after=3", "decay_every=0.5")),
        ("training.partition_words=9 data.source=[a,b] data.target=[c,d] data.weights=[1,2]",
         "training.partition_words cuts one text into partitions; leave data.weights out"),
        (TEXT, "data.text is for models of type rnnlm or cslm; rnnsearch needs data.source and data.target"),
        (f"{TEXT} model.type=rnnlm", "data.text has no translations; set training.select_by: nll"),
        ("model.type=deep-lstm model.attention=location data.max_length=null",
         f"model.places: attention by location has 50 places, and data.max_length is null; {PLACES}"),
        ("model.type=deep-lstm model.attention=location model.places=1 data.max_length=2",
         f"model.places: attention by location has 1 place, and data.max_length is 2; {PLACES}"),
        ("model.type=deep-lstm model.attention=location model.places=2 data.max_length=2", None),
        ("model.type=deep-fusion",
         "training.start_from is missing; a model of type deep-fusion starts from what nmt-core fuse made"),
        (f"tasks=[{TASK},{TASK}] model.type=deep-lstm",
         "f.yaml: tasks: two have one name; their folders are called by it"),
        *((f"{TASKS} {change}", "f.yaml: tasks share parts of models of type deep-lstm, without source_factors")
          for change in ("model.source_factors=[3]", "model.type=rnnsearch")),
        *((f"{TASKS} data.source=[a,b] data.target=[c,d] {key}={value}",
           f"f.yaml: tasks do not go with {key}; leave one of them out") for key, value in
          (("training.partition_words", 6), ("training.freeze_embeddings_after", 0), ("data.weights", "[1,2]"),
           ("copying", "posunk"))),
        *((f"{LEFT}local-m model.type={kind}", "model.window: local-m attends to the word in the same place, from the "
           "left; with target_order: right-to-left use window: local-p or global") for kind in ("deep-lstm", "hybrid")),
        *((changes, None) for changes in (
            TASKS, f"{LEFT}local-p", f"{LEFT}local-m target_order=left-to-right",
            f"{TEXT} model.type=cslm training.select_by=nll", "model.type=deep-fusion training.start_from=m",
            f"{PLAIN} copying=posunk", f"{PLAIN} copying=posall data.dev_alignment=c",
            "model.source_factors=[3] data.preparation=auto", "model.source_factors=[3] data.preparation=null",
            "model.source_factors=[3] data.source_factor_vocabularies=[v] training.partition_words=9")),
    ],
)  # fmt: skip
def test_settings_that_contradict_one_another_are_named(changes: str, problem: str | None) -> None:
    settings = {"folder": "f", "model": {"type": "rnnsearch"}, "data": {"source": "s", "target": "t"}}
    try:
        check_compatible(RunConfig.from_mapping(with_overrides(settings, changes.split()), origin="f.yaml"))
        said = None
    except ConfigError as error:
        said = str(error)
    assert said == problem


LEAST = {"warmup": 0, "decay_after": 0.0, "update_every": 1, "microbatches": 1, "label_smoothing": 0.0,
         "self_normalization": 0.0, "partition_words": 3, "freeze_embeddings_after": 0, "batch_sentences": 1,
         "batch_tokens": 1, "window": 1, "max_epochs": 1, "max_updates": 1, "validate_every": 1, "dev_beam": 1,
         "patience": 1, "decay_patience": 1, "average": 1, "keep_best": 0, "keep_every": 1, "seed": 0}  # fmt: skip
TOO_MUCH = {
    "learning_rate": math.inf,
    "microbatches": 4097,
    "label_smoothing": 1.0,
    "decay": 1.0,
    "seed": 2**63,
    "self_normalization": math.inf,
}
NEVER_0 = ("learning_rate", "decay_every", "clip", "max_minutes", "decay", "save_every")


def test_numbers_have_limits() -> None:
    assert TrainingConfig(**LEAST).to_mapping().items() >= LEAST.items()
    assert TrainingConfig(microbatches=4096, seed=2**63 - 1, clip=math.inf).microbatches == 4096
    below = {key: value - 1 for key, value in LEAST.items()} | dict.fromkeys(NEVER_0, 0)
    for key, value in (*below.items(), *TOO_MUCH.items()):
        with pytest.raises(ConfigError, match=f"^x: '{key}'"):
            TrainingConfig.from_mapping({key: value, "schedule": "halving"}, origin="x")


def test_what_two_models_do_not_have_in_common() -> None:
    settings = {"folder": "f", "model": {"type": "rnnsearch"}, "data": {"source": "s", "target": "t"}}
    a, b, c = (Vocabulary([*SPECIAL_WORDS, word]) for word in "abc")
    run = RunConfig.from_mapping(settings, origin="x")
    for changes, words, said in (
        ("model.dropout=0.5 model.initialisation=glorot model.init_range=3", (a, b, c), None),
        ("model.order=conditional", (a, b, c), "model.order (conditional, not look-generate-update)"),
        ('model={"type":"rnnlm"}', (a, b, c), "model.type (rnnlm, not rnnsearch)"),
        ("", (c, b, c), "source vocabulary"),
        ("", (a, c, c), "target vocabulary"),
        ("", (a, b, b), "vocabulary of a source factor"),
        ("copying=posunk data.dev_source=a data.dev_target=b", (a, b, c), "copying"),
    ):
        config = RunConfig.from_mapping(with_overrides(settings, changes.split()), origin="x")
        other: Any = SimpleNamespace(config=config, factors=[c], vocabularies=words)
        assert _difference(run, (a, b, c), other) == said


# --- what there is too little of


def test_text_of_which_nothing_is_left_is_named(tmp_path: Path) -> None:
    vocabulary, path = Vocabulary([*SPECIAL_WORDS, *"abcd"]), tmp_path / "table"
    path.write_text("a ||| b ||| 1\na b\n")
    run = RunConfig.from_mapping(
        {"folder": "f", "model": {"type": "rnnsearch"}, "data": {"phrase_table": str(path)}}, origin="f.yaml"
    )
    corpus = encode_corpus([("a", "a b c d")], vocabulary.encode, vocabulary.encode)

    def encode(*pairs: tuple[str, str], **how: Any) -> object:
        return encode_corpus(pairs, vocabulary.encode, vocabulary.encode, **how)

    for call, problem in (
        (lambda: encode(("", "a"), ("a a a a", "a"), max_length=3),
         "no sentence pair is left to train on (2 were empty or longer than 3 words)"),
        (lambda: encode(("", ""), monolingual=True), "no sentence is left to train on (1 was empty)"),
        (lambda: [*cut_into_partitions(corpus, [np.array([0])], words=5, source_words=6, target_words=6)],
         "training.partition_words 5: a minibatch of 1 pair has 6 distinct target words; "
         "give at least that many, or make minibatches smaller"),
        (lambda: _hold_out(store_pairs([("a", "a")]), run), "1 pair is too few to hold 1,000 out for validation"),
        (lambda: [*_not_empty("text.en", [])], "text.en: is empty; there is nothing to train on"),
        (lambda: [*read_phrase_pairs(str(path))], f"{path}:2: expected 'source ||| target ||| scores'"),
    ):  # fmt: skip
        with pytest.raises(NmtError) as caught:
            call()
        assert str(caught.value) == problem
    assert [*cut_into_partitions(corpus, [np.array([0])], words=6, source_words=6, target_words=6)]
    assert [_name(["x/dev", "dev", "dev2"], place) for place in range(3)] == ["dev (1)", "dev (2)", "dev2"]
