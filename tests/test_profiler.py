"""fluid.profiler: events as Paddle 1.8.5 names and counts them, the results of the step, a trace
that agrees with the table.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import profiler
from fluidjax.errors import FluidValueError

from .tools.record_profile import net

RECORDED = json.loads((Path(__file__).parent / "data" / "profile_1.8.5.json").read_text())
X = np.linspace(-1, 1, 24, dtype="float32").reshape(4, 6)


@pytest.fixture(autouse=True)
def fresh():
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        yield
        profiler.stop_profiler(profile_path="/dev/null/no")  # none is on, so nothing is written


def trained(loss, feed, profile, startup=False):
    """The losses of three steps and all parameters; the first step is never profiled, the others if
    asked for.
    """
    main, exe = fluid.default_main_program(), fluid.Executor(fluid.CPUPlace())
    main.random_seed = fluid.default_startup_program().random_seed = 3
    with fluid.scope_guard(fluid.Scope()):
        exe.run(fluid.default_startup_program())
        losses = exe.run(main, feed, [loss])
        if profile is not None:
            profiler.start_profiler("CPU")
        losses += [exe.run(main, feed, [loss])[0] for _ in range(2)]
        if profile is not None:
            profiler.stop_profiler(None, str(profile))
        return [*losses, *(fluid.global_scope().get(p.name) for p in main.all_parameters())]


def same(got, want):
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def rows(text):
    return [
        (n, int(calls), list(map(float, rest.split())))
        for n, calls, rest in re.findall(r"^thread0::(\w+) +(\d+) +(.*)$", text, re.M)
    ]


def test_a_profile(tmp_path, capsys):
    loss = net(fluid)
    plain = trained(loss, {"x": X}, None)
    same(trained(loss, {"x": X}, tmp_path / "new" / "profile"), plain)
    printed = capsys.readouterr().out
    shown = rows(printed)
    assert sorted((n, c) for n, c, _ in shown) == sorted(
        (n, c // 3 * 2) for n, c in RECORDED["events"]
    )
    order = [n for n, _, _ in shown if n != "sgd"]  # updates come where their gradients are there
    assert order == [n for n, _ in RECORDED["events"] if n != "sgd"]
    for _, calls, (total, least, most, mean, ratio) in shown:
        assert (
            0 <= least <= mean <= most <= total * 1.00001
            and mean == pytest.approx(total / calls, rel=1e-4)
            and 0 <= ratio <= 1
        )
    assert sum(r[2][4] for r in shown) == pytest.approx(1, rel=1e-4)
    traced = json.loads((tmp_path / "new" / "profile").read_text())["traceEvents"]
    spans = [e for e in traced if e["ph"] == "X"]
    for name, calls, figures in shown:
        mine = [e["dur"] / 1e3 for e in spans if e["name"] == name]
        assert len(mine) == calls and sum(mine) == pytest.approx(figures[0], rel=1e-4)
    assert {
        e["args"]["line"].split(":")[0].split("/")[-1] for e in spans if e["name"] == "mul"
    } == {"record_profile.py"}
    assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-3 for a, b in pairwise(spans))
    assert {e["args"]["op"] for e in spans if e["name"] == "mul"} == {"mul0", "mul1"}


def test_tables(tmp_path, capsys):
    """Each key and option over one program that takes no compiler's time; startup programs are
    timed with the same values.
    """
    fluid.layers.create_parameter([2, 2], "float32", name="w")
    fluid.layers.fill_constant([2], "float32", 1.0)
    startup = fluid.default_startup_program()
    startup.random_seed = 5
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    value = fluid.global_scope().get("w")
    for key, (sentence, columns) in RECORDED["heads"].items():
        with profiler.profiler("CPU", None if key == "None" else key, str(tmp_path / "p")):
            exe.run(startup)
        printed = capsys.readouterr().out
        assert sentence in printed and columns in [
            " ".join(line.split()) for line in printed.splitlines()
        ]
        assert [r[0] for r in rows(printed)] == ["uniform_random"]
    np.testing.assert_array_equal(fluid.global_scope().get("w"), value)
    with profiler.profiler("All", "ave", str(tmp_path / "p"), "AllOpDetail"):
        exe.run(startup)
        profiler.reset_profiler()
        exe.run(startup)
    labels = [
        line.split()[0] for line in capsys.readouterr().out.splitlines() if "uniform_random" in line
    ]
    assert labels == [
        "thread0::uniform_random",
        "uniform_random0",
        "uniform_random0/call",
        "uniform_random0/wait",
    ]
    with profiler.profiler("GPU", "ave", str(tmp_path / "p"), "OpDetail"):
        exe.run(startup)
    printed = capsys.readouterr().out
    assert (
        "Place: GPU" in printed
        and "GPU Time (Ratio)" in printed
        and "  thread0::uniform_random/wait" in printed
    )


@pytest.mark.slow
def test_blocks_and_random_numbers(tmp_path, capsys):
    """A loop with a dropout in it and arrays, a condition, ragged rows: op by op as at once."""
    x = fluid.data("x", [4, 6])
    s = fluid.layers.data("s", [2], lod_level=1)
    i = fluid.layers.fill_constant([1], "int64", 0)
    n = fluid.layers.fill_constant([1], "int64", 2)
    y = fluid.layers.fc(x, 6, bias_attr=False)
    kept = fluid.layers.array_write(y, i)
    more = fluid.layers.less_than(i, n)
    loop = fluid.layers.While(more)
    with loop.block():
        z = fluid.layers.dropout(fluid.layers.array_read(kept, i), 0.4)
        fluid.layers.increment(i)
        fluid.layers.array_write(z, i, kept)
        fluid.layers.less_than(i, n, cond=more)
    rows_of = fluid.layers.sequence_pool(fluid.layers.fc(s, 6, bias_attr=False), "sum")
    total = fluid.layers.mean(fluid.layers.array_read(kept, n)) + fluid.layers.mean(rows_of)
    loss = fluid.layers.cond(total > 100.0, lambda: total * 2.0, lambda: total * 3.0)
    fluid.optimizer.SGD(0.1).minimize(loss)
    feed = {
        "x": X,
        "s": fluid.create_lod_tensor(np.ones((5, 2), "float32"), [[2, 3]], fluid.CPUPlace()),
    }
    plain = trained(loss, feed, None)
    same(trained(loss, feed, tmp_path / "p"), plain)
    counts = {n: c for n, c, _ in rows(capsys.readouterr().out)}
    assert (counts["while"], counts["dropout"], counts["while_grad"], counts["dropout_grad"]) == (
        2,
        4,
        2,
        4,
    )
    spans = [e for e in json.loads((tmp_path / "p").read_text())["traceEvents"] if e["ph"] == "X"]
    loops = [e for e in spans if e["name"] == "while"]
    for inner in (e for e in spans if e["name"] == "dropout"):
        assert any(
            o["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= o["ts"] + o["dur"]
            for o in loops
        )


def test_several_steps_or_ranks_are_one_event(tmp_path, capsys):
    loss = fluid.layers.mean(fluid.layers.scale(fluid.data("x", [-1, 6]), 2.0))
    exe = fluid.Executor(fluid.CPUPlace())
    two = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        places=[fluid.CPUPlace()] * 2
    )
    with profiler.profiler("CPU", "calls", str(tmp_path / "p")):
        many = exe.run_steps(feeds=[{"x": X}, {"x": X + 1}], fetch_list=[loss])
        ranks = exe.run(two, {"x": X}, [loss])
    np.testing.assert_allclose(
        many[0].ravel(), [2 * X.mean(), 2 * X.mean() + 2], rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(ranks[0], [2 * X[:2].mean(), 2 * X[2:].mean()], rtol=1e-5)
    printed = capsys.readouterr().out
    assert "run_steps" in printed and "step of 2 ranks" in printed


def test_what_is_wrong(tmp_path, capsys):
    with pytest.raises(FluidValueError, match="the state is one of CPU, GPU, All, not 'X'"):
        profiler.start_profiler("X")
    with pytest.raises(FluidValueError, match="tracer_option is one of"):
        profiler.start_profiler("CPU", "all")
    profiler.stop_profiler("nonsense", str(tmp_path / "none"))  # none is on
    profiler.reset_profiler()
    assert not list(tmp_path.iterdir()) and not capsys.readouterr().out
    profiler.start_profiler("CPU")
    profiler.start_profiler("X")  # one is on
    with pytest.raises(FluidValueError, match="sorted_key is None, calls"):
        profiler.stop_profiler("nonsense")
    profiler.stop_profiler(profile_path=str(tmp_path / "there"))
    assert json.loads((tmp_path / "there").read_text())["traceEvents"] == []
    assert "Event" in capsys.readouterr().out
    with pytest.raises(KeyError), profiler.profiler("CPU", profile_path=str(tmp_path / "raised")):
        raise KeyError("inside")
    profiler.stop_profiler(profile_path=str(tmp_path / "raised"))
    assert not (tmp_path / "raised").exists() and not capsys.readouterr().out
    with (
        pytest.raises(FluidValueError, match="output_mode is csv or kvp"),
        profiler.cuda_profiler("p", "txt"),
    ):
        pass
    if not fluid.is_compiled_with_cuda():
        with pytest.raises(FluidValueError, match="JAX sees no GPU"), profiler.cuda_profiler("p"):
            pass
