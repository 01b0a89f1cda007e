"""Layouts: every row in one run, and the same attention whatever the runs are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.batches.layout import Layout, Run, long_runs, short_runs
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.layers.attention import AdditiveAttention, AttentionLoop
from nmt_core.serving.methods.plan import translation_cost
from nmt_core.serving.models.served import Proportions


def rows_of(counts: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.repeat(np.arange(len(counts)), counts)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=6), st.data())
def test_runs_cover_every_row_once_in_order(counts: list[int], data: st.DataObject) -> None:
    widths = np.array([data.draw(st.integers(1, 50)) for _ in counts])
    sentences = rows_of(counts)
    for runs in (short_runs(sentences, widths), long_runs(sentences, widths)):
        assert [row for run in runs for row in range(run.first, run.last)] == list(range(len(sentences)))
        for run in runs:
            inside = sentences[run.first : run.last]
            assert run.sentence is None or set(inside.tolist()) == {run.sentence}
            assert run.width == widths[inside].max()


def test_a_sentence_of_12_rows_is_a_run_and_a_launch_has_65536_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = short_runs(rows_of([1, 12, 11, 200]), np.array([2, 3, 4, 5]))
    assert runs == [Run(0, 1, None, 2), Run(1, 13, 1, 3), Run(13, 24, None, 4), Run(24, 152, 3, 5), Run(152, 224, 3, 5)]
    assert long_runs(rows_of([40_000]), np.array([2])) == [Run(0, 32_768, None, 2), Run(32_768, 40_000, None, 2)]
    monkeypatch.setattr("nmt_core.batches.layout._LAUNCH", 20)
    runs = long_runs(rows_of([3, 4]), np.array([2, 5]))
    assert runs == [Run(0, 4, None, 5), Run(4, 7, None, 5)]


@given(st.lists(st.integers(1, 300), min_size=1, max_size=6), st.data())
def test_short_runs_are_bounded_by_what_their_energies_take(counts: list[int], data: st.DataObject) -> None:
    widths = np.array([data.draw(st.sampled_from([1, 30, 128, 129, 2001, 30_000])) for _ in counts])
    runs = short_runs(rows_of(counts), widths)
    for run in runs:
        assert run.last - run.first <= 128
        assert run.last == run.first + 1 or (run.last - run.first) * run.width <= 16_384
    largest = max((run.last - run.first) * run.width for run in runs)
    assert largest <= translation_energies(max(counts), int(widths.max())) or max(counts) <= 12  # several sentences


def translation_energies(beam: int, width: int) -> int:
    """Positions that the server accounts for, of one unit."""
    config = DecodingConfig(beam=beam, max_length_ratio=0.0, max_length_extra=0)
    with_unit, without = (
        translation_cost([(width - 1, 1)], config, Proportions(attention_units=units)).memory for units in (1, 0)
    )
    return (with_unit - without) // 4


def test_attention_is_the_same_with_long_and_short_runs() -> None:
    torch.manual_seed(1)
    counts, widths = [1, 40, 2, 13], np.array([3, 6, 2, 5])
    attention = AdditiveAttention(4, 6, 5).double()
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter)
    sentences = rows_of(counts)
    annotations_BSC = torch.randn(4, 6, 6, dtype=torch.float64)
    states_NH = torch.randn(len(sentences), 4, dtype=torch.float64)
    with torch.inference_mode():
        look = AttentionLoop(attention, annotations_BSC, attention.key(annotations_BSC), torch.from_numpy(widths))
        layout = Layout(torch.from_numpy(sentences), sentences, widths)
        assert layout.runs == short_runs(sentences, widths)
        by_runs = [look(states_NH, layout)]
        vars(layout)["runs"] = long_runs(sentences, widths)
        by_runs.append(look(states_NH, layout))
    for mine, theirs in zip(*by_runs, strict=True):
        torch.testing.assert_close(mine, theirs)
