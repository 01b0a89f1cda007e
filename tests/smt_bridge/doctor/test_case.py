"""How files are cased: which are compared, and from how many words on."""

from __future__ import annotations

import string
from pathlib import Path

from smt_bridge.doctor.examination import Files, examine
from smt_bridge.doctor.findings import examine_case, words_of

WORDS = [f"{one}{other}" for one in string.ascii_lowercase for other in "ab"]


def test_each_table_is_compared_with_the_reference_of_the_list(tmp_path: Path) -> None:
    table, nbest, reference = (tmp_path / name for name in ("table", "nbest", "reference"))
    lines = [f"{word.capitalize()} {word}" for word in WORDS]
    reference.write_text("".join(f"{line}\n" for line in lines))
    nbest.write_text("".join(f"{number} ||| {line} ||| LM0= -1 ||| -1\n" for number, line in enumerate(lines)))
    table.write_text("".join(f"{word} ||| {word} ||| 0.5 |||\n" for word in WORDS))
    found = [str(one) for one in examine(Files("", str(table), str(nbest), reference=str(reference)))]
    (named,) = (line for line in found if "of the words that may begin sentences have capitals" in line)
    assert f"{table}: 0.0%" in named and f"against 50.0% in {reference}" in named


def test_fewer_than_twenty_words_say_nothing() -> None:
    cased, lower = (
        words_of(how, [*WORDS, *map(change, WORDS)])
        for how, change in (("cased", str.capitalize), ("lower", str.lower))
    )
    assert not list(examine_case(cased, lower, WORDS[:19]))
    assert len(list(examine_case(cased, lower, WORDS[:20]))) == 1
