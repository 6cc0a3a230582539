"""What fluid.trace does not take: one sentence, with the user's line, and what would be right."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.export
import jax.extend.core.primitives as jax_primitives
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive

import fluidjax as fluid
from fluidjax.errors import FluidTypeError, TraceError
from fluidjax.ir.parse import parse
from fluidjax.tracing import reading
from fluidjax.tracing.primitives import REFUSED, ROWS

X = jnp.ones(3)


def test_every_primitive_of_this_jax_is_known() -> None:
    """A new version's primitive has a row, a reader or a sentence."""
    names = {
        p.name
        for n in dir(jax_primitives)
        if (p := getattr(jax_primitives, n)) and n.endswith("_p")
    }
    tables = (
        set(ROWS) | set(REFUSED) | set(reading.CALLS) | reading.SAME | reading.REMAT | reading.READ
    )
    assert not names - tables


def test_a_callback_is_refused_with_its_line() -> None:
    def fn(x: Any) -> Any:
        jax.debug.print("{}", x)
        return x

    with pytest.raises(TraceError, match=r"'debug_\w+' \(.*test_refusals.py:\d+\) .*host"):
        fluid.trace(fn, X)


def told(x: Any) -> Any:
    jax.debug.callback(SEEN.append, x.sum())

    def row(total: Any, r: Any) -> Any:
        jax.debug.callback(SEEN.append, r)
        return total + r, None

    doubled = jax.pure_callback(
        lambda v: 2 * np.asarray(v), jax.ShapeDtypeStruct(x.shape, x.dtype), x
    )
    return doubled, jax.lax.scan(row, jnp.float32(0), x)[0]


SEEN: list[Any] = []


def test_a_callback_is_kept_where_that_is_asked_and_for_this_process_alone() -> None:
    """Also where nobody reads what it computes, and within a loop."""
    traced = fluid.trace(told, X, strict=False)
    for expected, found in zip(told(X), jax.jit(traced.step())(X), strict=True):
        np.testing.assert_array_equal(expected, found)
    jax.effects_barrier()
    assert sorted(map(float, SEEN)) == [1.0] * 6 + [3.0] * 2
    text = str(traced).replace('key="', 'key="of another process ')
    other = fluid.Program.from_desc(parse(text))
    with pytest.raises(fluid.FluidError, match=r"'jax.callback' runs the Python of .*no file"):
        jax.jit(fluid.step_fn(other, list(traced.fetches)))({}, {"x": X})


def test_a_function_that_jax_does_not_differentiate_says_why_when_a_gradient_is_asked() -> None:
    @jax.custom_vjp
    def once(x: Any) -> Any:
        return x * 2

    def no(x: Any) -> Any:
        raise ValueError("nobody may differentiate this")

    once.defvjp(no, lambda kept, g: (g,))
    traced = fluid.trace(lambda p: once(p["w"]).sum(), {"w": X}, state=0)
    np.testing.assert_array_equal(traced.step()({"w": X}), 6.0)
    block = traced.main.global_block()
    with (
        fluid.program_guard(traced.main),
        pytest.raises(fluid.FluidError, match=r"'once'.*nobody may differentiate"),
    ):
        fluid.gradients(block.var(traced.fetches[0]), [block.var("p.w")])


def pallas(x: Any) -> Any:
    from jax.experimental import pallas as pl

    def kernel(x: Any, out: Any) -> None:
        out[...] = x[...] + 1

    return pl.pallas_call(kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)(x)


def foreign(x: Any) -> Any:
    return jax.ffi.ffi_call("nobodys", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def referring(x: Any) -> Any:
    ref = jax.new_ref(x)
    ref[0] = 2.0
    return ref[...]


def exported(x: Any) -> Any:
    return jax.export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct(x.shape, x.dtype)).call(x)


REMEDIES = {
    pallas: "give the plain JAX function", foreign: "call it outside", referring: "return what changes",
    exported: "give the function itself",
}  # fmt: skip


@pytest.mark.parametrize("fn", REMEDIES)
def test_a_primitive_that_no_program_has_is_named_with_line_and_remedy(fn: Any) -> None:
    with pytest.raises(TraceError) as caught:
        fluid.trace(fn, X)
    assert re.fullmatch(
        rf"primitive '\w+' \(\S*test_refusals.py:\d+\) .*{REMEDIES[fn]}.*", str(caught.value)
    )


def test_pmap_is_read_as_shard_map_and_its_own_primitive_is_refused() -> None:
    """Versions of JAX before 0.10 bind `xla_pmap`, as others that come may."""
    mapped = jax.pmap(lambda x: x - jax.lax.pmean(x, "i") * 0.5, axis_name="i")
    x = jnp.arange(3.0)[None]
    traced = fluid.trace(mapped, x)
    assert "jax.shard_map" in traced.report.ops
    np.testing.assert_array_equal(jax.jit(traced.step())(x), mapped(x))
    old = Primitive("xla_pmap")
    old.def_abstract_eval(lambda x: x)
    with pytest.raises(TraceError, match=r"'xla_pmap' .*give the function itself.*data_parallel"):
        fluid.trace(lambda x: old.bind(x), x)


