"""Modules whose subject is not there import, their classes can be derived from, and what is called
says so.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import fluidjax as fluid
from fluidjax import dygraph
from fluidjax.compat import compat_report
from fluidjax.errors import UnsupportedError


def test_classes_are_derived_from_and_functions_decorated():
    from fluidjax.dygraph.nn import Conv2D

    class Net(fluid.dygraph.Layer):
        def __init__(self):
            super().__init__()
            self.conv = Conv2D(1, 2, 3)

        @fluid.dygraph.no_grad
        def frozen(self):
            raise AssertionError("the sentence comes first")

        @fluid.dygraph.jit.declarative
        def forward(self, x):
            raise AssertionError("the sentence comes first")

    for call, named in (
        (Net, "fluid.dygraph.Layer"),
        (Net.frozen, "fluid.dygraph.no_grad"),
        (Net.forward, "fluid.dygraph.jit.declarative"),
        (fluid.dygraph.guard, "fluid.dygraph.guard"),
        (fluid.dygraph.no_grad, "fluid.dygraph.no_grad"),
        (lambda: Conv2D(1, 2, 3), "fluid.dygraph.nn.Conv2D"),
        (fluid.enable_dygraph, "fluid.dygraph.enable_dygraph"),
        (lambda: fluid.save_dygraph({}, "model"), "fluid.dygraph.save_dygraph"),
        (lambda: fluid.op.Operator("sum"), "fluid.op.Operator"),
    ):
        with pytest.raises(UnsupportedError, match=named.replace(".", r"\.") + ": "):
            call()
    assert not isinstance(fluid.data("x", [1]), (fluid.dygraph.Layer, fluid.core.VarBase))
    assert fluid.dygraph.enabled() is False and fluid.disable_dygraph() is None


@pytest.mark.parametrize("below", sorted(dygraph.NAMES))
def test_every_name_is_there(below):
    scope = {}
    exec(f"from fluidjax.dygraph{'.' if below else ''}{below} import *", scope)
    assert set(dygraph.NAMES[below].split()) <= set(scope)
    module = sys.modules[f"fluidjax.dygraph{'.' if below else ''}{below}"]
    assert dir(module) == sorted(dygraph.NAMES[below].split())
    assert not hasattr(module, "Nonsense")


@pytest.mark.slow
def test_a_script_that_imports_them_runs(tmp_path):
    """With the rest of its module static, as old toolkits have it; and the report of names still
    says that they are absent.
    """
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import paddle.fluid as fluid
            import paddle.fluid.dygraph as dg
            from paddle.fluid.dygraph.nn import Conv2D, Linear
            from paddle.fluid.dygraph.base import to_variable
            from paddle.fluid.dygraph import *
            from paddle.fluid.op import Operator
            from paddle.jit import to_static, not_to_static

            class Net(dg.Layer):
                @to_static
                def forward(self, x):
                    return x

            @not_to_static
            def double(x):
                return x * 2

            print(double(fluid.data("x", [2])).shape, dg.enabled())
            dg.to_variable([1.0])
            """
        )
    )
    run = subprocess.run(
        [sys.executable, "-m", "fluidjax", "run", str(script)], capture_output=True, text=True
    )
    assert run.stdout == "(2,) False\n"
    assert run.stderr.splitlines()[-1].endswith(
        "fluid.dygraph.to_variable: dynamic mode is not supported; build static programs"
    )
    absent = {use.name for use in compat_report(script).absent}
    names = ("dygraph.Layer", "dygraph.nn.Conv2D", "op.Operator", "dygraph.to_variable")
    assert {f"paddle.fluid.{name}" for name in names} <= absent


def test_what_op_types_declare_is_there() -> None:
    from fluidjax.op import get_all_op_protos

    declared = {proto.type: proto for proto in get_all_op_protos()}
    assert [slot.name for slot in declared["mul"].inputs] == ["X", "Y"]
