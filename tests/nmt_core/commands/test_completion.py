"""``--print-completion``: bash itself completes commands, options, choices and files by the script."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nmt_core.commands.main import main as nmt_core
from smt_bridge.commands.main import main as smt_bridge
from tests.without import program, run_without

ASK = """
source {script}
compopt() {{ :; }}
COMP_WORDS=({words} "$1") COMP_CWORD={place}
{function} {name} "$1" "$2"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def script(run: object, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    pytest.importorskip("shtab")
    with pytest.raises(SystemExit) as ended:
        run(["--print-completion", "bash"])
    assert ended.value.code == 0
    path = folder / "completion.bash"
    path.write_text(capsys.readouterr().out)
    return path


def completed(path: Path, words: list[str], beginning: str) -> list[str]:
    name = words[0]
    ask = ASK.format(
        script=path, words=" ".join(words), place=len(words), name=name, function="_shtab_" + name.replace("-", "_")
    )
    shell = ["bash", "--norc", "-c", ask, "bash", beginning, words[-1]]
    found = subprocess.run(shell, capture_output=True, text=True, check=True, cwd=path.parent)
    assert found.stderr == ""
    return found.stdout.split()


def test_bash_completes_nmt_core(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = script(nmt_core, tmp_path, capsys)
    (tmp_path / "train.tok.en").touch()
    assert completed(path, ["nmt-core"], "dec") == ["decode"]
    assert completed(path, ["nmt-core", "decode"], "--nb") == ["--nbest"]
    assert completed(path, ["nmt-core", "decode", "--xml-input"], "ex") == ["exclusive"]
    assert completed(path, ["nmt-core", "decode", "--input"], "train") == ["train.tok.en"]
    assert completed(path, ["nmt-core", "decode", "--beam"], "train") == []


def test_bash_completes_smt_bridge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = script(smt_bridge, tmp_path, capsys)
    (tmp_path / "phrase-table.gz").touch()
    assert completed(path, ["smt-bridge"], "re") == ["rescore-table", "rerank", "report"]
    assert completed(path, ["smt-bridge", "rescore-table"], "phr") == ["phrase-table.gz"]


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
def test_other_shells_have_scripts(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    with pytest.raises(SystemExit):
        nmt_core(["--print-completion", shell])
    assert "tune-lm" in capsys.readouterr().out


def test_without_shtab_one_line_says_what_to_install() -> None:
    found = run_without(("shtab",), program("nmt_core"), "--print-completion", "bash")
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == "nmt-core: this needs shtab: pip install 'hybridmt[completion]'\n"


def test_a_shell_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        nmt_core(["--print-completion", "ksh"])
    assert ended.value.code == 2
    assert "bash" in capsys.readouterr().err
