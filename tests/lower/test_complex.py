"""Complex numbers through a program: feeds, fetches, gradients, texts and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FeedError
from fluidjax.ir import jsonio, parse, text
from fluidjax.ir.desc import ProgramDesc

X = np.array([[1 + 2j, 0.5, -1j], [2, -0.5 + 1j, 3 - 1j]], "complex64")


def append(
    kind: str, inputs: dict[str, Any], attrs: dict[str, Any] | None = None, dtype: str = "complex64"
) -> Any:
    block = fluid.default_main_program().global_block()
    out = block.create_var(name=fluid.unique_name.generate(kind), dtype=dtype)
    block.append_op(kind, inputs, {"Out": out}, attrs or {})
    return out


@pytest.fixture(scope="module")
def net() -> Any:
    """The sum of |fft(x * x)|, its gradient, and x as complex128 turned about."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [2, 3], "complex64")
        x.stop_gradient = False
        freq = append(
            "fft_c2c", {"X": x * x}, {"axes": [1], "normalization": "backward", "forward": True}
        )
        loss = append(
            "reduce_sum",
            {"X": append("abs", {"X": freq}, dtype="float32")},
            {"reduce_all": True},
            "float32",
        )
        (grad,) = fluid.gradients(loss, x)
        wide = append("cast", {"X": x}, {"in_dtype": 23, "out_dtype": 24}, "complex128")
        turned = append(
            "transpose",
            {"X": append("reshape", {"X": wide}, {"shape": [3, 2]}, "complex128")},
            {"axis": [1, 0]},
            "complex128",
        )
        fetches = [loss, grad, turned]
    return main, fetches


def size(x: np.ndarray) -> float:
    return float(np.abs(np.fft.fft(x * x, axis=1)).sum())


def test_a_step_with_its_gradient(net: Any) -> None:
    """What flows back is dL/dRe + i dL/dIm."""
    main, (loss, grad, turned) = net
    assert str(grad.dtype) == "VarType.COMPLEX64" and tuple(turned.shape) == (2, 3)
    found, flows, wide = fluid.Executor(fluid.CPUPlace()).run(
        main, feed={"x": X}, fetch_list=[loss, grad, turned]
    )
    assert float(found[0]) == pytest.approx(size(X), rel=1e-5)
    np.testing.assert_array_equal(wide, X.astype("complex128").reshape(3, 2).T)
    want = np.zeros(X.shape, complex)
    for at in np.ndindex(*X.shape):
        for unit in (1, 1j):
            step = np.zeros(X.shape, complex)
            step[at] = 1e-5 * unit
            want[at] += unit * (size(X + step) - size(X - step)) / 2e-5
    np.testing.assert_allclose(flows, want, rtol=1e-3, atol=1e-3)


def test_it_is_fed_as_it_is_declared(net: Any) -> None:
    main, fetches = net
    with pytest.raises(FeedError, match="complex64"):
        fluid.Executor(fluid.CPUPlace()).run(main, feed={"x": X.real}, fetch_list=fetches)


def test_texts_and_bytes(net: Any) -> None:
    desc: ProgramDesc = net[0].desc
    assert (
        parse.parse(text.to_text(desc)) == desc and jsonio.from_json(jsonio.to_json(desc)) == desc
    )
    again = fluid.Program.parse_from_string(net[0].serialize_to_string())
    assert str(again.global_block().var("x").dtype) == "VarType.COMPLEX64" and "c64[2, 3]" in str(
        again
    )


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_files(dtype: str, tmp_path: Path) -> None:
    main, value = fluid.Program(), np.array([1 + 2j, -3], dtype)
    main.global_block().create_var(name="w", shape=[2], dtype=dtype, persistable=True)
    with fluid.scope_guard(fluid.Scope()):
        exe, tensor = fluid.Executor(fluid.CPUPlace()), fluid.global_scope().var("w").get_tensor()
        tensor.set(value, fluid.CPUPlace())
        fluid.io.save_persistables(exe, str(tmp_path), main)
        fluid.save(main, str(tmp_path / "prefix"))
        for load in (
            lambda: fluid.io.load_persistables(exe, str(tmp_path), main),
            lambda: fluid.load(main, str(tmp_path / "prefix")),
        ):
            tensor.set(np.zeros(2, dtype), fluid.CPUPlace())
            load()
            np.testing.assert_array_equal(
                np.array(fluid.global_scope().var("w").get_tensor()), value
            )
