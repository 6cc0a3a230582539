"""How variables are cut and dealt: against Paddle 1.8.5's recorded outcomes, and by what must hold
for any.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax.errors import FluidTypeError, FluidValueError
from fluidjax.transpiler import HashName, PSDispatcher, RoundRobin, SizeBalanced, slice_variable
from fluidjax.transpiler.slicing import block_shapes, block_sizes

from .recordings import tables


def test_slices_equal_paddles() -> None:
    rows = tables()["tables"]["slice_variable"]["rows"]
    assert len(rows) > 1000
    for shape, count, least, want in rows:
        assert slice_variable([SimpleNamespace(name="v", shape=shape)], count, least) == want


@given(st.lists(st.integers(1, 40), min_size=1, max_size=3), st.integers(1, 9), st.integers(1, 400))
def test_blocks_are_whole_rows_that_cover_everything(
    shape: list[int], count: int, least: int
) -> None:
    shapes = block_shapes(shape, count, least)
    assert 1 <= len(shapes) <= count
    assert sum(s[0] for s in shapes) == shape[0]
    assert all(s[0] > 0 and list(s[1:]) == shape[1:] for s in shapes)
    assert [math.prod(s) for s in shapes] == block_sizes(shape, count, least)
    assert all(a[0] == shapes[0][0] for a in shapes[:-1])


@pytest.mark.parametrize(
    ("shape", "count", "least"), [([4], 0, 1), ([4], 1, 0), ([-1, 3], 2, 1), ([0], 1, 1)]
)
def test_what_cannot_be_cut(shape: list[int], count: int, least: int) -> None:
    with pytest.raises(FluidValueError, match="cut into"):
        block_sizes(shape, count, least)


def test_round_robin_equals_paddles() -> None:
    for row in tables()["tables"]["round_robin"]:
        dispatcher = RoundRobin([f"ep{i}" for i in range(row["n"])])
        names = row["names"]
        assert dispatcher.dispatch(names[:5]) == row["first5"]
        assert dispatcher.dispatch(names[5:9]) == row["next4_no_reset"]
        dispatcher.reset()
        assert dispatcher.dispatch(names[:3]) == row["after_reset3"]
    assert RoundRobin(["e0", "e1"]).eps == tables()["tables"]["eps_property"]


class Named:
    """An object whose name is a method, which is all that 1.8.5's HashName took."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name


def test_hash_name_takes_variables_strings_and_objects_with_a_name() -> None:
    names = ["fc_0.w_0", "fc_0.b_0", "emb_w", "conv2d_0.w_0.block1"]
    block = fluid.Program().global_block()
    variables = [block.create_var(name=n, shape=[2], dtype="float32") for n in names]
    eps = ["a:1", "b:1", "c:1"]
    dealt = HashName(eps).dispatch(names)
    assert (
        HashName(eps).dispatch(variables)
        == HashName(eps).dispatch([Named(n) for n in names])
        == dealt
    )
    with pytest.raises(FluidTypeError, match="deals variables or names, not int"):
        HashName(eps).dispatch([3])


@pytest.mark.slow
def test_hash_name_deals_alike_in_every_process() -> None:
    code = (
        "from fluidjax.transpiler.ps_dispatcher import stable_hash; print([stable_hash(f'w_{i}') %"
        " 7 for i in range(50)])"
    )
    envs = [{**os.environ, "PYTHONHASHSEED": seed} for seed in ("1", "2")]
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
        )
        for env in envs
    ]
    assert runs[0].stdout == runs[1].stdout
    assert set(eval(runs[0].stdout)) == set(range(7))


def test_hash_name_spreads() -> None:
    dealt = HashName([f"e:{i}" for i in range(4)]).dispatch([f"fc_{i}.w_0" for i in range(4000)])
    counts = [dealt.count(f"e:{i}") for i in range(4)]
    assert min(counts) > 900


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=30), st.integers(1, 6))
def test_size_balanced_stays_within_one_item_of_even(sizes: list[int], n: int) -> None:
    eps = [f"e:{i}" for i in range(n)]
    dealt = SizeBalanced(eps).dispatch(
        [SimpleNamespace(name=f"v{i}", shape=(s,)) for i, s in enumerate(sizes)]
    )
    load = [sum(s for s, e in zip(sizes, dealt, strict=True) if e == ep) for ep in eps]
    assert sum(load) == sum(sizes)
    assert max(load) - min(load) <= max(sizes)


def test_size_balanced_goes_on_and_is_reset() -> None:
    dispatcher = SizeBalanced(["a:1", "b:1"])
    big, small = SimpleNamespace(name="w", shape=(100, 10)), SimpleNamespace(name="b", shape=(10,))
    assert dispatcher.dispatch([small, big]) == ["b:1", "a:1"]
    assert dispatcher.dispatch([small, small]) == ["b:1", "b:1"]
    dispatcher.reset()
    assert dispatcher.dispatch([small, small]) == ["a:1", "b:1"]
    assert dispatcher.dispatch(["a name", "another"]) == ["a:1", "b:1"]


@pytest.mark.parametrize("kind", [RoundRobin, HashName, SizeBalanced])
def test_no_endpoints(kind: type[PSDispatcher]) -> None:
    with pytest.raises(FluidValueError, match=f"{kind.__name__} has no endpoints"):
        kind([]).dispatch(["w"])
    with pytest.raises(FluidTypeError, match="takes a list of endpoints"):
        kind("a:1,b:1")  # type: ignore[arg-type]


def test_a_dispatcher_needs_its_method() -> None:
    with pytest.raises(NotImplementedError, match="needs a method dispatch"):
        PSDispatcher(["a:1"]).dispatch(["w"])
