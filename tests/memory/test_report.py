"""The memory report as an object: what it shows, that it runs nothing and changes nothing, and the
scheduler as a lever.
"""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import UnsupportedError
from fluidjax.memory import picture
from fluidjax.xla_cpu.options import MEMORY_OPTIMIZED

on_cpu = pytest.mark.skipif(
    jax.devices()[0].platform != "cpu", reason="the memory-optimised scheduler is the CPU's"
)


def training(width: int = 16) -> tuple[fluid.Program, fluid.Program, Any]:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, label = fluid.data("x", [None, 8]), fluid.data("label", [None, 1], "int64")
        h = x
        for _ in range(3):
            h = layers.fc(h, width, act="relu")
        loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(h, 4), label))
        fluid.optimizer.Adam(0.01).minimize(loss)
    return main, startup, loss


@pytest.fixture(scope="module")
def trained() -> Any:
    main, _, loss = training()
    return main, loss, main.memory_report(batch_size=32, fetch_list=[loss])


def feed(batch: int = 32) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "x": rng.normal(size=(batch, 8)).astype("float32"),
        "label": rng.integers(0, 4, (batch, 1)),
    }


@pytest.mark.slow
@pytest.mark.optimized
@on_cpu
def test_the_figures_are_those_of_the_step_that_runs(trained):
    main, loss, report = trained
    _, startup, _ = training()
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    exe.run(main, feed=feed(), fetch_list=[loss], scope=scope)
    (compiled,) = exe.compiled_steps(main)
    with jax.enable_x64(True):
        args = (*compiled.bind(scope).arrays, compiled.plan.check_feed(feed()), 0, 0)
        memory = compiled.function().lower(*args).compile().memory_analysis()
    figures = report.compiled["default"]
    assert (
        figures.arguments == memory.argument_size_in_bytes
        and figures.outputs == memory.output_size_in_bytes
    )
    assert (
        figures.temporaries == memory.temp_size_in_bytes
        and figures.alias == memory.alias_size_in_bytes
    )
    assert (
        figures.total == figures.arguments + figures.outputs + figures.temporaries - figures.alias
    )
    held = sum(np.asarray(scope.find_var(n).value).nbytes for n in compiled.step.reads)
    assert figures.arguments >= held + feed()["x"].nbytes
    assert set(report.compiled) == {"default", "memory-optimised"} and report.scheduler == "default"
    assert report.fused == figures.total


@on_cpu
def test_both_countings_agree_on_what_goes_in_and_what_is_written_over(trained):
    """Op by op from the program's types, and from XLA's buffers: the same arguments, and all state
    but the rate donated.
    """
    _, _, report = trained
    given = {
        kind: report.timeline[0].by_kind[kind]
        for kind in ("parameters", "optimizer state", "feeds")
    }
    for figures in report.compiled.values():
        assert figures.arguments == sum(given.values())
        assert figures.alias == given["parameters"] + given["optimizer state"] - 4


def test_nothing_runs_and_nothing_changes(monkeypatch):
    main, _, loss = training()
    before, version = main.desc, main.version
    monkeypatch.setattr(fluid.Executor, "run", None)
    monkeypatch.setattr("jax.stages.Compiled.__call__", None)
    count = len(jax.live_arrays())
    first = main.memory_report(batch_size=4, fetch_list=[loss])
    assert main.desc is before and main.version == version
    assert len(jax.live_arrays()) <= count + 1  # a key at most
    assert first == main.memory_report(batch_size=4, fetch_list=loss.name)


def test_without_the_compiler(monkeypatch):
    main, _, loss = training()
    monkeypatch.setattr("jax.stages.Lowered.compile", None)
    report = main.memory_report(batch_size=4, fetch_list=[loss], compiled=False)
    assert report.compiled == {} and report.fused is None and "compiler" not in str(report)
    assert report.plain > 0 and report.to_dict()["fused"] is None


def test_text(trained):
    _, loss, report = trained
    text = str(report)
    assert (
        f"one step of {len(report.timeline)} ops, fed x [32, 8], label [32, 1], fetching"
        f" {loss.name}" in text
    )
    shown = {
        line.split("  ")[1]: line.split()[-1] for line in text.splitlines() if line.startswith("  ")
    }
    assert shown["parameters"] == f"{report.peak.by_kind['parameters'] / 1e3:,.3f}"
    assert "kB are 1,000 bytes" in text
    assert re.search(r"\n  op by op +" + re.escape(f"{report.plain / 1e3:,.3f}"), text)
    largest = report.peak.alive[0]
    assert re.search(
        rf"{re.escape(largest.name)} +{largest.kind} +{largest.bytes / 1e3:,.3f}"
        r" +\S+test_report.py:\d+",
        text,
    )
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_html_is_well_formed_and_holds_no_script(trained):
    html = trained[2]._repr_html_()
    tree = ET.fromstring(html)
    tags = {e.tag.rsplit("}", 1)[-1] for e in tree.iter()}
    assert "script" not in tags and {"svg", "polygon", "table"} <= tags
    assert not any(
        name.startswith("on") or name == "href" for e in tree.iter() for name in e.attrib
    )