def closing_over(whole: bool) -> Any:
    """A function with a rule, which closes over a parameter, or of which the rule does so too."""

    def fn(p: Any, x: Any) -> Any:
        @jax.custom_vjp
        def scaled(x: Any) -> Any:
            return x * p["w"]

        if whole:
            scaled.defvjp(lambda x: (x * p["w"], p["w"]), lambda w, g: (g * w,))
        else:
            scaled.defvjp(lambda x: (2 * x, None), lambda kept, g: (2 * g,))
        return scaled(x * p["v"]).sum()

    return fn


def test_a_rule_that_closes_over_a_value_is_refused_where_a_gradient_is_asked() -> None:
    traced = fluid.trace(closing_over(whole=True), {"v": X, "w": 2 * X}, X, state=0)
    np.testing.assert_array_equal(traced.step()({"v": X, "w": 2 * X}, X), 6.0)
    block = traced.main.global_block()
    with (
        fluid.program_guard(traced.main),
        pytest.raises(
            fluid.FluidError, match=r"'scaled' \(.*rule closes over float32\[3\].*hand it"
        ),
    ):
        fluid.gradients(block.var(traced.fetches[0]), [block.var("p.v")])


def test_a_gradient_that_a_custom_vjp_rule_leaves_out_is_refused() -> None:
    """The function reads a parameter of which its rule knows nothing: a zero would be wrong."""
    fn = closing_over(whole=False)

    params = {"v": X, "w": 2 * X}
    traced = fluid.trace(fn, params, X, state=0)
    block = traced.main.global_block()
    loss = block.var(traced.fetches[0])
    with (
        fluid.program_guard(traced.main),
        pytest.raises(fluid.FluidError, match=r"'scaled' \(.*closes over 'p.w'.*as an argument"),
    ):
        fluid.gradients(loss, [block.var("p.w")])
    with fluid.program_guard(traced.main):
        (grad,) = fluid.gradients(loss, [block.var("p.v")], no_grad_set={"p.w"})
    _, (found,) = jax.jit(fluid.step_fn(traced.main, [grad]))(traced.state, {"x": X})
    np.testing.assert_array_equal(found, 2 * X)


def test_a_value_of_another_trace_is_refused() -> None:
    kept: list[Any] = []
    fluid.trace(lambda x: kept.append(x) or x, X)
    with pytest.raises(TraceError, match=r"a value of another trace, float32\[3\].*as an argument"):
        fluid.trace(lambda x: x + kept[0], X)


def test_a_leaf_that_is_no_array_is_named() -> None:
    with pytest.raises(
        TraceError, match=r"argument 'config' has a leaf of type str at config.mode"
    ):
        fluid.trace(lambda config, x: x, {"mode": "train"}, X)


@pytest.mark.parametrize("fn", [lambda a, b: (a, b), lambda a, b: a])
def test_state_that_is_ambiguous_is_refused(fn: Any) -> None:
    """Two arguments of one tree: the results do not say whose they are."""
    with pytest.raises(TraceError, match=r"do not say which of them .* state=\{'a'"):
        fluid.trace(fn, {"w": X}, {"w": X})


def test_a_loss_is_never_taken_for_a_parameter() -> None:
    traced = fluid.trace(lambda p, x: (p * x).sum(), jnp.float32(2), X)
    assert not traced.state
    with pytest.raises(TraceError, match="do not say which"):
        fluid.trace(lambda p, x: (p * 2, x.sum()), jnp.float32(2), X, state="p")
    traced = fluid.trace(lambda p, x: (p * 2, x.sum()), jnp.float32(2), X, state={"p": 0})
    assert traced.continued == {0: 0}


def test_a_step_that_forgets_its_state_is_refused() -> None:
    def step(params: Any, opt: Any, x: Any) -> Any:
        return {"m": opt["m"] * 2}, x.sum()

    with pytest.raises(
        TraceError, match=r"does not return a new .params.*state=\{.params.: None\}"
    ):
        fluid.trace(step, {"w": jnp.ones((2, 2))}, {"m": X}, X, state=(0, 1))


def test_a_pairing_of_other_types_is_refused() -> None:
    with pytest.raises(TraceError, match=r"result 0 cannot be the new 'p': leaf 0 is float32\[2\]"):
        fluid.trace(lambda p, x: (p[:2], x), X, X, state={"p": 0})


def test_what_the_function_raises_goes_on_with_a_note() -> None:
    def wrong(x: Any) -> Any:
        return float(x.sum())

    with pytest.raises(jax.errors.ConcretizationTypeError) as caught:
        fluid.trace(wrong, X)
    assert "in fluid.trace of wrong" in caught.value.__notes__


def test_other_arguments_than_the_traced_ones_are_refused() -> None:
    traced = fluid.trace(lambda p, x: p["w"] @ x, {"w": jnp.ones((2, 3))}, X, state=0)
    with pytest.raises(FluidTypeError, match="the function was traced with"):
        traced.step()({"v": jnp.ones((2, 3))}, X)
    with pytest.raises(fluid.FluidError, match=r"\[4\].*\[3\]"):
        traced.step()({"w": jnp.ones((2, 3))}, jnp.ones(4))


