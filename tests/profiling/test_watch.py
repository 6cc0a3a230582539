"""A training that is watched: the line, the values, the curves; and a profile by the user's
lines.
"""

from __future__ import annotations

import io
import math
import sys
import time
import types

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import FluidTypeError, FluidValueError
from fluidjax.look.bars import Bar, bars
from fluidjax.look.curves import POINTS, curves
from fluidjax.profiling import watching
from fluidjax.profiling.costs import of_recording
from fluidjax.profiling.events import Recording
from tests.look.dom import harmless, parsed


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def train(steps: int, **options):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 4])
        loss = layers.mean(layers.square(layers.fc(x, 1)))
        fluid.optimizer.SGD(0.1).minimize(loss)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    feed = {"x": np.ones((8, 4), "float32")}
    with fluid.watch(exe, main, **options) as log:
        for _ in range(steps):
            (value,) = exe.run(main, feed=feed, fetch_list=[loss], scope=scope)
            log(loss=value)
    return log, exe, main


def test_values_rate_and_compilations(capsys):
    log, exe, main = train(5)
    assert log.steps == 5 and len(log.values["loss"]) == 5
    assert log.values["loss"][-1] < log.values["loss"][0]
    assert log.compilations == exe.compilations(main) and len(log.compilations) == 1
    assert log.rate == pytest.approx(5 / log.seconds)
    text = str(log)
    assert text.startswith("5 steps in ") and " at first); 1 compilation, " in text
    assert f"loss {log.values['loss'][-1]:.4g} ({log.values['loss'][0]:.4g} at first)" in text
    assert capsys.readouterr() == ("", "")  # nobody watches


def test_the_line_where_somebody_watches(monkeypatch):
    _, exe, main = train(1)
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with fluid.watch(exe, main, total=30, title="my net") as log:
        for step in range(3):
            time.sleep(0.12)  # lines are not written more often than ten times a second
            log(loss=step + 0.5, error=0.25)
    written = screen.getvalue().split("\r")
    (line,) = [text for text in written if "2.5" in text]
    assert "my net" in line and " 3/30 " in line and "step/s" in line
    assert "loss 2.5, error 0.25, 1 compiled" in line
    assert not written[-2].strip()  # and it goes away


def test_values_that_come_late_and_what_is_refused():
    log = fluid.watch()
    log(a=1.0)
    log(a=[1.0, 3.0], b=np.float32(4))
    log(b=5)
    assert [v for v in log.values["a"]][:2] == [1.0, 2.0] and math.isnan(log.values["a"][2])
    assert math.isnan(log.values["b"][0]) and log.values["b"][1:] == [4.0, 5.0]
    assert str(log) == "3 steps: a nan (1 at first), b 5 (nan at first)" and log.rate == 0
    with pytest.raises(FluidTypeError, match=r"watch takes an executor, not int"):
        fluid.watch(3)
    with pytest.raises(FluidValueError, match=r"watch takes a total of at least 1 step, not 0"):
        fluid.watch(total=0)


def test_notebooks_get_curves_that_are_drawn_anew(monkeypatch):
    shown = []
    handle = types.SimpleNamespace(update=lambda picture: shown.append(("anew", picture.text)))

    def display(picture, display_id):
        shown.append(("first", picture.text))
        return handle

    module = types.SimpleNamespace(display=display)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(watching.progress, "in_notebook", lambda: True)
    monkeypatch.setattr(watching.progress, "shown", lambda: True)
    monkeypatch.setattr(watching, "PICTURES", 0.0)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    log, _, _ = train(3)
    assert [kind for kind, _ in shown] == ["first", "anew", "anew", "anew"]
    assert shown[-1][1] == log.curves().text and "3 steps" in shown[-1][1]
    root = parsed(log._repr_html_())
    harmless(root)
    assert root.one("svg")


def points(picture) -> list[tuple[float, float]]:
    (path,) = [e for e in parsed(picture.svg).all("path")]
    return [
        tuple(map(float, pair.split())) for pair in path.attrs["d"][1:].replace("M", "L").split("L")
    ]


def test_curves_are_where_the_values_are():
    made = points(curves("t", {"loss": [4.0, 2.0, 3.0]}))
    (x0, y0), (x1, y1), (x2, y2) = made
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2) and y0 < y2 < y1
    assert y1 - y0 == pytest.approx(2 * (y1 - y2), abs=0.3)
    falling = points(curves("t", {"loss": [1000.0, 100.0, 10.0, 1.0]}))  # by logarithms: a line
    steps = np.diff([y for _, y in falling])
    assert np.allclose(steps, steps[0], atol=0.2) and steps[0] > 0
    assert len(points(curves("t", {"n": list(range(10_000))}))) <= POINTS
    nothing = curves("t", {"loss": [math.nan, math.inf]})
    assert str(nothing) == "loss: no finite value in 2 steps"
    harmless(parsed(nothing.svg))


