"""The hybrids of a server: recipes by name, each with its own Moses, beside the neural models they are made of."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import NgramGuidance, PairScorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.loading import OpenModel
from nmt_core.serving.models.search import RunningSearch, finish, open_finisher
from nmt_core.serving.models.served import ServedModel
from nmt_core.transformer import TRANSFORMERS
from nmt_core.v1 import nmt_pb2 as pb
from smt_bridge.hybrid.chooser import Chooser, lists_of
from smt_bridge.hybrid.opening import graph_lists_of, graph_reader_of, moses_of, open_features
from smt_bridge.hybrid.translator import GuidedChooser, guidance_of
from smt_bridge.models import (
    REMOTE,
    Remote,
    SearchOptions,
    check_ours,
    check_takes_guidance,
    joins_words,
    model_folders,
    surface_words,
)
from smt_bridge.moses.process import WORD, MosesLines
from smt_bridge.recipe import Recipe, read_recipe
from smt_bridge.running_text import open_running_text, read_preparation
from smt_bridge.serving.hybrid_search import REASONS, WITHOUT_GRAPH, HybridFinish, HybridSearch, Parts
from smt_bridge.serving.moses_queue import MosesQueue

_COUNTS = (
    ("moses_restarts", "restarts", "Moses started in place of one that ended or hung"),
    ("moses_given_up_sentences", "given_up", "Sentences that ended Moses twice"),
    ("moses_failures", "failures", "Times that Moses could not be used at all"),
)


class HybridModels(Collector):
    """``PluginModels`` made of recipes, by name and path; it collects what each Moses and each hybrid counts."""

    def __init__(self, recipes: Mapping[str, str]) -> None:
        self._recipes = recipes
        self._running: dict[str, tuple[object, MosesQueue]] = {}  # what each was made of
        self._queues: list[MosesQueue] = []  # those of earlier loads, too
        self._closed = False
        self._degraded: dict[str, Counter[str]] = {name: Counter() for name in recipes}

    @property
    def names(self) -> Sequence[str]:
        """The names of all hybrids."""
        return tuple(self._recipes)

    def load(self, open_model: OpenModel) -> Mapping[str, ServedModel]:
        """Open each recipe's models, and wait until its Moses has loaded.

        Raises ConfigError and InputError for a recipe that cannot be served, MosesFailed for a Moses that cannot be
        used, unless the neural model may go on alone.
        """
        return {name: self._open(name, read_recipe(path), path, open_model) for name, path in self._recipes.items()}

    def _open(self, name: str, recipe: Recipe, path: str, open_model: OpenModel) -> ServedModel:
        if recipe.model.startswith(REMOTE):
            raise ConfigError(
                f"{path}: its neural model is that of a server; a hybrid is served with a model in a folder"
            )
        if recipe.guidance or recipe.graph:
            check_ours(recipe.model)
        neural, preparation = open_model(_named(recipe.model)), read_preparation(recipe)
        search = SearchOptions(recipe.beam, recipe.nmt_nbest, recipe.forbid_unknown)
        config = DecodingConfig.from_mapping(search._asdict(), origin=path)
        chooser, guide = _chooser(recipe, open_model), _guide(recipe, neural)
        complete = neural.finish if guide is None else functools.partial(finish, open_finisher(neural.loaded))
        parts = Parts(
            search=lambda: neural.decoder(False) if guide is None else RunningSearch(neural.loaded, attention=False),
            config=config,
            scorer=neural.scorer_of("surface"),
            words=surface_words(neural.loaded),
            chooser=chooser,
            moses=self._moses(name, recipe),
            degrade=recipe.degrade,
            degraded=self._degraded[name],
            graphs=graph_lists_of(recipe, neural.loaded),
            guide=guide,
        )
        description = pb.Model()
        description.CopyFrom(neural.description)
        description.kind, description.attends = pb.MODEL_KIND_HYBRID, False
        description.version += f"+{_version(recipe)}"
        return dataclasses.replace(
            neural,
            decoder=lambda attention: HybridSearch(parts),
            finish=HybridFinish(parts, complete),
            defaults=DecodingConfig.from_mapping({**search._asdict(), "nbest": 1}, origin=path),
            processor=functools.partial(open_running_text, preparation, neural.loaded, neural.processor),
            description=description,
        )

    def _moses(self, name: str, recipe: Recipe) -> MosesQueue:
        """The Moses of a recipe, loaded; the one that runs, unless its options or its moses.ini have changed.

        Raises MosesFailed where it cannot be used, unless the neural model may go on alone.
        """
        options = moses_of(
            recipe, program=recipe.moses_program, threads=recipe.moses_threads, timeout=recipe.moses_timeout
        )
        made_of = options, _stamp(recipe.moses_ini), recipe.graph
        before, running = self._running.get(name, (None, None))
        if running is not None and before == made_of:
            return running
        queue = MosesQueue(options, graph_reader_of(recipe))
        self._queues.append(queue)
        if self._closed:
            queue.close()
        queue.warns = recipe.degrade  # else the error that is raised says it
        error = queue.ask("", WORD).answer.exception()  # once it has loaded
        if error is not None and not recipe.degrade:
            queue.close()
            raise error
        queue.warns = True
        self._running[name] = made_of, queue
        if running is not None:
            running.retire()
        return queue

    def watch(self, registry: CollectorRegistry) -> None:
        """Add what each Moses and each hybrid counts."""
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Sums over all Moses, and sentences by model and reason, as they are when somebody asks."""
        for name, count, text in _COUNTS:
            yield CounterMetricFamily(name, text, sum(queue.counts[count] for queue in self._queues))
        waiting = sum(queue.waiting for queue in self._queues)
        yield GaugeMetricFamily("moses_waiting_sentences", "Sentences that Moses does not have yet", waiting)
        degraded = CounterMetricFamily(
            "hybrid_degraded_sentences", "Sentences translated without Moses", labels=["model", "reason"]
        )
        without_graph = CounterMetricFamily(
            "hybrid_sentences_without_graph", "Sentences whose search graph could not be used", labels=["model"]
        )
        for model, reasons in self._degraded.items():
            for reason in REASONS:
                degraded.add_metric([model, reason], reasons[reason])
            without_graph.add_metric([model], reasons[WITHOUT_GRAPH])
        yield from (degraded, without_graph)

    def close(self) -> None:
        """End every Moses."""
        self._closed = True
        for queue in self._queues:
            queue.close()