@pytest.mark.parametrize("bad", [{"calls": "maybe"}, {"state": "nobody"}, {"state": 7}])
def test_options_that_mean_nothing_are_refused(bad: Any) -> None:
    with pytest.raises(fluid.FluidError):
        fluid.trace(lambda x: x, X, **bad)


def test_a_linen_module_itself_is_told_how() -> None:
    from flax import linen

    with pytest.raises(TraceError, match="holds no arrays: trace its apply"):
        fluid.trace(linen.Dense(3), X)


def test_names_can_be_given_and_are_checked() -> None:
    traced = fluid.trace(
        lambda p, x: p["w"] @ x, {"w": jnp.ones((2, 3))}, X, state=0, names={"p.w": "fc_0.w_0"}
    )
    assert "fc_0.w_0" in traced.state
    with pytest.raises(TraceError, match="two variables would be called 'x'"):
        fluid.trace(lambda p, x: p["w"] @ x, {"w": jnp.ones((2, 3))}, X, names=lambda n: "x")


def test_paddles_file_refuses_a_dtype_that_paddle_lacks() -> None:
    traced = fluid.trace(lambda key: jax.random.bits(key, (2,)), jax.random.key(0))
    with pytest.raises(fluid.FluidError, match="key<fry>"):
        traced.main.serialize_to_string()
    assert np.shape(traced.step()(jax.random.key(0))) == (2,)


def test_tangents_of_integers_are_refused_among_results() -> None:
    with pytest.raises(TraceError, match="float0, the tangent of integers"):
        fluid.trace(lambda i: jax.vjp(lambda i: i * 1.0, i)[1](1.0), jnp.int32(3))


@pytest.mark.parametrize("fn", [lambda w, x: (w * x).sum(), lambda w, x: ((w * x).sum(), x.sum())])
def test_a_loss_is_never_taken_for_a_bare_parameter(fn: Any) -> None:
    """Of its type there is one result, or two; a mapping says which it is."""
    w = jnp.float32(2)
    with pytest.raises(TraceError, match=r"state=\{'w': "):
        fluid.trace(fn, w, X, state=0)
    forward = fluid.trace(fn, w, X, state={"w": None})
    assert forward.continued == {0: None} and len(forward.fetches) == len(jax.tree.leaves(fn(w, X)))
    assert fluid.trace(fn, w, X, state={"w": 0}).continued == {0: 0}


def test_another_batch_says_how_the_size_is_left_open() -> None:
    traced = fluid.trace(
        lambda p, x: x @ p["w"], {"w": jnp.ones((3, 2))}, jnp.ones((4, 3)), state=0
    )
    traced.write()
    with pytest.raises(
        fluid.FluidError, match=r"\[4, 3\]: trace with dynamic=\{'x': \('d0', None\)"
    ):
        fluid.Executor().run(
            traced.main, feed={"x": np.ones((5, 3), "f")}, fetch_list=[*traced.fetches]
        )
    bare = fluid.trace(jnp.sin, X)
    with pytest.raises(fluid.FluidError, match=r"dynamic=\{'x': \('d0',\)\}"):
        fluid.Executor().run(bare.main, feed={"x": np.ones(4, "f")}, fetch_list=[*bare.fetches])


@pytest.mark.parametrize(
    "bad", [np.array(["a"]), np.array([object()]), np.array("2026-01-01", "M8[D]")]
)
def test_an_array_of_no_numbers_is_no_leaf(bad: Any) -> None:
    with pytest.raises(TraceError, match=r"argument 'bad' has a leaf of type .* array at bad"):
        fluid.trace(lambda bad, x: x, bad, X)


@pytest.mark.parametrize(
    "bad",
    [
        {"kwargs": 3},
        {"dynamic": 3},
        {"names": 3},
        {"dynamic": {"x": (2,)}},
        {"dynamic": {"x": "b"}},
    ],
)
def test_options_of_another_kind_are_refused(bad: Any) -> None:
    with pytest.raises(fluid.FluidError, match=next(iter(bad))):
        fluid.trace(jnp.sin, X, **bad)


def test_what_a_later_version_says_of_an_op_is_not_passed_over() -> None:
    traced = fluid.trace(lambda x: jax.lax.scan(lambda c, r: (c + r, r), x[0], x)[0], X)
    text = str(traced)
    assert "jax.add(X=" in text
    later = fluid.Program.from_desc(parse(text.replace("jax.add(X=", "jax.add(mode=3, X=")))
    with pytest.raises(fluid.FluidError, match=r"'jax.add'.* attribute 'mode' that this version"):
        fluid.Executor().run(later, feed={"x": np.ones(3, "f")}, fetch_list=[*traced.fetches])


def test_arrays_of_numpy_are_taken_as_jit_takes_them() -> None:
    """64 bits become 32; the function that is called without jit too."""
    for value in (np.ones(3), np.arange(3)):
        traced = fluid.trace(lambda x: x * 2, value)
        found, expected = traced.step()(value), jax.jit(lambda x: x * 2)(value)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