def test_bars_are_as_long_as_what_they_show():
    picture = bars("<b>", [Bar("a<", 4.0, "4 s"), Bar("b", 1.0, "1 s", "backward")])
    root = parsed(picture.svg)
    harmless(root)
    long, short = [float(e.attrs["width"]) for e in root.all("rect")]
    assert long == pytest.approx(4 * short, abs=0.2)
    assert str(picture) == "a<: 4 s\nb: 1 s"


# -- profiles --------------------------------------------------------------------------------------


def net():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 1500])
        heavy = layers.fc(x, 1500)  # by far the most work, on a busy machine too
        loss = layers.mean(layers.relu(heavy))
        fluid.optimizer.SGD(0.1).minimize(loss)
    scope = fluid.Scope()
    fluid.Executor().run(startup, scope=scope)
    return main, loss, scope, {"x": np.ones((1024, 1500), "float32")}


@pytest.mark.slow
def test_a_profile_names_the_lines():
    main, loss, scope, feed = net()
    before = {
        n: np.array(scope.find_var(n).get_tensor()) for n in ("fc_0.w_0",) if scope.find_var(n)
    }
    made = main.profile(feed, [loss], steps=2, scope=scope)
    lines = {op.type: op.loc for op in made.ops}
    assert "test_watch.py:" in lines["mul"] and lines["mul"] == lines["mul_grad"] != lines["relu"]
    assert [op.seconds for op in made.ops] == sorted((op.seconds for op in made.ops), reverse=True)
    assert made.seconds == pytest.approx(sum(op.seconds for op in made.ops))
    assert {(op.type, op.runs) for op in made.ops} >= {("mul", 1), ("relu_grad", 1), ("sgd", 1)}
    assert sum(made.by_line().values()) == pytest.approx(made.seconds)
    for name, value in before.items():  # nothing in the scope has changed
        np.testing.assert_array_equal(np.array(scope.find_var(name).get_tensor()), value)
    text = str(made).splitlines()
    assert len(text) == 2 + min(10, len(made.ops)) and "2 steps averaged" in text[0]
    root = parsed(made._repr_html_())
    harmless(root)
    assert len(root.one("svg").all("rect")) == min(10, len(made.ops))


def test_the_most_expensive_come_first():
    recording = Recording("CPU", "Default")
    for begin in (0.0, 10.0):  # two steps
        recording.add("relu", (begin, begin, begin + 1), 0, 0, "a.py:1")
        recording.add("mul", (begin, begin, begin + 5), 0, 0, "a.py:2")
        recording.add("while", (begin, begin, begin + 4), 0, 0, "a.py:1")
        for at in range(3):
            recording.add("tanh", (begin + at, begin + at, begin + at + 1), 0, 1, "a.py:9")
    made = of_recording(recording, 2)
    assert [(op.type, op.seconds, op.runs) for op in made.ops] == [
        ("mul", 5, 1), ("while", 4, 1), ("tanh", 3, 3), ("relu", 1, 1)]  # fmt: skip
    assert made.seconds == 10 and made.by_line() == {"a.py:2": 5, "a.py:1": 5}
    assert str(made).splitlines()[2].split() == ["mul", "0", "5", "s", "50.0%", "1", "a.py:2"]


def test_ops_within_a_loop_count_once():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        i = layers.fill_constant([1], "int64", 0)
        n = layers.fill_constant([1], "int64", 4)
        x = fluid.data("x", [4, 4])
        body = lambda i, v: [layers.increment(i), layers.tanh(v)]  # noqa: E731
        _, out = layers.while_loop(lambda i, v: layers.less_than(i, n), body, [i, x])
    made = main.profile({"x": np.ones((4, 4), "float32")}, [out], steps=2, scope=fluid.Scope())
    (inner,) = [op for op in made.ops if op.type == "tanh"]
    assert inner.inner and inner.runs == 4
    assert made.seconds < sum(op.seconds for op in made.ops)


def test_what_a_profile_refuses():
    main, loss, scope, feed = net()
    with pytest.raises(FluidValueError, match=r"profile: steps is at least 1, not 0"):
        main.profile(feed, [loss], steps=0, scope=scope)
    test = fluid.Program()
    with fluid.program_guard(test, fluid.Program()):
        layers.relu(fluid.data("x", [2]))
    with pytest.raises(FluidValueError, match="nothing that the program computes is asked for"):
        test.profile({"x": np.ones(2, "float32")}, scope=fluid.Scope())
    from fluidjax import profiler

    profiler.start_profiler("CPU")
    try:
        with pytest.raises(FluidValueError, match="a profile is on already"):
            main.profile(feed, [loss], scope=scope)
    finally:
        profiler.RECORDER.on = None
