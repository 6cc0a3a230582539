"""Programs of Paddle 3.3.1 in its ProgramDesc form, and what their versions say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import ParseError, UnsupportedError
from fluidjax.ir.desc import Long, ProgramDesc
from fluidjax.ir.proto import from_bytes, read, to_bytes, wire
from fluidjax.ops.registry import attr_type

FOLDER = Path(__file__).parent.parent / "data" / "saved_3.3.1"
MODEL = (FOLDER / "model.pdmodel").read_bytes()


def test_a_model_of_3_3_1_gives_its_outputs() -> None:
    """With the shapes of 3.3.1 too: what is summed over everything has none."""
    with fluid.scope_guard(fluid.Scope()), np.load(FOLDER / "ref.npz") as ref:
        exe = fluid.Executor(fluid.CPUPlace())
        program, feeds, fetches = fluid.io.load_inference_model(str(FOLDER), exe)
        found = exe.run(program, feed={feeds[0]: ref["x"]}, fetch_list=fetches)
        for i, value in enumerate(found):
            assert np.shape(value) == ref[f"out{i}"].shape
            np.testing.assert_allclose(value, ref[f"out{i}"], rtol=1e-5, atol=1e-6)


def test_versions_are_read() -> None:
    desc, written = read(MODEL)
    assert (
        written.paddle // 1000 in (0, 3003)
        and written.ops["softplus"] == 1
        and written.ops["set_value"] == 4
    )
    (values,) = [
        op.attrs["values"]
        for op in desc.blocks[0].ops
        if op.type == "assign_value" and len(op.attrs["values"]) == 5
    ]
    assert values == (0.0, 1.0, 2.0, 3.0, 4.0)
    again = from_bytes(to_bytes(desc, attr_type))
    assert [op.attrs for op in again.blocks[0].ops] == [op.attrs for op in desc.blocks[0].ops]


def changed(fill: Any) -> bytes:
    message = wire.ProgramDesc.FromString(MODEL)
    fill(message)
    return bytes(message.SerializeToString())


def version(kind: str, number: int, **attrs: float) -> bytes:
    """The model with its relu as an op of another type, in such a version."""

    def fill(message: Any) -> None:
        (op,) = [op for op in message.blocks[0].ops if op.type == b"relu"]
        op.type = kind.encode()
        for name, value in attrs.items():
            op.attrs.add(name=name.encode(), type=1, f=value)
        message.op_version_map.pair.add(op_name=kind.encode()).op_version.version = number

    return changed(fill)


def test_a_meaning_that_changed_is_told() -> None:
    with pytest.raises(
        UnsupportedError,
        match=r"op 'leaky_relu' of version 1 is there with alpha from 0 to 1 alone",
    ):
        fluid.Program.parse_from_string(version("leaky_relu", 1, alpha=1.5))
    assert fluid.Program.parse_from_string(version("leaky_relu", 1, alpha=0.5))
    assert fluid.Program.parse_from_string(version("leaky_relu", 0, alpha=1.5))
    with pytest.raises(
        UnsupportedError, match=r"op 'hard_swish' is of version 2, later than Paddle 3.3.1's 1"
    ):
        fluid.Program.parse_from_string(version("hard_swish", 2))


@pytest.mark.parametrize(
    ("kind", "fields", "value"),
    [("SCALAR", {"scalar": wire.Scalar(type=1, b=True)}, True), ("SCALAR", {"scalar": wire.Scalar(type=2, i=7)}, Long(7)),
     ("SCALARS", {"scalars": [wire.Scalar(type=3, r=0.1), wire.Scalar(type=2, i=2)]}, (0.1, Long(2))),
     ("FLOAT64", {"float64": 0.1}, 0.1), ("FLOAT64S", {"float64s": [0.1, 2.0]}, (0.1, 2.0))],
)  # fmt: skip
def test_attributes_of_later_types(kind: str, fields: dict[str, Any], value: Any) -> None:
    data = changed(
        lambda m: (
            m.blocks[0].ops[1].attrs.add(name=b"new", type=wire.AttrType.Value(kind), **fields)
        )
    )
    desc = from_bytes(data)
    assert desc.blocks[0].ops[1].attrs["new"] == value and type(
        desc.blocks[0].ops[1].attrs["new"]
    ) is type(value)
    again: ProgramDesc = from_bytes(
        to_bytes(desc, lambda op, name: kind if name == "new" else attr_type(op, name))
    )
    assert again.blocks[0].ops[1].attrs["new"] == value


def test_scalars_that_hold_nothing_are_refused() -> None:
    def add(**fields: Any) -> bytes:
        return changed(lambda m: m.blocks[0].ops[1].attrs.add(name=b"new", type=16, **fields))

    for fields, told in (
        ({}, "has no field 'scalar'"), ({"scalar": wire.Scalar(type=9)}, "a scalar's type is 9"),
        ({"scalar": wire.Scalar(type=1)}, "no field 'b'"), ({"scalar": wire.Scalar(type=4)}, "a complex number as an attribute"),
    ):  # fmt: skip
        with pytest.raises(ParseError, match=told):
            from_bytes(add(**fields))
