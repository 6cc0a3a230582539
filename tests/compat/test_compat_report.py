"""fluid.compat_report: names of Paddle in a script, found without running it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import fluidjax as fluid
from fluidjax import cli
from fluidjax.errors import FluidTypeError, FluidValueError
from tests.look.dom import harmless, parsed

SCRIPTS = Path(__file__).parents[1] / "data" / "scripts"
SCRIPT = """import paddle
import paddle.fluid as fluid, numpy as np
from paddle.fluid.layers import fc as dense, gone
from paddle.fluid.incubate.fleet.utils import fleet_barrier_util
raise SystemExit("never run")
layers = fluid.layers
def net(x, np=None):
    return layers.gone_too(dense(input=x, size=3, units=4))
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
exe.train_from_dataset(fluid.ComplexVariable)
fluid.optimizer.Adam(0.1).minimize(net(1))
def other(fluid, paddle):
    for layers in paddle.batches: fluid.nothing(layers.here)
print(paddle.dataset.mnist.train, fluid.core.VarDesc.VarType.FP32, np.zeros(1))
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_a_script(script):
    report = fluid.compat_report(script)
    assert [(u.line, u.name.removeprefix("paddle.fluid.")) for u in report.absent] == [
        (3, "layers.gone"), (4, "incubate.fleet.utils.fleet_barrier_util"), (8, "layers.gone_too"), (11, "ComplexVariable"),
    ]  # fmt: skip
    assert [(u.line, u.name, u.told) for u in report.different] == [
        (8, "paddle.fluid.layers.fc", "takes no argument units")
    ]
    there = {(u.line, u.name) for u in report.there}
    assert {(10, "paddle.fluid.Executor.run"), (12, "paddle.fluid.optimizer.Adam.minimize"), (15, "paddle.dataset.mnist.train"),
            (15, "paddle.fluid.core.VarDesc.VarType.FP32"), (3, "paddle.fluid.layers.fc")} <= there  # fmt: skip
    assert (
        len(report)
        == len(report.there) + len(report.different) + len(report.absent)
        == len(list(report))
    )


def test_it_prints_and_has_html(script):
    report = fluid.compat_report(str(script))
    first, *lines = str(report).splitlines()
    assert (
        first.startswith(
            f"{len({u.name for u in report})} names of Paddle in {len(report)} places: "
        )
        and len(lines) == 5
    )
    assert (
        f"{script}:11: paddle.fluid.ComplexVariable is absent: belongs to complex numbers"
        in str(report)
    )
    html = report._repr_html_()
    assert html.count("<tr>") == 6 and "<td>paddle.fluid.layers.gone</td>" in html
    harmless(parsed(html))


def test_star_imports_and_modules(script):
    path = script.with_name("starred.py")
    path.write_text(
        "from paddle.fluid.layers import *\nfrom paddle.fluid import *\n\nx = data('x', [1])\ny ="
        " cross_entropy2(x)\n"
    )
    found = {(u.line, u.name, u.status) for u in fluid.compat_report(path)}
    assert {(4, "paddle.fluid.layers.data", "there"), (4, "paddle.fluid.data", "there")} & found
    module = ModuleType("starred")
    module.__file__ = str(path)
    assert fluid.compat_report(module).uses == fluid.compat_report(path).uses
    assert len(fluid.compat_report(script.parent)) == len(fluid.compat_report(path)) + len(
        fluid.compat_report(script)
    )


def test_scripts_that_run_here_lack_nothing():
    report = fluid.compat_report(SCRIPTS)
    assert len(report) > 100 and not report.absent


def test_bad_input(tmp_path):
    (tmp_path / "old.py").write_text("x = 1\nprint 'two'\n")
    for given, error, told in (
        (3, FluidTypeError, "takes a file, a folder or a module, not 3"),
        (tmp_path / "nothing.py", FluidValueError, "there is no file"),
        (tmp_path / "old.py", FluidValueError, r"old\.py:2 is not Python 3"),
        (ModuleType("empty"), FluidValueError, "module empty has no file"),
    ):
        with pytest.raises(error, match=told):
            fluid.compat_report(given)


def test_the_command(script, capsys):
    assert cli.main(["compat", str(script), "--all"]) == 1
    assert "paddle.fluid.Executor.run is there" in capsys.readouterr().out
    assert cli.main(["compat", str(SCRIPTS / "fit_a_line.py")]) == 0


def test_a_folder_goes_on_behind_files_that_are_no_python_3(tmp_path, script, capsys):
    """And lists them at the end; a file that is named alone is an error, as before."""
    (tmp_path / "sub.py").mkdir()
    bad = {
        "old.py": b"print 'python 2'\n",
        "null.py": b"import paddle\n\0",
        "deep.py": b"(" * 5000 + b")" * 5000,
        "tabs.py": b"if 1:\n\tx = 1\n        y = 2\n",
        "sub.py/gone.py": None,
    }
    for name, text in bad.items():
        (
            (tmp_path / name).symlink_to(tmp_path / "nowhere")
            if text is None
            else (tmp_path / name).write_bytes(text)
        )
    (tmp_path / "zlast.py").write_bytes(
        "# -*- coding: latin-1 -*-\nimport paddle.fluid.core as c  # \xe9\nc.kNoSuch\n".encode(
            "latin-1"
        )
    )
    report = fluid.compat_report(tmp_path)
    assert len(report.unread) == len(bad) and all(
        any(str(tmp_path / n) in line for line in report.unread) for n in bad
    )
    assert {use.file for use in report} == {str(script), str(tmp_path / "zlast.py")}
    *_, count, last = str(report).splitlines()[: -len(bad) + 1]
    assert count == "5 files were not read:" and "deep.py" in last
    assert "5 files were not read" in report._repr_html_()
    assert (
        cli.main(["compat", str(tmp_path)]) == 1
        and "5 files were not read" in capsys.readouterr().out
    )
    for name in bad:
        with pytest.raises(FluidValueError):
            fluid.compat_report(tmp_path / name)


@pytest.mark.parametrize("text", ["-" * 100_000 + "1", "x" + ".a" * 50_000])
def test_sources_that_are_nested_too_deeply(tmp_path, text):
    """Python's parser runs out of its stack, or the tree is too deep to be walked."""
    (tmp_path / "deep.py").write_text(f"import paddle\n{text}\n")
    assert "deep.py is nested too deeply" in str(fluid.compat_report(tmp_path))
