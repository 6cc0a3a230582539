"""What complex numbers consist of, counts and distinct values; programs and values as bytes;
devices, versions and lists of tensors.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.paddle as paddle
from fluidjax.errors import FluidTypeError, FluidValueError, LoadError, ParseError, UnsupportedError
from tests.tools import device_nets

DATA = Path(__file__).parents[1] / "data"
pytestmark = pytest.mark.usefixtures("fresh_programs")


def test_parts_of_numbers():
    z = np.array([1 + 2j, -3 - 1j], "complex64")
    v = np.array([3, 1, 2, 1, 3, 0, 7, 1], "float32")
    m = np.arange(6, dtype="float32").reshape(2, 3)
    a, x, y = (
        paddle.static.data(n, s, str(d.dtype))
        for n, s, d in (("z", [2], z), ("v", [-1], v), ("m", [2, 3], m))
    )
    outs = [
        paddle.conj(a), paddle.real(a), paddle.imag(a), paddle.conj(x), paddle.histogram(x, 4, 0, 3), paddle.histogram(x),
        *fluid.layers.unbind(y, 1), *paddle.unique(x, True, True, True, dtype="int32"),
    ]  # fmt: skip
    got = fluid.Executor().run(feed={"z": z, "v": v, "m": m}, fetch_list=outs)
    wanted = [
        z.conj(),
        z.real,
        z.imag,
        v,
        np.histogram(v, 4, (0, 3))[0],
        np.histogram(v, 100)[0],
        *m.T,
    ]
    wanted += np.unique(v, True, True, True)
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [str(g.dtype) for g in got[-3:]] == ["int32"] * 3 and str(got[4].dtype) == "int64"
    for call, error, told in (
        (lambda: paddle.real(x), FluidTypeError, "real's x is of dtype complex64, complex128"),
        (lambda: paddle.histogram(x, 0), FluidValueError, "at least one bin, not 0"),
        (lambda: paddle.histogram(x, 3, 2, 1), FluidValueError, "2 is above 1"),
        (lambda: paddle.unique(y, axis=0), UnsupportedError, "along axis 0 of 'm'"),
        (
            lambda: paddle.unique(x, dtype="float32"),
            FluidTypeError,
            "unique's dtype is one of int32, int64",
        ),
        (lambda: fluid.layers.unbind(x), FluidValueError, "unbind must know how many slices"),
    ):
        with pytest.raises(error, match=told):
            call()


def test_programs_and_values_as_bytes(tmp_path):
    x = paddle.static.data("x", [None, 2])
    y = paddle.static.nn.fc(paddle.static.nn.fc(x, 3), 1)
    exe, feed = paddle.static.Executor(), {"x": np.ones((2, 2), "float32")}
    exe.run(paddle.static.default_startup_program())
    wanted = exe.run(feed=feed, fetch_list=[y])[0]
    program, values = (
        paddle.static.serialize_program([x], [y]),
        paddle.static.serialize_persistables([x], [y], exe),
    )
    for name, data in (("program", program), ("values", values)):
        paddle.static.save_to_file(str(tmp_path / "new" / name), data)
    program, values = (
        paddle.static.load_from_file(str(tmp_path / "new" / n)) for n in ("program", "values")
    )
    with paddle.static.scope_guard(fluid.Scope()):
        loaded = paddle.static.deserialize_program(program)
        with pytest.raises((LoadError, ParseError)):
            paddle.static.deserialize_persistables(loaded, values[:-9], exe)
        assert not [
            n for n in ("fc_0.w_0", "fc_1.w_0") if fluid.global_scope().find_var(n) is not None
        ]
        paddle.static.deserialize_persistables(loaded, values, exe)
        out = next(op for op in loaded.global_block().ops if op.type == "fetch").input("X")[0]
        np.testing.assert_array_equal(exe.run(loaded, feed=feed, fetch_list=[out])[0], wanted)
    trained = paddle.nn.functional.dropout(y)
    main = paddle.static.default_main_program()
    whole, alone = (
        paddle.static.normalize_program(main, [x], [y], skip_prune_program=skip)
        for skip in (True, False)
    )
    kinds = ["feed", "mul", "elementwise_add", "mul", "elementwise_add"]
    assert [op.type for op in alone.global_block().ops] == [*kinds, "fetch"]
    assert [op.type for op in whole.global_block().ops] == [
        *kinds,
        *(op.type for op in main.global_block().ops[4:]),
        "fetch",
    ]
    assert (
        alone.global_block().ops[-1].input("X") == [y.name]
        and not main.global_block().var(trained.name).persistable
    )
    assert all(op.attr("is_test") for op in whole.global_block().ops if op.type == "dropout")
    np.testing.assert_array_equal(exe.run(alone, feed=feed, fetch_list=[y.name])[0], wanted)
    for call, error, told in (
        (
            lambda: paddle.static.serialize_program("x", [y]),
            FluidTypeError,
            "feed_vars is a variable or a list",
        ),
        (
            lambda: paddle.static.normalize_program("p", x, y),
            FluidTypeError,
            "takes a Program, not 'p'",
        ),
        (
            lambda: paddle.static.normalize_program(fluid.Program(), x, y),
            FluidValueError,
            "has no ops",
        ),
        (lambda: paddle.static.deserialize_program(b"no"), ParseError, "the given bytes"),
        (
            lambda: paddle.static.deserialize_persistables(fluid.Program(), values, exe),
            FluidValueError,
            "keeps no values",
        ),
        (
            lambda: paddle.static.save_to_file(str(tmp_path / "a"), "text"),
            FluidTypeError,
            "writes bytes, not str",
        ),
        (lambda: paddle.static.load_from_file(str(tmp_path / "b")), FluidValueError, "cannot read"),
    ):
        with pytest.raises(error, match=told):
            call()


def test_devices_of_ops_are_those_of_1_8_5():
    recorded = json.loads((DATA / "devices_1.8.5.json").read_text())
    assert [[kind, device or ""] for kind, device in device_nets.devices(fluid)] == recorded
    with (
        pytest.raises(FluidValueError, match="'cpu', 'gpu', or None for no wish, not 'tpu'"),
        paddle.static.device_guard("tpu"),
    ):
        pass
    x = fluid.data("x", [2])
    with fluid.device_guard("cpu"):
        y = fluid.layers.relu(x)
    program = fluid.Program.parse_from_string(fluid.default_main_program().serialize_to_string())
    assert program.global_block().ops[0].attr("op_device") == "cpu"
    np.testing.assert_array_equal(
        fluid.Executor().run(feed={"x": np.array([-1, 2], "float32")}, fetch_list=[y])[0], [0, 2]
    )


def test_versions_libraries_and_lists():
    for good in (("1.8",), ("1.8.5", "1.9"), ("1.8.5.0",), ("0.1", "1.8.5"), ("2.0",)):
        assert fluid.require_version(*good) is None
    for bad, error in (
        (("2.1",), UnsupportedError),
        (("0.1", "1.0"), UnsupportedError),
        ((1,), FluidTypeError),
        (("a",), FluidValueError),
    ):
        with pytest.raises(error):
            fluid.require_version(*bad)
    with pytest.raises(UnsupportedError, match="declare the op as a Python function over jax"):
        fluid.load_op_library("ops.so")
    array, tensor = fluid.LoDTensorArray(), fluid.LoDTensor(np.ones((2, 3)))
    array.append(tensor)
    assert len(array) == 1 and array[0] is tensor and np.sum(array[0].array()) == 6
    with pytest.raises(FluidTypeError, match="holds LoDTensors, not ndarray"):
        array.append(np.ones(2))
