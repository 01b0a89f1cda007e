"""The steps from a Moses system to a served hybrid, how long each takes, and how many updates fit into the minutes.

All speeds follow from one measured number: target words a second of RNNsearch in training. The factors were measured
with 29,000 pairs, 384 units and 13 words a sentence, on one core with AVX-512.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from smt_bridge.new.given import Given, Text
from smt_bridge.new.machine import Machine
from smt_bridge.new.settings import PHRASES, SENTENCES, Size

_TRAINING = 0.85  # share of a training's time that is not start, validation and averaging
_SEARCH = 0.25  # words a second of a beam of 12, for each of those in training
_SCORE = 6.0  # of lists that are scored
_REVERSE = 2.6  # of lists that are scored in the other direction, where each hypothesis is encoded
_PAIRS = 1.4  # phrase pairs a second that are scored
_PHRASES = 2.0  # target words a second in the training of the phrase model
_TUNED = 400.0  # hypotheses a second that are tuned
_MOSES = 5.0  # sentences a second and thread of Moses
_WORDS_OF_A_PHRASE = 3.0
_LEAST_UPDATES = 100
_MOST_EPOCHS = 40.0
_MOSES_LIST, _NMT_LIST = 100, 12


class Training(NamedTuple):
    """A training: its examples and the words of one, words a second, its share of the minutes, and what follows."""

    name: str
    size: Size
    examples: int
    words: float
    speed: float
    share: float
    updates: int = 0

    @property
    def minutes(self) -> float:
        """How long it takes."""
        if not self.speed:
            return 0.0
        return self.updates * self.size.sentences * self.words / self.speed / _TRAINING / 60.0

    @property
    def epochs(self) -> float:
        """How often the model sees its text."""
        return self.updates * self.size.sentences / self.examples

    def fitted(self, minutes: float) -> Training:
        """With as many updates as fit into its share of the minutes."""
        updates = minutes * self.share * 60.0 * _TRAINING * self.speed / self.words / self.size.sentences
        most = _MOST_EPOCHS * self.examples / self.size.sentences
        return self._replace(updates=max(_LEAST_UPDATES, int(min(updates, most))))


def trainings(given: Given, machine: Machine, *, size: str, speed: float) -> list[Training]:
    """The trainings without updates: RNNsearch of both directions, and RNNencdec where there are phrases to learn.

    RNNsearch trains next to the other two; on a single core, or GPU, all share the time.
    """
    text, pairs = given.corpus.text, given.system.pairs
    third = 0.0 if not pairs else 0.4 if machine.streams > 1 else 0.25
    first = 1.0 if machine.streams > 1 else 0.45
    second = (1.0 if machine.streams > 1 else 1.0 - first) - third
    found = [
        Training(name, SENTENCES[size], text.pairs, text.mean_words + 1, speed, share)
        for name, share in (("rnnsearch", first), ("reverse", second))
    ]
    phrases = Training("rnnencdec", PHRASES[size], max(1, pairs), _WORDS_OF_A_PHRASE + 1, speed * _PHRASES, third)
    return [*found, phrases] if pairs else found


class Step(NamedTuple):
    """One command as a user types it in the directory: what it makes, what it needs from other steps, its minutes.

    A training's output is an empty file, made when the training has ended.
    """

    output: str
    needs: tuple[str, ...]
    command: str
    minutes: float = 0.0


class Plan(NamedTuple):
    """All steps but serving, in an order in which each has what it needs, and the command that serves.

    ``with_moses`` is the plan of a machine with Moses, None where it is this one.
    """

    steps: tuple[Step, ...]
    serve: str
    with_moses: Plan | None

    @property
    def goals(self) -> tuple[str, ...]:
        """What `make` makes: everything that no other step needs."""
        needed = {name for step in self.steps for name in step.needs}
        return tuple(step.output for step in self.steps if step.output not in needed)

    @property
    def minutes(self) -> float:
        """Those of the steps, one behind the other."""
        return sum(step.minutes for step in self.steps)


def plan_of(given: Given, machine: Machine, models: Sequence[Training], speed: float) -> Plan:
    """The plan; minutes are 0 where ``speed`` is."""
    with_moses = None if given.moses else plan_of(given._replace(moses="moses"), machine, models, speed)
    return Plan(tuple(_steps(given, machine, models, speed)), _serve_command(given), with_moses)


def _steps(given: Given, machine: Machine, models: Sequence[Training], speed: float) -> Iterator[Step]:
    for model in models:
        log = f"{model.name}.log"
        yield Step(f"{model.name}.trained", (), f"nmt-core train {model.name}.yaml --resume 2>> {log}", model.minutes)
    yield from _column(given, machine, speed)
    if given.moses:
        yield from _with_moses(given, machine, speed)
    elif given.dev.nbest:
        yield from _with_lists(given, machine, speed)


def _column(given: Given, machine: Machine, speed: float) -> Iterator[Step]:
    """p(target | source) as a column of the phrase table, and the moses.ini that uses it."""
    if not given.system.table:
        return
    table, ini = shlex.quote(given.system.table), shlex.quote(given.system.ini)
    command = f"smt-bridge rescore-table {table} --scorer rnnencdec --jobs {machine.jobs} --output phrase-table.nmt.gz"
    minutes = _minutes(given.system.pairs, speed * _PAIRS * machine.jobs)
    yield Step("phrase-table.nmt.gz", ("rnnencdec.trained",), command, minutes)
    command = f"smt-bridge wire {ini} --table phrase-table.nmt.gz --output moses.nmt.ini"
    yield Step("moses.nmt.ini", ("phrase-table.nmt.gz",), command)


def _with_lists(given: Given, machine: Machine, speed: float) -> Iterator[Step]:
    """The lists of Moses and of the neural model as one, scored, tuned and reranked."""
    exact = "".join(f" --exact {shlex.quote(one)}" for one in given.system.exact)
    for text in _listed(given):
        source, nbest, name = shlex.quote(text.source), shlex.quote(text.nbest), text.name
        command = (
            f"nmt-core decode --model rnnsearch --beam {_NMT_LIST} --nbest {_NMT_LIST} --search forbid_unknown"
            f" --jobs {machine.jobs} --input {source} --output {name}.nmt.gz"
        )
        yield Step(f"{name}.nmt.gz", ("rnnsearch.trained",), command, _search_minutes(text, machine, speed))
        command = (
            f"smt-bridge add-features --source {source} --nbest moses={nbest} --nbest nmt={name}.nmt.gz{exact}"
            f" --scorer rnnsearch --reverse-scorer reverse --feature wordcount --jobs {machine.jobs}"
            f" --output {name}.rich.gz"
        )
        needs = (f"{name}.nmt.gz", "reverse.trained")
        yield Step(f"{name}.rich.gz", needs, command, _score_minutes(text, machine, speed))
    command = f"smt-bridge tune --nbest dev.rich.gz --reference {shlex.quote(given.dev.target)} --output weights"
    yield Step("weights", ("dev.rich.gz",), command, _tune_minutes(given))
    for text in judged(given):
        yield _judge(text, given, name=text.name, lists="rich", weights="weights")


def _with_moses(given: Given, machine: Machine, speed: float) -> Iterator[Step]:
    """Both systems as one translator: lists of the development set, weights, and translations of the test sets."""
    exact = "".join(f" --exact {shlex.quote(one)}" for one in given.system.exact)
    dev = given.dev
    command = (
        f"smt-bridge translate --moses-ini moses.ini --moses-threads {machine.threads} --model rnnsearch"
        f" --lists moses:{_MOSES_LIST},nmt:{_NMT_LIST} --feature nmt:rnnsearch --feature nmtreverse:reverse"
        f" --feature wordcount{exact} --nbest-output dev.live.gz --input {shlex.quote(dev.source)} --output dev.moses"
    )
    yield Step("dev.live.gz", ("rnnsearch.trained", "reverse.trained"), command, _live_minutes(dev, machine, speed))
    command = (
        f"smt-bridge tune --nbest dev.live.gz --reference {shlex.quote(dev.target)} --recipe hybrid.json"
        " --output hybrid.weights"
    )
    yield Step("hybrid.weights", ("dev.live.gz",), command, _tune_minutes(given))
    for text in given.tests:
        command = (
            f"smt-bridge translate --recipe hybrid.json --nbest-output {text.name}.live.gz"
            f" --input {shlex.quote(text.source)} --output {text.name}.hybrid"
        )
        yield Step(f"{text.name}.live.gz", ("hybrid.weights",), command, _live_minutes(text, machine, speed))
    for text in judged(given):
        yield _judge(text, given, name=f"{text.name}.live", lists="live", weights="hybrid.weights")


def _listed(given: Given) -> list[Text]:
    return [text for text in (given.dev, *given.tests) if text.nbest]


def judged(given: Given) -> list[Text]:
    """The texts of which there is a report: the test sets, or the development set where there is none."""
    tests = [text for text in given.tests if text.nbest or given.moses]
    return tests or [given.dev]


def _judge(text: Text, given: Given, *, name: str, lists: str, weights: str) -> Step:
    """The report on a text, under a ``name``; its lists end in ``lists``."""
    source, target = shlex.quote(text.source), shlex.quote(text.target)
    nbest, output = f"{text.name}.{lists}.gz", f"{name}.{given.languages[1]}"
    command = (
        f"smt-bridge rerank --nbest {nbest} --weights {weights} --source {source} --reference {target}"
        f" --report {name}.html --output {output}"
    )
    return Step(output, (nbest, weights), command, 0.2)


def _serve_command(given: Given) -> str:
    """The command that serves the hybrid or, without Moses, the models."""
    name = "-".join(given.languages)
    if given.moses:
        return f"nmt-core serve --hybrid {name}=hybrid.json --model {name}-neural=rnnsearch"
    phrases = " --model phrases=rnnencdec" if given.system.table else ""
    return f"nmt-core serve --model {name}=rnnsearch --model {name}-reverse=reverse{phrases}"


def missing(given: Given) -> Iterator[str]:
    """What the system lacks for all of it, and what to do about it."""
    if not given.system.table:
        yield "the phrase table is not text: no column is added; give a moses.ini of the text that it was made from"
    lists = [text for text in given.tests if not text.nbest]
    if given.moses:
        return
    if not given.dev.nbest:
        yield (
            "neither `moses` is on the PATH nor --nbest is given: models and column are made, no hybrid; give"
            " `make MOSES=DIR` the folder of Moses, or make the list by"
            f" `moses -f {given.system.ini} -n-best-list dev.nbest {_MOSES_LIST} distinct < {given.dev.source}`"
        )
    else:
        yield "`moses` is not on the PATH: the models are served, not the hybrid; `make serve MOSES=DIR` serves it"
        for text in lists:
            yield f"{text.source}: its list is missing, it is left out; give it as the third file of --test"


def _minutes(amount: float, speed: float) -> float:
    return amount / speed / 60.0 if speed else 0.0


def _search_minutes(text: Text, machine: Machine, speed: float) -> float:
    return _minutes(text.pairs * text.mean_words, speed * _SEARCH * machine.jobs)


def _score_minutes(text: Text, machine: Machine, speed: float) -> float:
    words = text.pairs * text.mean_words * (_MOSES_LIST + _NMT_LIST)
    return _minutes(words * (1 / _SCORE + 1 / _REVERSE), speed * machine.jobs)


def _live_minutes(text: Text, machine: Machine, speed: float) -> float:
    moses = _minutes(text.pairs, _MOSES * machine.threads) if speed else 0.0
    return moses + _search_minutes(text, machine, speed) + _score_minutes(text, machine, speed)


def _tune_minutes(given: Given) -> float:
    return _minutes(given.dev.pairs * (_MOSES_LIST + _NMT_LIST), _TUNED)
