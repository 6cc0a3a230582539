"""multi_precision: parameters of two bytes beside copies in float32. The names are those that 2.6.2
makes; the numbers those of float32.
"""

from __future__ import annotations

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.layers as L
import fluidjax.paddle as paddle
from fluidjax.ops.registry import lookup
from tests.ops.samples.optim_later import SAMPLES

pytestmark = pytest.mark.usefixtures("fresh_programs")
UPDATES = {
    s.op: s
    for s in SAMPLES
    if any(slot.name == "MasterParam" for slot in lookup(s.op).inputs)
    and "SkipUpdate" not in s.inputs
}


@pytest.mark.parametrize("kind", UPDATES)
def test_a_copy_is_updated_as_a_parameter_of_float32_is(kind):
    sample, definition = UPDATES[kind], lookup(kind)
    small = {n: sample.inputs[n].astype("float16") for n in ("Param", "Grad")}
    copy = small["Param"].astype("float32") + np.float32(1e-5)  # which float16 cannot hold
    plain = definition(
        {**sample.inputs, "Param": copy, "Grad": small["Grad"].astype("float32")}, sample.attrs
    )
    found = definition(
        {**sample.inputs, **small, "MasterParam": copy}, {**sample.attrs, "multi_precision": True}
    )
    np.testing.assert_array_equal(found["MasterParamOut"], plain["ParamOut"])
    np.testing.assert_array_equal(
        found["ParamOut"], np.asarray(plain["ParamOut"]).astype("float16")
    )
    assert found["ParamOut"].dtype == np.float16 and plain.get("MasterParamOut") is None
    for slot in set(plain) - {"ParamOut", "MasterParamOut"}:
        assert (plain[slot] is None) == (found[slot] is None)
        if plain[slot] is not None:
            np.testing.assert_array_equal(found[slot], plain[slot], err_msg=slot)


POWERS = ["moment1_0", "moment2_0", "beta1_pow_acc_0", "beta2_pow_acc_0"]
MADE = {"SGD": [], "Momentum": ["velocity_0"], "Adam": POWERS, "AdamW": POWERS, "Lamb": POWERS}


@pytest.mark.parametrize("name", MADE)
def test_programs(name):
    """Steps that float16 would lose add up in the copy; a parameter of float32 has none."""
    x = paddle.static.data("x", [1, 2], "float16")
    ones = paddle.nn.initializer.Constant(1.0)
    w, v = (
        paddle.static.create_parameter([2], t, n, default_initializer=ones)
        for n, t in (("w", "float16"), ("v", "float32"))
    )
    loss = L.reduce_sum(L.cast(x * w, "float32")) + L.reduce_sum(v)
    optimizer = getattr(paddle.optimizer, name)(1e-4, multi_precision=True)
    optimizer.minimize(loss)
    state = {n for n in optimizer.get_opti_var_name_list() if n.startswith("w")}
    assert state == {"w_fp32_master_0", *(f"w_fp32_master_0_{n}" for n in MADE[name])}
    ops = {
        op.input("Param")[0]: op
        for op in fluid.default_main_program().global_block().ops
        if op.has_attr("multi_precision")
    }
    assert ops["w"].attr("multi_precision") and ops["w"].output("MasterParamOut") == [
        "w_fp32_master_0"
    ]
    assert not ops["v"].attr("multi_precision") and not ops["v"].input("MasterParam")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for _ in range(8):
        exe.run(feed={"x": np.ones((1, 2), "float16")})
    values = fluid.default_main_program().state_dict()
    small, master = np.asarray(values["w"]), np.asarray(values["w_fp32_master_0"])
    assert small.dtype == np.float16 and master.dtype == np.float32
    np.testing.assert_array_equal(small, master.astype("float16"))
    assert (master < 1 - 7e-4).all() and (small < 1).all()
    np.testing.assert_allclose(master, np.asarray(values["v"]), rtol=1e-5)
    assert fluid.Program.parse_from_string(
        fluid.default_main_program().serialize_to_string()
    ).to_string()
