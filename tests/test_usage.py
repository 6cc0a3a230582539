"""The names that real scripts use most of those that were missing once: each is there, or says what
to use instead.

A name that Paddle 1.8.5 has too is there, but for those in BUILDS. Of each that is there,
usage_called.json says which file calls it, in a test that compares; NAMES_BY_THEMSELVES are called
here. After a change of tests: python -m tests.test_usage
"""

from __future__ import annotations

import csv
import importlib
import json
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.paddle
from fluidjax.errors import FluidError
from tests.test_index_is_called import COMPARED_IN, COMPARES, ROOT, called

pytestmark = pytest.mark.once

ROWS = list(
    csv.reader(
        row
        for row in (Path(__file__).parent / "data" / "usage.csv").read_text().splitlines()
        if not row.startswith("#")
    )
)
# What 1.8.5 imports, but only Paddle's own builds for Baidu's servers, or for GPUs with NCCL, can
# run.
BUILDS = {"incubate.fleet.parameter_server.pslib"}


def found(name):
    """What a dotted name gives, by attribute as in a script, and by import where a script needs
    one.
    """
    head, *rest = name.split(".")
    path, value = head, importlib.import_module(head)
    for part in rest:
        path = f"{path}.{part}"
        try:
            value = getattr(value, part)
        except AttributeError as error:
            if isinstance(value, type):
                value = getattr(object.__new__(value), part)  # an instance's
            elif isinstance(error, FluidError):
                raise
            else:
                value = importlib.import_module(path)
    return value


def full(name):
    return name if name.startswith(("paddle.", "fluidjax.")) else f"paddle.fluid.{name}"


TABLE = Path(__file__).parent / "data" / "usage_called.json"
SCRIPTS = [
    str(p.relative_to(ROOT))
    for p in sorted((ROOT / "tests" / "data" / "scripts" / "zoo").glob("*.py"))
]
CASES = {
    **COMPARED_IN, **dict.fromkeys(SCRIPTS, "tests/cli/test_scripts.py"), "tests/tools/small_names.py": "tests/test_small_names.py",
    "tests/layers/detection_map_cases.py": "tests/layers/test_detection.py", "tests/tools/golden_nets.py": "tests/test_golden_programs.py",
    "tests/backward/gradient_nets.py": "tests/backward/test_gradients.py",
}  # fmt: skip


def _unit(x):
    """A step of an LSTM: gates i, j, f, o of [x, hidden] with the forget gate's bias of 1, all
    weights 0.5.
    """
    weights = fluid.ParamAttr(initializer=fluid.initializer.Constant(0.5))
    one = fluid.layers.fill_constant_batch_size_like(x, [-1, 2], "float32", 1.0)
    return fluid.contrib.layers.BasicLSTMUnit("unit", 2, param_attr=weights)(x, one, one)[1]


def _unit_by_hand(x):
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    gate = (x.sum(1, keepdims=True) + 2) * 0.5 + np.zeros((1, 2))
    return sigmoid(gate + 1) + sigmoid(gate) * np.tanh(gate)


ROWS_OF_X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]], "float32")
BY_LAYERS = {  # a name: what it computes of x, and the same by NumPy
    "paddle.fluid.contrib.layers.BasicLSTMUnit": (_unit, _unit_by_hand),
    "paddle.tensor.clamp": (
        lambda x: fluidjax.paddle.tensor.clamp(x, -0.5, 1.0),
        lambda x: x.clip(-0.5, 1.0),
    ),
}
THE_SAME = {  # a name: one that other tests call, and that is the same object
    "paddle.fluid.layers.Variable": fluid.framework.Variable,
    "paddle.fluid.framework.cpu_places": fluid.cpu_places,
    "paddle.fluid.framework.cuda_places": fluid.cuda_places,
    "paddle.framework.CUDAPlace": fluid.CUDAPlace,
    "paddle.fluid.data_feed_desc.DataFeedDesc": fluid.DataFeedDesc,
    "paddle.fluid.core_avx.EnforceNotMet": fluid.core.EnforceNotMet,
    "paddle.fluid.core.LoDTensorArray": fluid.LoDTensorArray,
    "paddle.fluid.core.DenseTensor": fluid.LoDTensor,
    "paddle.static.load_vars": fluid.io.load_vars,
    "paddle.fluid.wrapped_decorator.signature_safe_contextmanager": (
        fluidjax.wrapped_decorator.signature_safe_contextmanager
    ),
}
BY_VALUES = {"paddle.fluid.framework.in_dygraph_mode": lambda call: call() is False,
             "paddle.fluid.core.PaddleDType": lambda kind: kind.FLOAT32 != kind.INT64,
             "paddle.fluid.data_feed_desc": lambda module: module.DataFeedDesc is fluid.DataFeedDesc,
             "paddle.fluid.layer_helper_base": lambda module: issubclass(fluid.layer_helper.LayerHelper, module.LayerHelperBase),
             "paddle.version": lambda module: module.full_version.split(".")[:2] == [module.major, module.minor]}  # fmt: skip
