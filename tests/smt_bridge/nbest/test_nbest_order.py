"""Lists come by ascending id, whatever the order of the file."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from smt_bridge.errors import FormatError
from smt_bridge.nbest.order import ordered_lists


def write(path: Path, ids: list[int]) -> str:
    path.write_bytes(b"".join(b"%d ||| h%d ||| A= 1 ||| 1\n" % (sentence, place) for place, sentence in enumerate(ids)))
    return str(path)


@pytest.mark.parametrize(("ids", "sorted_here"), [([0, 0, 2, 5], False), ([2, 0, 5, 0], True)])
def test_lists_ascend_with_gaps_kept(tmp_path: Path, ids: list[int], sorted_here: bool) -> None:
    path, said = write(tmp_path / "list", ids), list[str]()
    with ordered_lists(path, say=said.append) as ordered:
        assert ordered.sentences == 6
        assert said == [f"{path} is not grouped by id: lines of the same id were put together"] * sorted_here
        found = [(group.sentence, [entry.hypothesis for entry in group.entries]) for group in ordered.lists]
    assert [sentence for sentence, _ in found] == [0, 2, 5]
    expected = [b"h%d" % place for place, sentence in enumerate(ids) if sentence == 0]
    assert found[0][1] == expected


def test_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=write, args=(pipe, [1, 0]))
    writer.start()
    with ordered_lists(str(pipe)) as ordered:
        assert [group.sentence for group in ordered.lists] == [0, 1]
    writer.join()


@pytest.mark.parametrize("then", [[0, 1, 2], [1, 0], [0]])
def test_a_list_that_is_replaced_while_it_is_read_is_refused(tmp_path: Path, then: list[int]) -> None:
    """Its ids were found before: references and lines of the output are counted by them."""
    path = write(tmp_path / "list", [0, 0, 1])
    with ordered_lists(path) as ordered:
        write(tmp_path / "list", then)
        with pytest.raises(FormatError, match="changed while it was read; wait until it is complete, and begin again"):
            list(ordered.lists)
