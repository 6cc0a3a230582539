"""How commands print: in a terminal of any width, in a pipe, with and without colour, for machines."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidjax import cli
from fluidjax.cli import terminal
from fluidjax.ir.jsonio import from_json
from fluidjax.ir.text import parse
from tests.examples import examples

MODEL = "tests/data/models/ocr_cls.pdmodel"
LAC = "tests/data/models/lac_seg/model"
ESCAPES = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture
def seen(monkeypatch, capsys):
    """Runs a command in a terminal of `columns`, and returns what stands on it."""

    def run(arguments: list[str], columns: int = 80, code: int = 0, **environment: str) -> str:
        with monkeypatch.context() as patch:
            patch.setattr(terminal, "watched", lambda: True)
            patch.setenv("COLUMNS", str(columns))
            patch.delenv("NO_COLOR", raising=False)
            patch.setenv("TERM", "xterm")
            for name, value in environment.items():
                patch.setenv(name, value)
            assert cli.main(arguments) == code
        return capsys.readouterr().out

    return run


def script(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text("import paddle.fluid as fluid\nfluid.layers.fc\nfluid.nowhere\n")
    return str(path)


def commands(tmp_path: Path) -> dict[str, tuple[list[str], int]]:
    return {
        "show": (["show", MODEL], 0),
        "counts": (["show", MODEL, "--counts"], 0),
        "plan": (["plan", LAC, "--length", "20"], 0),
        "compat": (["compat", script(tmp_path), "--all"], 1),
        "export": (["export", LAC, str(tmp_path / "lac"), "--format", "fluid"], 0),
        "optimize": (["optimize", "tests/data/saved/separate", str(tmp_path / "out")], 0),
        "memory": (["memory", MODEL, "--shape", "x=8,3,48,192"], 0),
        "passes": (["passes"], 0),
        "a pass": (["passes", "raise_to_fluid"], 0),
        "trace": (["trace", "jax.numpy:tanh", "f32[8, 16]"], 0),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "show",
        "counts",
        "plan",
        "compat",
        "export",
        "optimize",
        "memory",
        "passes",
        "a pass",
        "trace",
    ],
)
def test_nothing_is_wider_than_the_terminal(name, seen, tmp_path):
    arguments, code = commands(tmp_path)[name]
    for columns in (60, 100):
        text = ESCAPES.sub("", seen(arguments, columns, code))
        # a path of a temporary folder has no place where it could be folded
        long = [
            line for line in text.splitlines() if len(line) > columns and str(tmp_path) not in line
        ]
        assert not long, long[:3]


def test_colour_where_somebody_sees_it(seen, tmp_path, capsys):
    arguments, code = commands(tmp_path)["compat"]
    assert "\x1b[31m" in seen(arguments, code=code)  # absent: red
    assert "\x1b" not in seen(arguments, code=code, NO_COLOR="1")
    assert "\x1b" not in seen(arguments, code=code, TERM="dumb")
    assert "\x1b" in seen(["show", MODEL])
    assert cli.main(arguments) == code
    assert "\x1b" not in capsys.readouterr().out


def test_a_pipe_gets_all_of_it(capsys):
    assert cli.main(["show", MODEL]) == 0
    printed = parse(capsys.readouterr().out)
    assert cli.main(["show", MODEL, "--json"]) == 0
    read = from_json(capsys.readouterr().out)
    assert len(printed.blocks[0].ops) == len(read.blocks[0].ops) == 184


@pytest.mark.slow
def test_each_prints_json(capsys, tmp_path):
    told = {}
    for name in ("plan", "compat", "export", "optimize", "memory", "passes", "trace"):
        arguments, code = commands(tmp_path)[name]
        assert cli.main([*(a for a in arguments if a != "--all"), "--json"]) == code
        told[name] = json.loads(capsys.readouterr().out)
    assert [(use["name"], use["status"]) for use in told["compat"]["uses"]][-1] == (
        "paddle.fluid.nowhere", "absent")  # fmt: skip
    assert told["export"]["ops"]["crf_decoding"]["count"] == 1
    assert told["optimize"]["written"]["parameters"] == 4
    assert told["plan"] and told["trace"]


@examples(60)
@given(st.lists(st.text("ab, \t(", max_size=40), max_size=4), st.integers(12, 60))
def test_folding_loses_no_word(lines, wide):
    text = "\n".join(lines)
    folded = terminal.folded(text, wide)
    assert "".join(folded.split()) == "".join(text.split())
    assert all(len(line) <= wide for line in folded.split("\n"))
    assert terminal.folded(text, 0) == text


def test_a_table_fits_turned_or_cut(monkeypatch):
    head, rows = ("name", "of it", "n"), [("x" * 30, "y" * 30, 1), ("short", "z", 22)]
    assert terminal.table(head, rows, (2,)).splitlines()[2] == f"short{' ' * 25}  z{' ' * 29}  22"
    monkeypatch.setattr(terminal, "width", lambda: 40)
    turned = terminal.table(head, rows, (2,)).splitlines()
    assert [line.split()[0] for line in turned] == ["name", "of", "n"]
    cut = terminal.table(head, [*rows, *rows], (2,)).splitlines()
    assert max(map(len, cut)) <= 40 and "…" in cut[1] and cut[2].split() == ["short", "z", "22"]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_an_example_that_its_parser_takes(name):
    words = cli.COMMANDS[name].example.split(" > ")[0].replace('"f32[8, 16]"', "f32[8,16]").split()
    assert words[:2] == ["fluidjax", name]
    cli.whole_parser(__import__("argparse").ArgumentParser).parse_args(words[1:])


def test_the_page_has_every_command():
    page = Path("docs/command-line.md")
    if not page.exists():
        pytest.skip("the documents are not here")
    rows = {
        line.split("`")[1].split()[0]
        for line in page.read_text().splitlines()
        if line.startswith("| `")
    }
    assert set(cli.COMMANDS) <= rows


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_commands_and_options(shell, capsys, tmp_path):
    pytest.importorskip("shtab", reason="the extra completion installs shtab")
    assert cli.main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in cli.COMMANDS)
    assert "--batch-per-device" in text
    if shell == "bash":
        path = tmp_path / "fluidjax.bash"
        path.write_text(text)
        asked = "COMP_WORDS=(fluidjax sh); COMP_CWORD=1; _shtab_fluidjax; echo ${COMPREPLY[@]}"
        done = subprocess.run(
            ["bash", "-c", f"complete() {{ :; }}; source {path}; {asked}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stdout.split() == ["show"], done.stderr


def test_completion_says_what_it_lacks(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["completion", "bash"]) == 1
    assert "pip install 'fluidjax[completion]'" in capsys.readouterr().err
