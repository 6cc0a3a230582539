"""Random nets of blocks within blocks on ragged sequences: checked, printed, copied, rewritten, and
run in each way that there is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax import passes
from fluidjax.errors import NotOneStep
from fluidjax.ir import jsonio, proto, text
from fluidjax.ir.verify import verify
from fluidjax.ops.control.while_loop import Loop
from fluidjax.ops.registry import attr_type, lookup

from ..op_by_op import OpByOp
from .random_control import CLOSE, Margin, Net, by_hand, nets, sentences, values, written

CPU = fluid.CPUPlace()
ARGUMENTS = ("x", "q", "w", "m", "p")
# each example compiles: a few of two levels in every run, many of three in a search
SEARCH = not settings.default.derandomize
DEPTH = 2 + SEARCH


def examples(number: int) -> settings:
    return settings(max_examples=number * (50 if SEARCH else 1))


def unrolled(net: Net) -> list[np.ndarray]:
    """The loss and its gradients, computed by hand; a net whose tests stand on a knife's edge is
    not asked.
    """
    given_, margin = [jnp.asarray(values(net)[n]) for n in ARGUMENTS], Margin()
    by_hand(net, margin)(*given_)
    assume(margin.least > CLOSE)
    loss, grads = jax.value_and_grad(by_hand(net, Margin(measured=False)), range(len(ARGUMENTS)))(
        *given_
    )
    return [np.asarray(v) for v in (loss, *grads)]


def fed(net: Net) -> dict[str, Any]:
    given_ = values(net)
    q = fluid.create_lod_tensor(given_["q"], [list(net.lengths)], CPU)
    p = fluid.create_lod_tensor(given_["p"], [list(net.lengths), sentences(net)], CPU)
    return {"x": given_["x"], "q": q, "n": np.array([net.count]), "p": p}


def state(net: Net) -> dict[str, np.ndarray]:
    return {n: values(net)[n] for n in ("w", "m")}


def executed(net: Net, main: Any, names: list[str]) -> list[Any]:
    scope = fluid.Scope()
    for name, value in state(net).items():
        scope.var(name).set(value)
    feed = {n: v for n, v in fed(net).items() if main.global_block().has_var(n)}
    return fluid.Executor(CPU).run(
        main, feed=feed, fetch_list=names, scope=scope, return_numpy=False
    )


def driven(net: Net, main: Any, names: list[str]) -> list[Any]:
    """As if no loop could be traced: Python drives them."""

    def untraceable(loop: Loop) -> None:
        raise NotOneStep("as a test wants it")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "run", untraceable)
        return executed(net, main, names)


def pure(net: Net, main: Any, names: list[str], exact: bool = False) -> list[Any]:
    """One jitted step on buckets, or on exact sizes."""
    feed = fluid.bucketed(fed(net), exact=exact) | {"n": fluid.Fixed(np.array([net.count]))}
    with jax.enable_x64(True):
        return jax.jit(fluid.step_fn(main, names))(state(net), feed)[1]


def literal(net: Net, main: Any, names: list[str], more: Any = None) -> list[Any]:
    """Every op of block 0, gradient ops by what they mean by themselves, names forgotten where the
    program says so.
    """
    feed = fluid.bucketed(fed(net), exact=True) | {"n": fluid.Fixed(np.array([net.count]))}
    with jax.enable_x64(True):
        step = OpByOp(getattr(main, "desc", main), tuple(names), literal=True)
        return jax.jit(step)({**state(net), **(more or {})}, feed)[1]


def forward_alone(net: Net, main: Any, names: list[str]) -> list[Any]:
    """The loss without its gradients: loops of unknown length are lax.while_loop then."""
    return executed(net, main.clone(for_test=True), names[:1])


WAYS: dict[str, Callable[..., list[Any]]] = {
    "executor": executed, "padded": pure, "exact": lambda *a: pure(*a, exact=True), "literal": literal, "forward alone": forward_alone,
}  # fmt: skip


def plain(value: Any) -> np.ndarray:
    if isinstance(value, fluid.Ragged):
        return np.asarray(value.rows)[: int(value.count)]
    return np.array(value)


def compare(got: list[Any], want: list[np.ndarray], names: list[str], what: str) -> None:
    found = dict(zip([n for n in names if n], got, strict=False))
    for name, argument, right in zip(names, ("loss", *ARGUMENTS), want, strict=True):
        if name in found or not name:
            value = plain(found[name]).reshape(right.shape) if name else np.zeros_like(right)
            np.testing.assert_allclose(
                value,
                right,
                rtol=2e-4,
                atol=2e-5 * max(1, np.abs(right).max()),
                err_msg=f"{what}: {argument}",
            )


def agree(net: Net, run: Callable[..., list[Any]], what: str) -> None:
    """The loss and the gradients, run so, are those of the net by hand."""
    want = unrolled(net)
    main, _, loss, grads = written(net)
    names = [loss.name, *grads]
    compare(run(net, main, [n for n in names if n]), want, names, what)


@pytest.mark.slow
@examples(4)
@given(nets(DEPTH), st.sampled_from(sorted(WAYS)))
@example(
    Net(("static", False, [("at", 3), ("at", 1)], ("at", 1), ("pool", "first", ("fed",))), (4,), 1),
    "executor",
)
@example(
    Net(("switch", ("rows", ("at", 0)), ("at", 0), *2 * [("pool", "max", ("fed",))]), (3,), 1),
    "executor",
)
@example(Net(("loop", 1, ("at", 0), ("loop", 1, ("at", 1), ("at", 1))), (1,), 1), "exact")
@example(
    Net(
        (
            "loop",
            3,
            ("at", 0),
            ("cond", ("rows", ("at", 0)), ("unary", "tanh", ("at", 1)), ("weigh", ("at", 0))),
        ),
        (1,),
        1,
    ),
    "exact",
)
@example(
    Net(("switch", ("rows", ("at", 0)), ("at", 0), ("at", 0), ("weigh", ("at", 0))), (1,), 1),
    "executor",
)
@example(
    Net(
        ("if_else", ("at", 0), ("at", 0), ("loop", 2, ("at", 0), ("weigh", ("at", 0))), ("at", 1)),
        (2, 1),
        2,
    ),
    "padded",
)
@example(
    Net(
        (
            "static",
            False,
            [("at", 2)],
            ("at", 2),
            ("entries", "bounded", False, ("at", 1), ("at", 0)),
        ),
        (1, 0),
        2,
    ),
    "executor",
)
@example(
    Net(
        (
            "reading",
            ("fc", ("text",)),
            "average",
            ("at", 0),
            ("binary", "mul", ("at", 0), ("at", 1)),
        ),
        (2, 0, 3),
        1,
    ),
    "padded",
)
def test_values_and_gradients(net: Net, way: str) -> None:
    agree(net, WAYS[way], way)


ENTRIES = ("entries", 1, True, ("at", 2), ("at", 1))


@pytest.mark.slow
@examples(1)
@given(nets(2))
@example(
    Net(
        ("static", False, [("at", 2)], ("at", 3), ("entries", 2, True, ("at", 5), ("at", 2))),
        (1, 2),
        3,
    )
)
@example(
    Net(
        (
            "numbered",
            ENTRIES,
            ("switch", ("rows", ("at", 5)), ("at", 2), ("at", 0), ENTRIES),
            ("at", 0),
        ),
        (0, 4),
        0,
    )
)
@example(Net(("entries", 2, False, ("at", 1), ("pool", "last", ("fed",))), (1, 4, 0), 3))
@example(Net(("pool", "sum", ("rnn", ("fed",), ("at", 0), False, ("at", 0))), (2,), 1))
# a word that the loop does not read
@example(Net(("pool", "sum", ("rnn", ("fed",), ("at", 5), False, ("at", 1))), (1, 4), 2))
def test_driven_by_python(net: Net) -> None:
    agree(net, driven, "driven by Python")


@examples(6)
@given(nets(3))
def test_checked_printed_and_copied(net: Net) -> None:
    main, _, loss, _ = written(net)
    desc = main.desc
    verify(desc, lookup)
    assert text.parse(str(main)) == desc == main.clone().desc
    assert jsonio.from_json(jsonio.to_json(desc)) == desc
    data = proto.to_bytes(desc, attr_type)
    assert proto.to_bytes(proto.from_bytes(data), attr_type) == data
    for other in (
        main.clone(for_test=True),
        main._prune([loss]),
        main.clone(for_test=True)._prune([loss]),
    ):
        verify(other.desc, lookup)
        assert text.parse(str(other)) == other.desc


# these drop what trains
PREDICTION = ("is_test", "inference", "fuse_batch_norm", "fuse_conv_affine", "prune")
TRAINING = sorted(set(passes.PASSES) - set(PREDICTION))


@examples(1)
@given(nets(DEPTH), st.permutations(TRAINING), st.permutations(PREDICTION))
def test_every_pass(net: Net, training: list[str], prediction: list[str]) -> None:
    """One after another, in any order: what is kept keeps its value."""
    main, _, loss, grads = written(net)
    names = [n for n in (loss.name, *grads) if n]
    for program, kept, kinds in (
        (main, names, training),
        (main.clone(for_test=True), names[:1], prediction),
    ):
        result = passes.run(",".join(kinds), program.desc, state(net), kept)
        got, want = literal(net, result.desc, kept, result.params), literal(net, program, kept)
        for name, a, b in zip(kept, got, want, strict=True):
            np.testing.assert_allclose(
                plain(a), plain(b), rtol=1e-5, atol=1e-6, err_msg=f"{kinds}: {name}"
            )
