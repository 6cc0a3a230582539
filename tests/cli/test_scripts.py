"""Scripts as models of Paddle 1.8's time are written, under ``fluidjax run``: they print what
Paddle 1.8.5 printed.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import fluidjax as fluid
from fluidjax import cli
from tests.tools.record_scripts import ARGUMENTS, DEVICES, ENVIRONMENT, JOBS, TOLD

ZOO = Path(__file__).parents[1] / "data" / "scripts" / "zoo"
RECORDED = json.loads((ZOO / "recorded.json").read_text())
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]\d+)?")


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """As in a process of its own."""
    for variable, value in ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("PIPE_PYTHON", sys.executable)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
    ):
        yield


@pytest.mark.thorough
@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.filterwarnings("default")  # of distutils, and of what old scripts call
def test_prints_what_paddle_prints(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CPU_NUM", DEVICES.get(name, "1"))
    monkeypatch.chdir(tmp_path)
    words = [str(tmp_path) if word == "FOLDER" else word for word in ARGUMENTS[name]]
    assert cli.main(["run", str(ZOO / f"{name}.py"), *words]) == 0
    out = capsys.readouterr().out
    _same_lines([line for line in out.splitlines() if line.startswith(TOLD)], RECORDED[name])
    assert ("Profiling Report" in out) == (name == "image_classification")
    assert "utility" not in sys.modules


def _same_lines(found, recorded):
    assert [_NUMBER.sub("#", line) for line in found] == [
        _NUMBER.sub("#", line) for line in recorded
    ]
    got, want = (
        [float(n) for line in of for n in _NUMBER.findall(line)] for of in (found, recorded)
    )
    assert got == pytest.approx(want, rel=1e-5, abs=3e-6)


@pytest.fixture
def launched(monkeypatch, forked, capfd):
    """Runs a job of two trainers: the lines that each prints."""
    for variable in ("PADDLE_TRAINER_ENDPOINTS", "PADDLE_TRAINER_ID"):
        monkeypatch.delenv(variable)

    def run(*words):
        assert cli.main(["launch", "--nproc", "2", *words]) == 0
        said = [line.partition("] ") for line in capfd.readouterr().out.splitlines()]
        return [
            [text for who, _, text in said if who == f"[trainer {k}" and text.startswith(TOLD)]
            for k in range(2)
        ]

    return run


@pytest.mark.thorough
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("name", "words"),
    [("bert_fleet", []), ("image_classification_dist", ["--update_method", "nccl2"])],
)
def test_two_workers_print_what_one_of_paddle_prints(name, words, tmp_path, launched):
    """Each has a half of every batch, so the losses' and accuracies' means are recorded; the other
    numbers are the same in both.
    """
    words = [*(str(tmp_path) if word == "FOLDER" else word for word in ARGUMENTS[name]), *words]
    first, second = launched(str(ZOO / f"{name}.py"), *words)
    saved = [line for line in first if line.startswith("saved")]
    # by the first alone
    assert saved == [line for line in RECORDED[name] if line.startswith("saved")]
    rows = [line for line in first if line not in saved and ":" not in line]
    recorded = [line for line in RECORDED[name] if not line.startswith("saved") and ":" not in line]
    for *both, told in zip(
        rows, [line for line in second if ":" not in line], recorded, strict=True
    ):
        found = [[float(n) for n in _NUMBER.findall(line)] for line in both]
        assert [sum(pair) / 2 for pair in zip(*found, strict=True)] == pytest.approx(
            [float(n) for n in _NUMBER.findall(told)], rel=1e-5, abs=3e-6
        )


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", JOBS)
def test_a_job_with_pservers_prints_what_one_of_paddle_prints(name, tmp_path, launched):
    """Of every trainer: losses on its own files, what it says of the whole; the first alone saves,
    while the second goes on.
    """
    words = [str(tmp_path) if word == "FOLDER" else word for word in JOBS[name]]
    found = launched("--pservers", "2", str(ZOO / f"{name}.py"), *words)
    for mine, recorded in zip(found, RECORDED[name], strict=True):
        # 1.8.5's trainers hold no learning rate
        _same_lines([line.replace(" learning_rate_0", "") for line in mine], recorded)


SHORT = """
import numpy as np
import paddle.fluid as fluid
x = fluid.data("x", [None, 2])
y = fluid.layers.fc(fluid.layers.fc(x, 2, act="relu"), 1)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
for size in (1, 1, 2):
    print(exe.run(feed={"x": np.ones((size, 2), "float32")}, fetch_list=[y])[0].shape)
"""


def test_the_report_says_what_happened(tmp_path, capsys):
    script = tmp_path / "short.py"
    script.write_text(SHORT)
    assert cli.main(["run", "--report", str(script)]) == 0
    out, report = capsys.readouterr()
    assert out == "(1, 1)\n(1, 1)\n(2, 1)\n"
    names, compiled = (
        int(re.search(p, report)[1])
        for p in (r"run: (\d+) names of Paddle", r"(\d+) steps? (?:was|were) compiled")
    )
    rows = {
        name: int(times) for times, name in re.findall(r"^ +(\d+)  (paddle[\w.]+)", report, re.M)
    }
    used = {"data": 1, "layers.fc": 2, "Executor": 1, "CPUPlace": 1, "default_startup_program": 1}
    assert rows == {f"paddle.fluid.{name}": times for name, times in used.items()} and names == len(
        used
    )
    assert compiled == 2  # for each size
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
    assert (
        "numpy.float, numpy.int, numpy.product are no longer in NumPy" in err
        and "0 steps were compiled" in err
    )
    assert not hasattr(np, "int") and not hasattr(np, "product")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("print 'a'", r"old.py:1: this line is Python 2"),
        ("try: pass\nexcept E, e: pass", r"old.py:2: this line is Python 2"),
        ("a = 1\nfor i in xrange(3): pass", "xrange is Python 2's; Python 3 has range"),
        ("import cPickle", "cPickle is a module of Python 2; Python 3 has it as pickle"),
        (
            "raise TypeError('only 0-dimensional arrays can be converted to Python scalars')",
            "pip install 'numpy<2.4'",
        ),
        ("{}.iteritems()", ".iteritems is Python 2's; Python 3 has items"),
        ("if 1:\n\ta = 1\n        b = 2", r"old.py:3: this line is Python 2"),
        ("a = ur'b'", r"old.py:1: this line is Python 2"),
        ("a = 10L", r"old.py:1: this line is Python 2"),
        ("a = u'b'\na.has_key(1)", ".has_key is Python 2's; Python 3 has in"),
        ("a = map(int, ['1'])[0]", r"Python 3 has list\(...\) of them"),
        ("a = {1: 2}.keys()\na.sort()", r"Python 3 has list\(...\) of them"),
        ("a = range(3)\na[0] = 1", r"Python 3 has list\(range\(...\)\)"),
        ("import sys\nprint >>sys.stderr, 'a'", r"Python 3 has print\(text, file=file\)"),
        ("from itertools import izip", "Python 3 has zip, map and filter"),
        ("for i in range(7 / 2): pass", "// divides whole numbers as / does in Python 2"),
    ],
)
def test_leftovers_of_python_2_are_told_with_the_line(line, told, tmp_path, capsys):
    script = tmp_path / "old.py"
    script.write_text(line + "\n")
    assert cli.main(["run", str(script)]) == 1
    err = capsys.readouterr().err
    assert re.search(told, err) and f'old.py", line {line.count(chr(10)) + 1}' in err
