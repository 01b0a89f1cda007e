"""Turns of clients, pauses of computations, and codes of languages."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import pytest

from nmt_core.base.errors import ConfigError, unreadable
from nmt_core.base.languages import check_language, say_if_without_rules
from nmt_core.base.pauses import held_up_by, yield_point
from nmt_core.base.round_robin import RoundRobin


def test_a_turn_ends_after_the_quantum_and_with_the_last_job() -> None:
    turns: RoundRobin[int] = RoundRobin(10)
    for client, job in (("a", 1), ("a", 2), ("b", 3), ("c", 4), ("c", 5)):
        turns.put(client, job)
    found = []
    for tokens in (9, 1, 9, 1, 9):  # of a, a, b, b, c
        found.append(turns.first())
        turns.use(tokens)
    assert found == [1, 1, 3, 3, 4]
    assert turns.remove("a", 1) and not turns.remove("a", 1) and not turns.remove("d", 1)
    assert turns.remove("b", 3)  # which leaves c the ten tokens that it has begun
    turns.use(1)
    assert (turns.clients, turns.first(), turns.first("c"), list(turns)) == (["a", "c"], 2, 4, [2, 4, 5])
    turns.use(9)
    assert turns.remove("a", 2)
    turns.put("a", 6)
    turns.use(9)  # of c, whose turn is a new one
    assert turns.first() == 4


def test_only_the_thread_that_is_held_up_pauses_and_only_meanwhile() -> None:
    pauses: list[int] = []
    with ThreadPoolExecutor(1) as other, held_up_by(lambda: pauses.append(1)):
        yield_point()
        other.submit(yield_point).result()
    with pytest.raises(KeyError), held_up_by(pauses.clear):
        raise KeyError
    yield_point()
    assert pauses == [1]


def test_a_language_has_a_code_of_two_or_three_letters_and_one_without_rules_is_said_by_the_program_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for code in ("e", "engl", "EN", "pt-BR", "e1", ""):
        with pytest.raises(ConfigError, match=r"^it: expected a language code of ISO 639, such as en, fr or cs$"):
            check_language(code, "it")
    said = ""
    for code in ("cs", "tdt", "xx"):
        say_if_without_rules.cache_clear()
        check_language(code, "it")
        said += capsys.readouterr().err
    assert said == "language 'xx': Moses' tokeniser has no rules for it and uses the English ones (Czech is cs)\n"
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: "the program")
    say_if_without_rules.cache_clear()
    check_language("xx", "it")
    assert capsys.readouterr().err == ""


def test_what_cannot_be_opened_is_said_with_its_reason() -> None:
    assert (
        str(unreadable("-", ValueError("embedded null byte"))) == "standard input: cannot be read (embedded null byte)"
    )