def _chooser(recipe: Recipe, open_model: OpenModel) -> Chooser | GuidedChooser:
    """What chooses, with the models of its features; raises as ``open_features`` and ``Chooser``."""

    def scorer_of(spec: str) -> PairScorer:
        if spec.startswith(REMOTE):
            return Remote(spec)
        return open_model(_named(spec)).scorer_of("surface")

    if recipe.guidance is not None:
        return GuidedChooser()
    return Chooser(recipe, open_features(recipe, scorer_of))


def _named(spec: str) -> list[str]:
    """The directories of a model, or what names a Transformer. Raises ConfigError."""
    return [spec] if spec.startswith(TRANSFORMERS) else model_folders(spec)


def _guide(recipe: Recipe, neural: ServedModel) -> Callable[[MosesLines | None], NgramGuidance | None] | None:
    """What makes guidance of Moses' answer, where the recipe says so; raises as ``check_takes_guidance``."""
    if recipe.guidance is None:
        return None
    check_takes_guidance(neural.loaded)
    options, joined = recipe.guidance, joins_words(neural.loaded)

    def guide(lines: MosesLines | None) -> NgramGuidance | None:
        lists, _ = lists_of(0, lines, [])
        found = guidance_of(lists, options)
        return found and found._replace(joined=joined)

    return guide


def _version(recipe: Recipe) -> str:
    """What changes with all that a translation depends on."""
    of_results = dataclasses.replace(recipe, moses_program="", moses_threads=1, moses_timeout=60.0, degrade=False)
    return hashlib.sha256(repr(of_results).encode()).hexdigest()[:12]


def _stamp(path: str) -> object:
    """What changes with a file; None where there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size
