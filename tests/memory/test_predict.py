"""The prediction of a compiled step: what is fused away, what is written, in which order; and the compiler's own figures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import fluidjax as fluid
from benchmarks import fluid_models
from fluidjax.errors import UnsupportedError
from fluidjax.memory import graph, hlo, schedule
from fluidjax.memory.fusion import MOST_READS, fuse
from fluidjax.memory.predict import predict

K = 1000  # elements of the vectors below, of four bytes each
V = jax.ShapeDtypeStruct((K,), jnp.float32)
M = jax.ShapeDtypeStruct((40, 40), jnp.float32)  # 6,400 bytes


def hlo_of(f: Callable[..., Any], *types: Any, **options: Any) -> str:
    return jax.jit(f, **options).lower(*types).as_text(dialect="hlo")


def fused(text: str) -> Any:
    module = hlo.parse(text)
    return fuse(graph.build(module, module.entry, lambda name: 0))


def kept(f: Callable[..., Any], *types: Any) -> list[str]:
    """Opcodes of the values that take memory."""
    return [v.opcode for v in fused(hlo_of(f, *types)).reads]


def test_an_elementwise_chain_is_one_value():
    assert kept(lambda x: jnp.tanh(x * 2 + 1) - x, V) == ["subtract"]
    assert predict(hlo_of(lambda x: jnp.tanh(x * 2 + 1) - x, V)) == 2 * 4 * K


def test_products_are_written_and_what_lies_between_is_not():
    assert kept(lambda a, b: jnp.maximum(a @ b, 0) + 1, M, M) == ["dot", "add"]


def test_what_a_product_reads_is_written():
    assert kept(lambda a, b: (a + 1) @ b, M, M) == ["add", "dot"]


def test_cheap_values_are_computed_twice_and_dear_ones_once():
    def two(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: (f(x).reshape(10, 100).sum(1), f(x)[:10] * 3)

    assert "exponential" in kept(lambda x: (jnp.exp(x) * 2, jnp.exp(x) * 3), V)
    assert kept(lambda x: ((x + 1) * 2, (x + 1) * 3), V) == ["multiply", "multiply"]
    assert kept(two(lambda x: x + 1), V).count("add") == 1  # a reduction does not share what it computes


def test_a_reduction_computes_what_it_alone_reads():
    assert kept(lambda x: jnp.sum((x + 1) * x), V) == ["reduce"]


def test_a_pad_is_not_computed_twice():
    assert kept(lambda x: jnp.pad(x, 1)[:-2] * 2, V) == ["multiply"]
    assert kept(lambda x: jnp.pad(x, 1)[:-2] + jnp.pad(x, 1)[2:], V) == ["pad", "add"]


def test_a_value_that_takes_memory_anyway_is_read_if_it_reads_more_than_it_writes():
    def f(a: Any, b: Any, w: Any) -> Any:
        both = a @ w + b @ w
        return both @ w, both * 2

    reads = fused(hlo_of(f, M, M, M)).reads
    (twice,) = (v for v in reads if v.opcode == "multiply")
    assert [v.opcode for v in reads[twice]] == ["add"]

    def g(a: Any, w: Any) -> Any:
        one = a @ w + 1
        return one @ w, one * 2

    reads = fused(hlo_of(g, M, M)).reads
    (twice,) = (v for v in reads if v.opcode == "multiply")
    assert [v.opcode for v in reads[twice]] == ["dot"]


def test_a_convolution_reads_its_operands_channels_last():
    x, w = jax.ShapeDtypeStruct((2, 3, 8, 8), jnp.float32), jax.ShapeDtypeStruct((4, 3, 3, 3), jnp.float32)

    def conv(layout: str, x: Any, w: Any, filters: str = "OIHW") -> Any:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=(layout, filters, layout))

    assert kept(partial(conv, "NCHW"), x, w) == ["transpose", "transpose", "convolution", "transpose"]
    last = jax.ShapeDtypeStruct((2, 8, 8, 3), jnp.float32)
    assert kept(partial(conv, "NHWC"), last, w) == ["transpose", "convolution"]
    hwio = jax.ShapeDtypeStruct((3, 3, 3, 4), jnp.float32)
    assert kept(partial(conv, "NHWC", filters="HWIO"), last, hwio) == ["convolution"]


def test_equal_values_are_one_and_unneeded_ones_none():
    assert kept(lambda a, b: (a @ b) @ (a @ b), M, M) == ["dot", "dot"]
    assert kept(lambda a, b: (a @ b, b @ a)[0], M, M) == ["dot"]


def test_a_donated_argument_is_written_over():
    update = lambda p, g: p - 0.1 * g  # noqa: E731
    assert predict(hlo_of(update, V, V)) == 3 * 4 * K
    assert predict(hlo_of(update, V, V, donate_argnums=0)) == 2 * 4 * K


def test_a_donated_argument_that_is_read_later_keeps_its_old_value():
    """w, x, h, the new w, and one more product: the new w needs a place of its own where the old one is read after it."""

    def step(last: str, w: Any, x: Any) -> Any:
        h = x @ w
        new = w - h
        return new, (h @ new) @ {"w": w, "x": x}[last]

    assert predict(hlo_of(partial(step, "w"), M, M)) == predict(hlo_of(partial(step, "x"), M, M)) == 6400 * 5
    assert predict(hlo_of(partial(step, "w"), M, M, donate_argnums=0)) == 6400 * 5
    assert predict(hlo_of(partial(step, "x"), M, M, donate_argnums=0)) == 6400 * 4


def test_a_dying_operand_is_written_over():
    chain = lambda a: jnp.tanh(jnp.tanh(a @ a) @ a)  # noqa: E731
    assert predict(hlo_of(chain, M)) == 6400 * 3  # a, a product's operand and its result


def test_a_loop_counts_what_its_body_needs():
    def body(i: Any, x: Any) -> Any:
        return (x[:, None] * x[None, :]) @ x

    n = jax.ShapeDtypeStruct((50,), jnp.float32)
    f = lambda x: jax.lax.fori_loop(0, 7, body, x)  # noqa: E731
    assert predict(hlo_of(f, n)) >= 50 * 50 * 4
    assert predict(hlo_of(lambda x: body(0, x), n)) == 50 * 4 * 2 + 50 * 50 * 4


def test_the_order_is_depth_first():
    def f(a: Any, b: Any) -> Any:
        left = (a @ b) @ b
        right = (b @ a) @ a
        return left @ right

    found = fused(hlo_of(f, M, M))
    place = {v: at for at, v in enumerate(schedule.order(found))}
    reads = {place[v]: sorted(place[o] for o in r if o in place) for v, r in found.reads.items()}
    assert reads == {0: [], 1: [0], 2: [], 3: [2], 4: [1, 3]}  # one side is finished before the other begins


def test_of_two_sides_the_one_with_more_readers_behind_it_goes_first():
    def f(a: Any, b: Any) -> Any:
        small = a @ b
        large = (b @ a) @ b
        return small @ (large @ (b @ a))

    found = fused(hlo_of(f, M, M))
    sequence = schedule.order(found)
    (small,) = (v for v in found.reads if v.operands == found.graph.parameters)
    assert sequence.index(small) == len(sequence) - 2


def test_a_long_chain_of_shared_sums_stays_linear():
    def f(x: Any, w: Any) -> Any:
        outs = []
        for _ in range(3 * MOST_READS):
            x = x + x @ w
            outs.append(x @ w)
        return outs

    found = fused(hlo_of(f, M, M))
    assert max(len(r) for r in found.reads.values()) <= MOST_READS + 1


def test_text_that_is_no_hlo_is_refused():
    with pytest.raises(UnsupportedError, match="prints a traced step in a form"):
        predict("module @jit_f {}")
    with pytest.raises(UnsupportedError, match="prints an instruction that the memory report cannot read: nonsense"):
        predict("HloModule m\n\nENTRY main {\n  nonsense\n}\n")


def test_types_of_hlo():
    assert hlo.nbytes("f32[2,3]{1,0}") == 24 and hlo.nbytes("pred[5]{0}") == 5 and hlo.nbytes("bf16[]") == 2
    assert hlo.nbytes("(s64[], (u8[4]{0}, c64[2]{0}))") == 8 + 4 + 16 and hlo.nbytes("f8e4m3fn[8]{0}") == 8
    assert hlo.rank("f32[1,3,1,2]") == 2


MODELS = {
    "lenet": (fluid_models.lenet, lambda: fluid.optimizer.Adam(1e-3)),
    "resnet18": (fluid_models.resnet18, lambda: fluid.optimizer.Momentum(1e-2, 0.9)),
    "transformer": (partial(fluid_models.transformer, depth=4), lambda: fluid.optimizer.Adam(1e-3)),
}
CASES = [
    ("lenet", 8), ("lenet", 64),
    pytest.param("resnet18", 8, marks=pytest.mark.slow),
    pytest.param("transformer", 8, marks=pytest.mark.slow),
]  # fmt: skip


@pytest.mark.parametrize("name, batch", CASES)
def test_within_a_quarter_of_the_compiler(name, batch):
    network, optimizer = MODELS[name]
    main, _, loss = fluid_models.build(network, optimizer())
    report = main.memory_report(batch_size=batch, fetch_list=[loss])
    if "memory-optimised" not in report.compiled:
        pytest.skip("the memory-optimised scheduler is the CPU's")
    assert report.fused == pytest.approx(report.compiled["memory-optimised"].total, rel=0.25)