NAMES_BY_THEMSELVES = {*BY_LAYERS, *THE_SAME, *BY_VALUES}


def mentions(file, name, value):
    """Whether the file calls the name, in its module or imported from there; of a module, whatever
    is in it.
    """
    module, _, last = name.rpartition(".")
    if isinstance(value, ModuleType):
        text = (ROOT / file).read_text()
        if name.replace("paddle.", "") + ", " in text:  # held under a shorter name
            return True
        here = name.replace("paddle.fluid", "fluidjax")
        return any(owner == last for owner, _ in called(file)) or any(
            f"{n} import" in text or f"import {n}" in text for n in (name, here)
        )
    owner = module.rpartition(".")[2]
    allowed = {owner, owner + "s", ""}
    allowed |= (
        {"fluid", "L"}
        if module.startswith("paddle.fluid.layers")
        else {"p"}
        if module == "paddle"
        else {owner[0].upper()}
    )
    # a method's owner is whatever holds it
    return any(n == last and (o in allowed or owner[:1].isupper()) for o, n in called(file))


@cache
def compares(file):
    return bool(COMPARES.search((ROOT / CASES.get(file, file)).read_text()))


@pytest.fixture
def as_paddle():
    fluidjax.paddle.install()
    yield
    fluidjax.paddle.uninstall()


def there():
    """The names that are there, and what they are."""
    return {full(name): found(full(name)) for name, _, _, instead in ROWS if not instead}


def test_each_that_is_there_is_called_where_the_table_says(as_paddle):
    table, names = json.loads(TABLE.read_text()), there()
    assert sorted({*table, *NAMES_BY_THEMSELVES}) == sorted(names)
    wrong = [
        f"{n}: {file}"
        for n, file in table.items()
        if not (mentions(file, n, names[n]) and compares(file))
    ]
    assert not wrong, "call them in a test that compares; then python -m tests.test_usage"


@pytest.mark.parametrize("name", sorted(BY_LAYERS))
def test_computes(name):
    layer, by_hand = BY_LAYERS[name]
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        out = layer(fluid.data("x", [None, 3]))
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        np.testing.assert_allclose(
            exe.run(feed={"x": ROWS_OF_X}, fetch_list=[out])[0], by_hand(ROWS_OF_X), rtol=1e-6
        )


def test_are_what_other_tests_call(as_paddle):
    assert all(found(name) is value for name, value in THE_SAME.items())
    assert all(holds(found(name)) for name, holds in BY_VALUES.items())


def test_each_is_there_or_says_what_to_use():
    fluidjax.paddle.install()
    try:
        there, silent = set(), []
        for name, _, _, instead in ROWS:
            try:
                assert found(full(name)) is not None
                there.add(name)
            except (AttributeError, ImportError) as error:
                if not instead or instead.removeprefix("paddle.").removeprefix("fluid.").split(".")[
                    -1
                ] not in str(error):
                    silent.append((name, str(error)))
            assert not instead or found(instead) is not None
    finally:
        fluidjax.paddle.uninstall()
    assert not silent
    lost = {name for name, _, real, _ in ROWS if real == "yes"} - there
    assert lost <= {f"paddle.fluid.{name}" for name in BUILDS}
    assert len(ROWS) == 204 and len(there) == 181


def tables():
    """For each name that is there the first file that calls it."""
    fluidjax.paddle.install()
    mine = str(Path(__file__).relative_to(ROOT))
    files = [
        *CASES,
        *sorted(
            str(p.relative_to(ROOT))
            for p in (ROOT / "tests").rglob("test_*.py")
            if p.name != Path(mine).name
        ),
    ]
    names = {n: v for n, v in there().items() if n not in NAMES_BY_THEMSELVES}
    return {
        n: next((f for f in files if mentions(f, n, v) and compares(f)), None)
        for n, v in names.items()
    }


if __name__ == "__main__":
    table = tables()
    print(*(n for n, f in table.items() if f is None), sep="\n")
    TABLE.write_text(json.dumps({n: f for n, f in sorted(table.items()) if f}, indent=0) + "\n")
