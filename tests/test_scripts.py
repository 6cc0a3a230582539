"""Scripts as models of Paddle 1.8's time are written, under ``fluidjax run``: they print what Paddle 1.8.5 printed."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import fluidjax as fluid
from fluidjax import cli
from tests.tools.record_scripts import ARGUMENTS, ENVIRONMENT, TOLD

ZOO = Path(__file__).parent / "data" / "scripts" / "zoo"
RECORDED = json.loads((ZOO / "recorded.json").read_text())
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]\d+)?")


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """As in a process of its own."""
    for variable, value in ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("PIPE_PYTHON", sys.executable)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
        yield


_BRIEF = ("ctr",)  # the others, which compile larger programs, only where they are asked for


@pytest.mark.parametrize("name", [n if n in _BRIEF else pytest.param(n, marks=pytest.mark.thorough) for n in ARGUMENTS])
@pytest.mark.filterwarnings("default")  # of distutils, and of what old scripts call
def test_prints_what_paddle_prints(name, tmp_path, capsys):
    words = [str(tmp_path) if word == "FOLDER" else word for word in ARGUMENTS[name]]
    report = ["--report"] if name == "ctr" else []
    assert cli.main(["run", *report, str(ZOO / f"{name}.py"), *words]) == 0
    out, err = capsys.readouterr()
    lines = [line for line in out.splitlines() if line.startswith(TOLD)]
    assert [_NUMBER.sub("#", line) for line in lines] == [_NUMBER.sub("#", line) for line in RECORDED[name]]
    got, want = ([float(n) for line in of for n in _NUMBER.findall(line)] for of in (lines, RECORDED[name]))
    assert got == pytest.approx(want, rel=1e-5, abs=3e-6)
    assert ("Profiling Report" in out) == (name == "image_classification")
    assert "utility" not in sys.modules
    if report:
        _says_what_happened(err)


@pytest.mark.thorough
@pytest.mark.filterwarnings("default")
def test_two_workers_print_what_one_of_paddle_prints(capfd, monkeypatch, forked):
    """Each has a half of every batch, so the losses' and accuracies' means are recorded; rate and scale are."""
    monkeypatch.delenv("PADDLE_TRAINER_ENDPOINTS")
    monkeypatch.delenv("PADDLE_TRAINER_ID")
    assert cli.main(["launch", "--nproc", "2", str(ZOO / "bert_fleet.py")]) == 0
    out = capfd.readouterr().out
    rows = [sorted(line.partition("] ")[2] for line in out.splitlines() if f"] step {step} " in line) for step in range(3)]
    for both, recorded in zip(rows, RECORDED["bert_fleet"], strict=True):
        assert len(both) == 2
        found = [[float(n) for n in _NUMBER.findall(line)] for line in both]
        assert [sum(pair) / 2 for pair in zip(*found, strict=True)] == pytest.approx(
            [float(n) for n in _NUMBER.findall(recorded)], rel=1e-5, abs=3e-6)


def _says_what_happened(report):
    names, compiled = (int(re.search(p, report)[1]) for p in (r"run: (\d+) names of Paddle", r"(\d+) steps? (?:was|were) compiled"))
    rows = re.findall(r"^ +(\d+)  (paddle[\w.]+)", report, re.M)
    assert len(rows) == names and ("2", "paddle.fluid.layers.fc") in rows and compiled >= 1
    assert "first values of parameters are others for the same seed" in report


OLD = """
import sys, numpy as np, six
from six.moves import xrange, reduce
import paddle.fluid as fluid
assert np.int is int and np.product([2, 3]) == 6 and np.zeros(2, np.float).dtype == np.float64
assert reduce(lambda a, b: a + b, xrange(4)) == 6 and dict(six.iteritems({1: 2})) == {1: 2}
print(sys.argv[1:], __name__, fluid.layers.relu.__name__, fluid.contrib.layers.basic_gru.__name__)
"""


@pytest.mark.filterwarnings("default")
def test_what_surrounds_an_old_script(tmp_path, capsys):
    import numpy as np

    script = tmp_path / "old.py"
    script.write_text(OLD)
    assert cli.main(["run", "--report", str(script), "-a", "b"]) == 0
    out, err = capsys.readouterr()
    assert out == "['-a', 'b'] __main__ relu basic_gru\n"
    assert "numpy.float, numpy.int, numpy.product are no longer in NumPy" in err and "0 steps were compiled" in err
    assert not hasattr(np, "int") and not hasattr(np, "product")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("print 'a'", r"old.py:1: this line is Python 2"),
        ("try: pass\nexcept E, e: pass", r"old.py:2: this line is Python 2"),
        ("a = 1\nfor i in xrange(3): pass", "xrange is Python 2's; Python 3 has range"),
        ("import cPickle", "cPickle is a module of Python 2; Python 3 has it as pickle"),
        ("{}.iteritems()", ".iteritems is Python 2's; Python 3 has items"),
    ],
)
def test_leftovers_of_python_2_are_told_with_the_line(line, told, tmp_path, capsys):
    script = tmp_path / "old.py"
    script.write_text(line + "\n")
    assert cli.main(["run", str(script)]) == 1
    err = capsys.readouterr().err
    assert re.search(told, err) and f'old.py", line {line.count(chr(10)) + 1}' in err
