"""import paddle: names, arguments of Paddle 2.0, names that are missing, and whole scripts."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.paddle
from fluidjax import cli
from fluidjax.errors import FluidError, FluidTypeError, FluidValueError, UnsupportedError
from fluidjax.paddle.names import real_name

SCRIPTS = Path(__file__).parents[1] / "data" / "scripts"


@pytest.fixture
def paddle():
    """The shim, installed for one test, with fresh programs, names and scope."""
    fluidjax.paddle.install()
    try:
        with (
            fluid.program_guard(fluid.Program(), fluid.Program()),
            fluid.scope_guard(fluid.Scope()),
            fluid.unique_name.guard(),
        ):
            yield importlib.import_module("paddle")
    finally:
        fluidjax.paddle.uninstall()
        assert not [n for n in sys.modules if n.split(".")[0] == "paddle"]


@pytest.mark.parametrize(
    "statement",
    [
        (
            "import paddle.fluid as fluid; assert fluid.Program is ours.Program and fluid.layers.fc"
            " is ours.layers.fc"
        ),
        "from paddle.fluid import layers; assert layers.fc is ours.layers.fc",
        "import paddle.fluid.core; assert paddle.fluid.core.EOFException is ours.core.EOFException",
        "from paddle.fluid.framework import Program, program_guard; assert Program is ours.Program",
        "import paddle.fluid as fluid; assert fluid.framework.Program is ours.Program",
        "from paddle.fluid.reader import DataLoader; assert DataLoader is ours.io.DataLoader",
        (
            "from paddle.fluid.param_attr import ParamAttr; from paddle.fluid.initializer import"
            " Constant"
        ),
        (
            "from paddle.fluid.optimizer import SGDOptimizer; assert SGDOptimizer is"
            " ours.optimizer.SGD"
        ),
        "from paddle.fluid import *; assert Program is ours.Program",
        "from paddle.fluid.layers import *; assert fc is ours.layers.fc",
        (
            "import paddle.static as static; assert static.Program is ours.Program and"
            " static.nn.conv2d is ours.layers.conv2d"
        ),
        "from paddle.static import *; assert Program is ours.Program",
        (
            "import paddle.static.nn, paddle.nn.functional as F, paddle.nn.initializer; F.relu,"
            " paddle.static.nn.fc"
        ),
        (
            "import paddle.reader; assert paddle.reader.shuffle is ours.io.shuffle and paddle.batch"
            " is ours.io.batch"
        ),
        "from paddle.reader.decorator import buffered; assert buffered is ours.io.buffered",
        (
            "import paddle.dataset.mnist as mnist; from paddle.dataset import uci_housing;"
            " mnist.train, uci_housing.test"
        ),
        (
            "import paddle; paddle.dataset.uci_housing.feature_names; assert paddle.CPUPlace is"
            " ours.CPUPlace"
        ),
        (
            "import paddle; assert not hasattr(paddle, 'nothing') and not"
            " hasattr(paddle.fluid.layers, 'nothing')"
        ),
        (
            "import paddle; assert paddle.in_dynamic_mode() is False and paddle.enable_static() is"
            " None and paddle.__version__"
        ),
    ],
)
def test_imports(paddle, statement):
    exec(statement, {"ours": fluid})


MISSING = [
    (
        "paddle.fluid",
        "programm_guard",
        "fluidjax has no paddle.fluid.programm_guard (did you mean 'program_guard'",
    ),
    ("paddle.fluid.layers", "fcc", "fluidjax has no paddle.fluid.layers.fcc (did you mean 'fc'?)"),
    ("paddle", "relu", "fluidjax has no paddle.relu; there is paddle.nn.functional.relu"),
    ("paddle.vision", "transformss", "(did you mean 'transforms'"),
    ("paddle.nn", "Lineer", "(did you mean 'Linear'"),
    ("paddle.static", "exeutor", "(did you mean 'Executor'"),
    ("paddle.static.nn", "fcs", "(did you mean 'fc'"),
    ("paddle.optimizer", "AdamX", "(did you mean 'Adam"),
    ("paddle.fluid.optimizer", "Adamm", "(did you mean 'Adam'"),
    ("paddle.fluid.io", "save_parms", "did you mean 'save_params'"),
]


@pytest.mark.parametrize(("module", "name", "told"), MISSING)
def test_missing_names(paddle, module, name, told):
    with pytest.raises(AttributeError) as got:
        getattr(importlib.import_module(module), name)
    with pytest.raises(ImportError) as imported:
        exec(f"from {module} import {name}")
    assert isinstance(got.value, FluidError) and isinstance(imported.value, FluidError)
    assert told in str(got.value) and str(got.value) == str(imported.value)


def test_missing_modules(paddle):
    with pytest.raises(
        ImportError, match=r"fluidjax has no paddle.fluid.layerss \(did you mean 'layers'"
    ):
        importlib.import_module("paddle.fluid.layerss")
    with pytest.raises(ImportError, match=r"fluidjax has no paddle\.v2"):
        importlib.import_module("paddle.v2")


def test_it_wins_over_an_installed_paddle_and_gives_it_back(tmp_path, monkeypatch):
    (tmp_path / "paddle").mkdir()
    (tmp_path / "paddle" / "__init__.py").write_text("genuine = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    real = importlib.import_module("paddle")
    assert real.genuine
    fluidjax.paddle.install()
    fluidjax.paddle.install()
    try:
        assert importlib.import_module("paddle").fluid.Program is fluid.Program
        assert not hasattr(importlib.import_module("paddle"), "genuine")
    finally:
        fluidjax.paddle.uninstall()
        fluidjax.paddle.uninstall()
    assert importlib.import_module("paddle") is real
    del sys.modules["paddle"]


def test_what_a_script_sets_is_set(paddle, monkeypatch):
    monkeypatch.setattr(fluid.io, "mark", None, raising=False)
    paddle.fluid.io.mark = 3
    assert fluid.io.mark == 3


def test_real_names():
    assert [real_name(n) for n in ("paddle", "paddle.fluid", "paddle.fluid.layers", "paddle.static.nn", "paddle.dataset.mnist")] == [
        "fluidjax.paddle", "fluidjax", "fluidjax.layers", "fluidjax.paddle.static.nn", "fluidjax.dataset.mnist",
    ]  # fmt: skip


# -- the arguments of Paddle 2.0 -------------------------------------------------------------------

A = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], "float32")
B = np.array([[2.0, 2.0, 1.0], [1.0, 2.0, 3.0]], "float32")
I = np.array([1, 0], "int64")  # noqa: E741
TENSOR = {
    "add": (lambda p, x, y, i: p.add(x, y), A + B),
    "subtract": (lambda p, x, y, i: p.subtract(x, y=y, name="s"), A - B),
    "divide": (lambda p, x, y, i: p.divide(x, y), A / B),
    "maximum": (lambda p, x, y, i: p.maximum(x, y), np.maximum(A, B)),
    "mean": (lambda p, x, y, i: p.mean(x), np.array([A.mean()])),
    "mean axis": (lambda p, x, y, i: p.mean(x, axis=-1, keepdim=True), A.mean(-1, keepdims=True)),
    "sum": (lambda p, x, y, i: p.sum(x, 0), A.sum(0)),
    "max": (lambda p, x, y, i: p.max(x, axis=[0]), A.max(0)),
    "prod": (lambda p, x, y, i: p.prod(x, 1), A.prod(1)),
    "matmul": (lambda p, x, y, i: p.matmul(x, y, transpose_y=True), A @ B.T),
    "pow": (lambda p, x, y, i: p.pow(x, 2.0), A**2),
    "pow variable": (lambda p, x, y, i: p.pow(y, y), B**B),
    "reshape": (lambda p, x, y, i: p.reshape(x, [3, 2]), A.reshape(3, 2)),
    "transpose": (lambda p, x, y, i: p.transpose(x, [1, 0]), A.T),
    "concat": (lambda p, x, y, i: p.concat([x, y], axis=1), np.concatenate([A, B], 1)),
    "stack": (lambda p, x, y, i: p.stack([x, y], axis=0), np.stack([A, B])),
    "split": (lambda p, x, y, i: p.split(x, 2)[1], A[1:]),
    "unsqueeze": (lambda p, x, y, i: p.unsqueeze(x, [0]), A[None]),
    "squeeze": (lambda p, x, y, i: p.squeeze(p.unsqueeze(x, [0, 3]), axis=0), A[..., None]),
    "squeeze all": (lambda p, x, y, i: p.squeeze(p.unsqueeze(x, [0, 3])), A),
    "squeeze none": (lambda p, x, y, i: p.squeeze(x, 1), A),
    "flatten": (lambda p, x, y, i: p.flatten(p.stack([x, y]), 1), np.stack([A, B]).reshape(2, 6)),
    "flatten all": (lambda p, x, y, i: p.flatten(x), A.ravel()),
    "expand": (
        lambda p, x, y, i: p.expand(p.unsqueeze(x, [1]), [-1, 2, 3]),
        np.repeat(A[:, None], 2, 1),
    ),
    "expand front": (lambda p, x, y, i: p.expand(x, [2, -1, 3]), np.stack([A, A])),
    "tile": (lambda p, x, y, i: p.tile(x, [1, 2]), np.tile(A, (1, 2))),
    "gather": (lambda p, x, y, i: p.gather(x, i), A[[1, 0]]),
    "gather axis": (lambda p, x, y, i: p.gather(x, i, axis=1), A[:, [1, 0]]),
    "where": (lambda p, x, y, i: p.where(p.greater_than(x, y), x, y), np.where(A > B, A, B)),
    "clip": (lambda p, x, y, i: p.clip(x, min=-1.0, max=4.0), A.clip(-1, 4)),
    "argmax": (lambda p, x, y, i: p.argmax(x), np.array([4])),
    "argmax axis": (lambda p, x, y, i: p.argmax(x, axis=1, keepdim=True), A.argmax(1)[:, None]),
    "argmin dtype": (
        lambda p, x, y, i: p.argmin(x, axis=0, dtype="int32"),
        A.argmin(0).astype("int32"),
    ),
    "sort": (lambda p, x, y, i: p.sort(x, axis=1, descending=True), -np.sort(-A, 1)),
    "argsort": (lambda p, x, y, i: p.argsort(x), A.argsort(-1)),
    "topk": (lambda p, x, y, i: p.topk(x, 2)[0], -np.sort(-A, 1)[:, :2]),
    "cumsum": (lambda p, x, y, i: p.cumsum(x), A.cumsum()),
    "cumsum axis": (lambda p, x, y, i: p.cumsum(x, axis=1), A.cumsum(1)),
    "roll": (lambda p, x, y, i: p.roll(x, 1, axis=1), np.roll(A, 1, 1)),
    "cast": (lambda p, x, y, i: p.cast(x, "int32"), A.astype("int32")),
    "numel": (lambda p, x, y, i: p.numel(x), np.array([6])),
    "full": (lambda p, x, y, i: p.full([2], 3.5), np.full(2, 3.5, "float32")),
    "zeros int": (lambda p, x, y, i: p.zeros([2], "int64"), np.zeros(2, "int64")),
    "arange": (lambda p, x, y, i: p.arange(4), np.arange(4)),
    "arange float": (lambda p, x, y, i: p.arange(0.0, 1.0, 0.5), np.arange(0, 1, 0.5, "float32")),
    "eye": (lambda p, x, y, i: p.eye(2), np.eye(2, dtype="float32")),
    "relu": (lambda p, x, y, i: p.nn.functional.relu(x), A.clip(0)),
    "leaky_relu": (
        lambda p, x, y, i: p.nn.functional.leaky_relu(x, 0.5),
        np.where(A > 0, A, A * 0.5),
    ),
    "softmax": (
        lambda p, x, y, i: p.nn.functional.softmax(x, axis=0),
        np.exp(A) / np.exp(A).sum(0),
    ),
    "mse_loss": (
        lambda p, x, y, i: p.nn.functional.mse_loss(x, y),
        np.array([((A - B) ** 2).mean()]),
    ),
    "l1_loss": (
        lambda p, x, y, i: p.nn.functional.l1_loss(x, y, "sum"),
        np.array([abs(A - B).sum()]),
    ),
    "one_hot": (
        lambda p, x, y, i: p.nn.functional.one_hot(i, 3),
        np.eye(3, dtype="float32")[[1, 0]],
    ),
    "dropout": (lambda p, x, y, i: p.nn.functional.dropout(x, 0.5, training=False), A),
    "linear": (lambda p, x, y, i: p.nn.functional.linear(x, p.transpose(y, [1, 0])), A @ B.T),
    "normalize": (
        lambda p, x, y, i: p.nn.functional.normalize(x),
        A / np.sqrt((A**2).sum(1, keepdims=True)),
    ),
}


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


TENSOR["cross_entropy"] = (
    lambda p, x, y, i: p.nn.functional.cross_entropy(x, i), -log_softmax(A)[[0, 1], [1, 0]].mean(keepdims=True)
)  # fmt: skip
TENSOR["cross_entropy ignored"] = (
    lambda p, x, y, i: p.nn.functional.cross_entropy(x, p.unsqueeze(i, 1), ignore_index=0), -log_softmax(A)[[0], [1]]
)  # fmt: skip
TENSOR["cross_entropy soft"] = (
    lambda p, x, y, i: p.nn.functional.cross_entropy(x, y, soft_label=True, reduction="none"),
    -(log_softmax(A) * B).sum(1, keepdims=True),
)


@pytest.mark.parametrize("case", TENSOR)
def test_tensor_functions(paddle, case):
    make, want = TENSOR[case]
    x, y = (paddle.static.data(n, [None, 3]) for n in "xy")
    out = make(paddle, x, y, paddle.static.data("i", [None], "int64"))
    got = paddle.static.Executor(paddle.CPUPlace()).run(
        feed={n: v for n, v in {"x": A, "y": B, "i": I}.items() if reads(n)}, fetch_list=[out]
    )[0]
    assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def reads(name):
    return any(name in op.input_arg_names for op in fluid.default_main_program().global_block().ops)


@pytest.mark.parametrize(
    "module",
    [
        "tensor",
        "creation",
        "nn.functional",
        "nn.initializer",
        "optimizer",
        "regularizer",
        "static",
        "static.nn",
    ],
)
def test_all_is_there_and_says_what_it_is(module):
    loaded = importlib.import_module(f"fluidjax.paddle.{module}")
    for name in loaded.__all__:
        assert getattr(loaded, name).__doc__, name


def test_signatures_of_adapted_functions(paddle):
    defaults = {p.name: p.default for p in inspect.signature(paddle.mean).parameters.values()}
    assert defaults == {"x": inspect.Parameter.empty, "axis": None, "keepdim": False, "name": None}
    assert list(inspect.signature(paddle.static.nn.fc).parameters) == [
        "x", "size", "num_flatten_dims", "weight_attr", "bias_attr", "activation", "name",
    ]  # fmt: skip
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'dim'"):
        paddle.mean(paddle.static.data("x", [1]), dim=0)


def test_refused_with_a_reason(paddle):
    x, f = paddle.static.data("x", [None, 4, None]), paddle.nn.functional
    for call, error, told in (
        (paddle.disable_static, UnsupportedError, "dynamic mode is not supported"),
        (lambda: paddle.seed("a"), FluidTypeError, "paddle.seed takes an integer"),
        (lambda: paddle.flatten(x, 0, 1), UnsupportedError, "leaves two dimensions unknown"),
        (lambda: paddle.flatten(x, 2, 1), FluidValueError, "start_axis 2 comes after stop_axis 1"),
        (lambda: paddle.expand(x, [4]), FluidValueError, "has fewer dimensions than 'x'"),
        (lambda: paddle.expand(x, [-1, 8, -1]), FluidValueError, "only sizes of 1 are repeated"),
        (
            lambda: f.mse_loss(x, x, "avg"),
            FluidValueError,
            "reduction is 'mean', 'sum' or 'none', not 'avg'",
        ),
        (
            lambda: f.cross_entropy(x, x, weight=x, axis=1),
            FluidValueError,
            "weight needs the classes along the last axis, not 1",
        ),
        (lambda: f.dropout(x, axis=3), FluidValueError, "dropout's axis 3 is not an axis of 'x'"),
        (
            lambda: f.interpolate(x, 3, mode="bilinear"),
            FluidValueError,
            "bilinear takes 4 dimensions",
        ),
        (
            lambda: f.conv1d(x, x, groups=3),
            FluidValueError,
            "4 channels of 'x' do not divide into 3 groups",
        ),
        (
            lambda: f.pad(x, [1], "reflect", data_format="NCL"),
            FluidValueError,
            "takes 2 integers or 6",
        ),
        (
            lambda: f.max_pool2d(f.pad(x, [0] * 6), 2, return_mask=True, ceil_mode=True),
            FluidValueError,
            "ceil_mode=False",
        ),
        (
            lambda: paddle.optimizer.SGD(weight_decay="l2"),
            FluidTypeError,
            "weight_decay is a number or a regularizer",
        ),
        (lambda: paddle.nn.initializer.Assign(3), FluidTypeError, "Assign takes an array"),
    ):
        with pytest.raises(error, match=told):
            call()


OPTIMIZERS = {
    "SGD": ({"learning_rate": 0.1}, {"learning_rate": 0.1}),
    "Momentum": (
        {"momentum": 0.8, "use_nesterov": True},
        {"learning_rate": 0.001, "momentum": 0.8, "use_nesterov": True},
    ),
    "Adagrad": (
        {"learning_rate": 0.1, "initial_accumulator_value": 0.2},
        {"learning_rate": 0.1, "initial_accumulator_value": 0.2},
    ),
    "RMSProp": ({"learning_rate": 0.1, "centered": True}, {"learning_rate": 0.1, "centered": True}),
    "Adam": ({}, {}),
    "Adamax": ({"beta1": 0.8}, {"beta1": 0.8}),
    "Lamb": ({"lamb_weight_decay": 0.1}, {"lamb_weight_decay": 0.1}),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_write_the_program_of_fluids(paddle, name):
    """But for what Paddle 2 added; tests/paddle/test_rates.py compares steps of all with 2.6.2."""
    new, old = OPTIMIZERS[name]
    clip = fluid.clip.GradientClipByNorm(1.0)
    decay = {} if name in ("Lamb", "Momentum") else {"weight_decay": 0.01}
    texts = []
    for cls, options in (
        (getattr(paddle.optimizer, name), {**new, **decay, "grad_clip": clip, "parameters": ["w"]}),
        (
            getattr(fluid.optimizer, name),
            {
                **old,
                **({"regularization": fluid.regularizer.L2Decay(0.01)} if decay else {}),
                "grad_clip": clip,
                "parameter_list": ["w"],
            },
        ),
    ):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            hidden = fluid.layers.fc(fluid.data("x", [None, 2]), 3, param_attr="w")
            cls(**options).minimize(fluid.layers.mean(hidden))
        text = re.sub(
            r"(, Beta.PowOut=\w+(?!.*= adam)|,"
            r" (multi_precision|always_adapt|rescale_grad)=\S+?(?=[,)]))",
            "",
            f"{main}{startup}",
        )
        # name scopes are counted on
        texts.append(re.sub(r'(op_namescope="/\w+?)(_\d+)?/', r"\1/", text))
    assert texts[0] == texts[1]


# -- scripts ---------------------------------------------------------------------------------------


def run(name, tmp_path, *args, one_device=True):
    """Run a script by the command line; on a machine without a GPU, its own choice of the CPU is
    switched on.
    """
    text = (SCRIPTS / name).read_text()
    if not fluid.is_compiled_with_cuda():
        text = text.replace("use_cuda = True", "use_cuda = False")
        text = text.replace(
            "place = paddle.CUDAPlace(0) # paddle.CPUPlace()", "place = paddle.CPUPlace()"
        )
    if one_device:
        text = text.replace("str(2)", "str(1)").replace(
            "[paddle.CPUPlace()] * 2", "[paddle.CPUPlace()]"
        )
        text = text.replace("[paddle.CUDAPlace(0), paddle.CUDAPlace(1)]", "[paddle.CUDAPlace(0)]")
    script = tmp_path / name
    script.write_text(text)
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
    ):
        assert cli.main(["run", str(script), *args]) == 0


@pytest.mark.parametrize(
    "name",
    [
        "compiled_program",
        "data_parallel",
        "parallel_executor",
        "drop_local_exe_scopes",
        "fit_a_line",
    ],
)
def test_examples_of_paddles_documentation(name, tmp_path, monkeypatch):
    monkeypatch.setenv("CPU_NUM", "1")
    run(f"{name}.py", tmp_path)


def test_a_book_script_learns_from_local_files(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    features = rng.random((200, 13)) * 10
    prices = features @ np.linspace(-1, 1, 13) + 20
    (tmp_path / "uci_housing").mkdir()
    np.savetxt(
        tmp_path / "uci_housing" / "housing.data", np.column_stack([features, prices]), fmt="%.4f"
    )
    monkeypatch.setenv("PADDLE_DATASET_HOME", str(tmp_path))
    run("book_housing.py", tmp_path, "20")
    before, after = map(float, capsys.readouterr().out.split())
    assert after < before / 5


def test_a_static_script_trains_a_convolution(tmp_path, capsys):
    run("static_digits.py", tmp_path)
    loss, accuracy = map(float, capsys.readouterr().out.split())
    assert accuracy == 1.0 and loss < 0.5


@pytest.mark.slow
def test_by_the_command_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import paddle.fluid as fluid\nprint(fluid.layers.fcc)\n")
    env = {**os.environ, "PYTHONPATH": str(Path(fluid.__file__).parents[1]), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-m", "fluidjax", "run", str(script)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "(did you mean 'fc'?)" in done.stderr


def test_modules_are_there_without_an_import_of_their_own() -> None:
    """As `import paddle` alone has them."""
    names = ["compat", "distributed", "framework", "utils", "vision"]
    code = f"from fluidjax import paddle; print([getattr(paddle, n).__name__ for n in {names}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([f"fluidjax.paddle.{n}" for n in names])