def test_html_escapes_names():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("<script>alert(1)</script>", [4])
        out = layers.relu(x)
    html = main.memory_report(fetch_list=[out], compiled=False)._repr_html_()
    assert "<script" not in html and "&lt;script&gt;" in html


def test_the_svg_is_as_high_as_the_bytes(trained):
    report = trained[2]
    svg = ET.fromstring(picture.svg(report.timeline))
    areas = {e[0].text: e for e in svg if e.tag.endswith("polygon")}
    assert set(areas) == {
        k for k in report.peak.by_kind if any(p.by_kind[k] for p in report.timeline)
    }
    ys = [float(pair.split(",")[1]) for e in areas.values() for pair in e.get("points").split()]
    assert min(ys) == 0 and max(ys) == picture.HEIGHT
    first = areas["parameters"].get("points").split()[0]
    expected = picture.HEIGHT * (1 - report.timeline[0].by_kind["parameters"] / report.plain)
    assert float(first.split(",")[1]) == pytest.approx(expected, abs=0.06)


def test_many_ops_are_drawn_together_and_the_peak_stays():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        h = fluid.data("x", [4])
        for i in range(1300):
            h = (
                layers.scale(h, 1.5)
                if i != 700
                else layers.slice(layers.concat([h] * 9), axes=[0], starts=[0], ends=[4])
            )
    report = main.memory_report(fetch_list=[h], compiled=False)
    shown = picture.columns(report.timeline)
    assert len(shown) <= picture.COLUMNS and max(p.bytes for p in shown) == report.plain == 16 * 11


def test_json(trained):
    report = trained[2]
    d = json.loads(json.dumps(report.to_dict()))
    assert (
        d["plain"]
        == report.plain
        == d["peak"]["bytes"]
        == sum(a["bytes"] for a in d["peak"]["alive"])
    )
    assert [p["bytes"] for p in d["timeline"]] == [p.bytes for p in report.timeline]
    assert all(sum(p["by_kind"].values()) == p["bytes"] for p in d["timeline"])
    assert (
        d["fused"] == report.fused
        and d["batch_size"] == 32
        and d["feeds"] == {"x": [32, 8], "label": [32, 1]}
    )
    assert {k: v["total"] for k, v in d["compiled"].items()} == {
        k: f.total for k, f in report.compiled.items()
    }


def test_picture(trained, tmp_path):
    report = trained[2]
    assert report.save_picture(tmp_path / "t.png") == tmp_path / "t.png"
    assert (tmp_path / "t.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    report.save_picture(str(tmp_path / "t.svg"))
    assert ET.parse(tmp_path / "t.svg").getroot().tag.endswith("svg")


def test_picture_without_matplotlib(trained, tmp_path, monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        UnsupportedError, match="save_picture needs matplotlib: pip install matplotlib"
    ):
        trained[2].save_picture(tmp_path / "t.png")


@pytest.mark.slow
@on_cpu
def test_memory_optimize_turns_the_scheduler_on():
    main, startup, loss = training()
    plain, scope = main.clone(), fluid.Scope()
    fluid.memory_optimize(main, skip_opt_set={loss.name})
    report = main.memory_report(batch_size=32, fetch_list=[loss])
    assert (
        report.scheduler == "memory-optimised"
        and report.fused == report.compiled["memory-optimised"].total
    )
    (line,) = (line for line in str(report).splitlines() if "Executor.run uses this one" in line)
    assert line.startswith("  compiler, memory-optimised")
    values = {}
    for program in (main, main.clone(), plain):
        exe, scope = fluid.Executor(), fluid.Scope()
        startup.random_seed = 3
        exe.run(startup, scope=scope)
        values[program] = [
            exe.run(program, feed=feed(), fetch_list=[loss.name], scope=scope)[0] for _ in range(3)
        ]
        (compiled,) = exe.compiled_steps(program)
        assert compiled.plan.memory_optimized == (program is not plain)
        options = compiled.policy.options(memory=compiled.plan.memory_optimized) or {}
        assert MEMORY_OPTIMIZED.items() <= options.items()
    a, b, c = values.values()
    np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(a, c, rtol=1e-6)


def test_of_a_variable_that_lost_its_memory_it_tells_what_runs_then():
    main, _, loss = training()
    whole = main.clone()
    fluid.memory_optimize(main, skip_opt_set={loss.name})
    gone = next(iter(main.info.reused))
    with pytest.warns(RuntimeWarning, match="memory_optimize gave away"):
        told = main.memory_report(batch_size=2, fetch_list=[gone], compiled=False)
    assert str(told) == str(whole.memory_report(batch_size=2, fetch_list=[gone], compiled=False))
