"""Optax(transformation) against optax used directly, and what its programs hold."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.checkpoint.record import Random, Record, lines
from fluidjax.checkpoint.restore import program_difference
from fluidjax.ops import optax_bridge as bridge
from fluidjax.ops import optax_identity
from tests.optimizers import optimizer_cases

optax = pytest.importorskip("optax")

STEPS = 6
TRANSFORMATIONS = {
    "adamw": lambda: optax.adamw(1e-2, weight_decay=0.1),
    "sgd": lambda: optax.sgd(0.1),
    "momentum": lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
    "schedule": lambda: optax.adam(optax.exponential_decay(0.1, 2, 0.5)),
    "chain": lambda: optax.chain(
        optax.clip_by_global_norm(0.05), optax.scale_by_adam(), optax.add_decayed_weights(0.1), optax.scale(-0.1)
    ),
    "masked": lambda: optax.masked(optax.adam(0.1), lambda p: {n: n == "w" for n in p}),
    "by_label": lambda: optax.multi_transform(
        {"fast": optax.adam(0.1), "slow": optax.sgd(0.01, momentum=0.5)},
        lambda p: {n: "fast" if n == "w" else "slow" for n in p},
    ),
    "lion": lambda: optax.lion(0.01),
    "adafactor": lambda: optax.adafactor(0.01),
    "every_other_step": lambda: optax.MultiSteps(optax.adam(0.1), 2),
    "noise": lambda: optax.chain(optax.add_noise(0.1, 0.5, 0), optax.scale(-0.1)),
    "injected": lambda: optax.inject_hyperparams(optax.adam)(learning_rate=optax.exponential_decay(0.1, 2, 0.5)),
    "loss_driven": lambda: optax.chain(
        optax.sgd(0.1), optax.contrib.reduce_on_plateau(patience=1, factor=0.5, rtol=0.5)
    ),
}  # fmt: skip


def build(transformation, w=None, **more):
    with optimizer_cases.fresh(fluid) as (main, startup):
        x = fluid.data("x", [None, 4])
        h = fluid.layers.fc(
            x,
            3,
            param_attr=w or optimizer_cases.constant(fluid, "w"),
            bias_attr=optimizer_cases.constant(fluid, "b"),
        )
        loss = fluid.layers.mean(fluid.layers.square(h))
        opt = fluid.optimizer.Optax(transformation, **more)
        ops, pairs = opt.minimize(loss)
    return main, startup, loss, opt, ops, pairs


def trained(main, startup):
    exe, scope, trace = fluid.Executor(fluid.CPUPlace()), fluid.Scope(), []
    with fluid.scope_guard(scope):
        exe.run(startup)
        for feed in optimizer_cases.feeds(main, STEPS):
            exe.run(main, feed=feed)
            trace.append({n: np.array(scope.find_var(n).get_tensor()) for n in "wb"})
    return trace, scope


def by_itself(tx, main):
    """The same training in JAX."""

    def loss(p, x):
        return jnp.mean(jnp.square(x @ p["w"] + p["b"]))

    @jax.jit
    def step(p, s, x):
        value, grads = jax.value_and_grad(loss)(p, x)
        more = {"value": value} if isinstance(tx, optax.GradientTransformationExtraArgs) else {}
        updates, s = tx.update(grads, s, p, **more)
        return optax.apply_updates(p, updates), s

    p = {"w": jnp.full((4, 3), 0.5), "b": jnp.full(3, 0.5)}
    s, trace = tx.init(p), []
    for feed in optimizer_cases.feeds(main, STEPS):
        p, s = step(p, s, feed["x"])
        trace.append(jax.tree.map(np.asarray, p))
    return trace, s


@pytest.mark.first(4)
@pytest.mark.parametrize("name", sorted(TRANSFORMATIONS))
def test_equals_optax_used_directly(name):
    tx = TRANSFORMATIONS[name]()
    main, startup, *_ = build(tx)
    got, _ = trained(main, startup)
    want, _ = by_itself(tx, main)
    for mine, other in zip(got, want, strict=True):
        for n in "wb":
            np.testing.assert_allclose(mine[n], other[n], rtol=2e-6, atol=1e-6)


def test_the_state_is_in_the_scope():
    tx = optax.adamw(1e-2)
    main, startup, _, opt, *_ = build(tx)
    names = ["optax_count_0", "b_mu_0", "w_mu_0", "b_nu_0", "w_nu_0"]
    assert opt.get_opti_var_name_list() == names
    block = main.global_block()
    assert all(
        block.var(n).persistable and startup.global_block().var(n).persistable for n in names
    )
    assert block.var("optax_count_0").desc.dtype == "int32" and block.var("w_mu_0").shape == (4, 3)
    _, scope = trained(main, startup)
    _, state = by_itself(tx, main)
    held = {n: np.array(scope.find_var(n).get_tensor()) for n in names}
    assert held["optax_count_0"].tolist() == [STEPS]
    np.testing.assert_allclose(held["w_mu_0"], state[0].mu["w"], rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(held["b_nu_0"], state[0].nu["b"], rtol=1e-5, atol=1e-8)


def test_one_op_each_for_update_and_state():
    main, startup, loss, _, ops, pairs = build(optax.adam(0.1))
    (update,) = ops
    assert update.type == "optax_update" and update is main.global_block().ops[-1]
    assert update.input("Params") == ["b", "w"] and update.input("Grads") == ["b@GRAD", "w@GRAD"]
    assert update.input("State") == update.output("StateOut") and update.output("ParamsOut") == [
        "b",
        "w",
    ]
    assert update.input("Loss") == [loss.name]
    assert update.attr("op_role") == 2 and update.attr("op_role_var") == [
        "b",
        "b@GRAD",
        "w",
        "w@GRAD",
    ]
    assert startup.global_block().ops[-1].type == "optax_init"
    assert [(p.name, g.name) for p, g in pairs] == [("w", "w@GRAD"), ("b", "b@GRAD")]
    assert "optax_update" not in [o.type for o in main.clone(for_test=True).global_block().ops]


def test_stateless_transformations_need_no_startup_op():
    _, startup, _, opt, ops, _ = build(optax.scale(-0.1))
    assert opt.get_opti_var_name_list() == [] and ops[0].input("State") == []
    assert "optax_init" not in [o.type for o in startup.global_block().ops]


def test_decay_and_clip_come_first():
    decay, clip = fluid.regularizer.L2Decay(0.1), fluid.clip.GradientClipByGlobalNorm(0.5)
    main, startup, *_ = build(optax.sgd(0.1), regularization=decay, grad_clip=clip)
    got, _ = trained(main, startup)
    tx = optax.chain(optax.clip_by_global_norm(0.5), optax.add_decayed_weights(0.1), optax.sgd(0.1))
    want, _ = by_itself(tx, main)
    np.testing.assert_allclose(got[-1]["w"], want[-1]["w"], rtol=2e-6)


def test_a_parameter_s_learning_rate_multiplies_its_update():
    main, startup, *_ = build(
        optax.adam(0.1), w=optimizer_cases.constant(fluid, "w", learning_rate=0.25)
    )
    got, _ = trained(main, startup)
    scale = optax.stateless(lambda u, p: {"w": 0.25 * u["w"], "b": u["b"]})
    want, _ = by_itself(optax.chain(optax.adam(0.1), scale), main)
    np.testing.assert_allclose(got[-1]["w"], want[-1]["w"], rtol=2e-6)


def test_float64_parameters_are_updated_in_float64():
    with optimizer_cases.fresh(fluid) as (main, startup):
        fluid.optimizer.Optax(optax.sgd(0.1, momentum=0.9)).minimize(
            optimizer_cases.line(fluid, dtype="float64")
        )
    assert main.global_block().var("w_trace_0").desc.dtype == "float64"
    got, _ = trained(main, startup)
    w, v = np.full((4, 3), 0.5), 0.0
    for feed in optimizer_cases.feeds(main, STEPS):
        v = 0.9 * v + np.repeat(feed["x"].mean(0)[:, None] / 3, 3, 1)
        w = w - 0.1 * v
    np.testing.assert_allclose(got[-1]["w"], w, rtol=1e-12)


def test_names_and_keys():
    tx = optax.adam(0.1)
    *_, opt, ops, _ = build(tx, name="mine", key="test_names_and_keys")
    assert ops[0].attr("transformation") == "test_names_and_keys"
    assert opt.get_opti_var_name_list()[:2] == ["optax_mine_count_0", "b_mine_mu_0"]
    build(tx, key="test_names_and_keys")
    with pytest.raises(fluid.errors.FluidValueError, match="bound to another"):
        build(optax.adam(0.1), key="test_names_and_keys")


def test_a_program_of_another_process_says_what_is_missing():
    main, startup, *_ = build(optax.adam(0.1), key="test_of_another_process")
    held = bridge.TRANSFORMATIONS.pop("test_of_another_process")
    with (
        fluid.scope_guard(fluid.Scope()),
        pytest.raises(fluid.errors.EnforceNotMet, match="register_transformation"),
    ):
        fluid.Executor(fluid.CPUPlace()).run(startup)
    bridge.register_transformation("test_of_another_process", held)
    assert len(trained(main, startup)[0]) == STEPS


@pytest.mark.parametrize("bad", [None, 0.1, object()])
def test_only_transformations_are_taken(bad):
    with pytest.raises(fluid.errors.FluidTypeError, match="init and update"):
        fluid.optimizer.Optax(bad)


def test_the_rate_is_the_transformation_s_own():
    with pytest.raises(fluid.errors.UnsupportedError, match="optax"):
        fluid.optimizer.Optax(optax.adam(0.1)).current_step_lr()


def test_sparse_gradients_are_refused():
    with optimizer_cases.fresh(fluid) as (main, _):
        opt = fluid.optimizer.Optax(optax.adam(0.1))
        pairs = opt.backward(optimizer_cases.line(fluid))
        pairs[0][1].change(kind="SELECTED_ROWS")
        with pytest.raises(fluid.errors.UnsupportedError, match="is_sparse"):
            opt.apply_gradients(pairs)
    assert "optax_update" not in [o.type for o in main.global_block().ops]


def test_the_startup_program_must_hold_the_parameters():
    with optimizer_cases.fresh(fluid):
        loss = optimizer_cases.line(fluid)
        with pytest.raises(fluid.errors.FluidValueError, match="startup_program"):
            fluid.optimizer.Optax(optax.adam(0.1)).minimize(loss, startup_program=fluid.Program())


SHAPES = {"w": ((4, 3), "float32"), "b": ((3,), "float32")}
TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)
DIFFERENT = {
    **TRANSFORMATIONS,
    "another_rate": lambda: optax.adamw(3e-2, weight_decay=0.1),
    "another_schedule": lambda: optax.adam(optax.exponential_decay(0.1, 3, 0.5)),
    "another_mask": lambda: optax.masked(optax.adam(0.1), lambda p: {n: n == "b" for n in p}),
    "table": lambda: optax.stateless(lambda u, p: {**u, "w": jax.jit(lambda x: x * TABLE)(u["w"])}),
    "another_table": lambda: optax.stateless(
        lambda u, p: {**u, "w": jax.jit(lambda x: x * (TABLE + 1))(u["w"])}
    ),
}


def test_equal_settings_have_one_identity_and_different_ones_differ():
    found = {name: bridge.identify(make(), SHAPES, "float32") for name, make in DIFFERENT.items()}
    assert found == {
        name: bridge.identify(make(), SHAPES, "float32") for name, make in DIFFERENT.items()
    }
    digests = [digest for digest, _ in found.values()]
    assert None not in digests and len(set(digests)) == len(digests)


def test_the_setting_is_told_in_words():
    told = {
        name: bridge.identify(DIFFERENT[name](), SHAPES, "float32")[1]
        for name in ("adamw", "schedule", "by_label")
    }
    assert (
        "scale_by_adam(b1=0.9, b2=0.999," in told["adamw"]
        and "scale(step_size=-0.01)" in told["adamw"]
    )
    assert "exponential_decay(decay_rate=0.5," in told["schedule"]
    assert all(len(text) <= optax_identity.LONGEST + 15 for text in told.values())
    main, *_, ops, _ = build(optax.adamw(1e-3), key="test_the_setting_is_told")
    assert "step_size=-0.001" in ops[0].attr("setting") and "step_size=-0.001" in str(main)


def test_a_checkpoint_of_another_setting_is_told_by_the_setting():
    record, other = (build(optax.adamw(rate))[0].desc for rate in (1e-3, 3e-3))
    said = program_difference(Record(1, lines(record), Random(0, 1, 0)), other, 0)
    assert "the checkpoint's has `" in said and said.index("step_size=-0.001") < said.index(
        "step_size=-0.003"
    )
    assert (
        program_difference(
            Record(1, lines(record), Random(0, 1, 0)), build(optax.adamw(1e-3))[0].desc, 0
        )
        == ""
    )


def test_an_optimizer_built_twice_has_one_key():
    programs = [build(optax.adam(0.1)) for _ in range(2)]
    first, second = (main.desc.blocks[0].ops[-1].attrs["transformation"] for main, *_ in programs)
    assert first == second
    main, startup, *_ = programs[1]
    assert len(trained(main, startup)[0]) == STEPS


def test_what_calls_back_to_the_host_is_never_taken_for_another():
    def made(factor):
        def host(g):
            return np.asarray(g) * factor

        def update(u, p):
            return {
                **u,
                "b": jax.pure_callback(host, jax.ShapeDtypeStruct((3,), np.float32), u["b"]),
            }

        return optax.stateless(update)

    keys = [build(made(factor))[4][0].attr("transformation") for factor in (1.0, 2.0)]
    assert keys[0] != keys[1]


def test_an_update_that_cannot_be_traced_is_an_error_while_building():
    with pytest.raises(
        fluid.errors.FluidValueError,
        match=r"cannot update the parameters \['b', 'w'\].*no such thing",
    ):
        build(optax.stateless(lambda u, p: {}["no such thing"]))
