"""A job whose server gets another model ends with one line, keeps what is finished, and goes on with the first only."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt_core.base.errors import ServiceError
from nmt_core.jobs.outputs import Outputs
from nmt_core.serving.client.client import NmtClient
from smt_bridge.commands.main import main
from smt_bridge.models import SearchOptions, open_model
from tests.nmt_core.serving.test_reload import eventually, exchange

LINES = 24


@pytest.fixture
def swap(start, own: Path, other: Path) -> tuple[str, Callable[[Path], None], Path]:
    """A server's spec, what gives it the model of a folder, and a copy of its first model."""
    first = Path(shutil.copytree(own, own.parent.parent / "first"))
    server = start("--model", f"m={own}", "--beam", "4")

    def version() -> str:
        with NmtClient(server.address) as client:
            return client.models()[0].version

    def give(folder: Path) -> None:
        before = version()
        exchange(own, folder)
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: version() != before)

    return f"grpc:{server.address}", give, first


def table_job(folder: Path) -> list[str]:
    lines = [f"{'un ' * (n % 5 + 1)}deux ||| {'one ' * (n % 3 + 1)}two ||| 0.5 |||" for n in range(LINES)]
    (folder / "table").write_text("".join(f"{line}\n" for line in lines))
    return ["rescore-table", str(folder / "table"), "--scorer", "SPEC"]


def list_job(folder: Path) -> list[str]:
    lines = [f"{n} ||| {'one ' * (n % 3 + 1)}two ||| A= 1 ||| 1" for n in range(LINES)]
    (folder / "list").write_text("".join(f"{line}\n" for line in lines))
    (folder / "source").write_text("".join(f"{'un ' * (n % 5 + 1)}deux\n" for n in range(LINES)))
    nbest = ["--nbest", str(folder / "list"), "--source", str(folder / "source")]
    return ["add-features", *nbest, "--scorer", "SPEC"]


@pytest.mark.parametrize("job", [table_job, list_job])
def test_a_job_ends_and_goes_on_with_its_first_model_only(
    job: Callable[[Path], list[str]],
    swap,
    other: Path,
    tmp_path: Path,
    monkeypatch,
    capfd,
) -> None:
    spec, give, first = swap
    command = [spec if word == "SPEC" else word for word in job(tmp_path)]
    command += ["--jobs", "1", "--quiet", "--output"]
    output = str(tmp_path / "out")
    monkeypatch.setattr("smt_bridge.tables.table.WINDOW", 4)
    monkeypatch.setattr("smt_bridge.lists.add.WINDOW", 1)
    append = Outputs.append

    def exchanging(outputs: Outputs, shard: Any, piece: Any) -> None:
        append(outputs, shard, piece)
        if len(outputs.entries) == 3:
            give(other)

    assert main([*command, str(tmp_path / "whole")]) == 0
    with monkeypatch.context() as patch:
        patch.setattr(Outputs, "append", exchanging)
        capfd.readouterr()
        assert main([*command, output]) == 2
    error = capfd.readouterr().err
    assert "the model changed during the work" in error and error.count("\n") == 1
    done = (tmp_path / ".out.hybridmt.journal").read_bytes()
    assert done.count(b"\n") == 4  # the identity, and three shards
    for more in ([], ["--shards", "4-5"]):
        assert main([*command, output, *more]) == 2
        error = capfd.readouterr().err
        assert "the job was begun with models" in error and error.count("\n") == 1
    assert (tmp_path / ".out.hybridmt.journal").read_bytes() == done
    give(first)
    assert main([*command, output]) == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_decoder_of_a_recipe_is_one_model_to_the_end(swap, other: Path) -> None:
    """As in ``smt-bridge translate``, sentence after sentence."""
    spec, give, _ = swap
    decoder = open_model(spec, search=SearchOptions(4, 4))
    assert decoder.nbest(["un deux"])[0]
    give(other)
    with pytest.raises(ServiceError, match="the model changed during the work"):
        decoder.nbest(["un deux"])
