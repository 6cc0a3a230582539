"""A fetched tensor array is a list of its entries, on one device and on several, as 1.8.5 gives it
(tried there).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidjax as fluid

from ..nets import fresh

X = np.arange(12, dtype="float32").reshape(4, 3)


def array(kind: str, x: Any) -> Any:
    layers = fluid.layers
    at = [layers.fill_constant([1], "int64", n) for n in range(4)]
    if kind == "loop":
        made, more = layers.create_array("float32"), layers.less_than(at[0], at[3])
        loop = layers.While(more)
        with loop.block():
            layers.array_write(x * layers.cast(at[0], "float32"), at[0], made)
            layers.increment(at[0])
            layers.less_than(at[0], at[3], cond=more)
        return made
    if kind == "empty":
        return layers.create_array("float32")
    made = layers.array_write(x, at[0])
    layers.array_write(
        layers.reduce_sum(x) if kind == "unlike" else x * 2.0, at[3 if kind == "gap" else 1], made
    )
    return made


WANT: dict[str, list[Any]] = {
    "plain": [X, X * 2], "unlike": [X, [66]], "gap": [X, None, None, X * 2], "empty": [], "loop": [X * 0, X, X * 2],
}  # fmt: skip


def values(found: Any) -> Any:
    return (
        [values(v) for v in found]
        if type(found) is list
        else None
        if found is None
        else np.asarray(found).tolist()
    )


@pytest.mark.parametrize("kind", WANT)
def test_it_is_a_list_of_its_entries(kind: str) -> None:
    with fresh() as (main, _):
        made = array(kind, fluid.data("x", [None, 3]))
    exe = fluid.Executor()
    for _ in range(2):
        (found,) = exe.run(main, feed={"x": X}, fetch_list=[made])
        assert type(found) is list and values(found) == values(WANT[kind])
        (tensors,) = exe.run(main, feed={"x": X}, fetch_list=[made], return_numpy=False)
        assert all(isinstance(t, fluid.LoDTensor) for t in tensors)
        assert values(tensors) == values([[] if v is None else v for v in WANT[kind]])
    several = fluid.CompiledProgram(main).with_data_parallel(places=fluid.cpu_places(2))
    (merged,) = exe.run(several, feed={"x": X}, fetch_list=[made])
    parts = {"unlike": [X, [15, 51]], "gap": [X, [], [], X * 2]}
    assert values(merged) == values(parts.get(kind, WANT[kind]))
    (apart,) = exe.run(several, feed={"x": X}, fetch_list=[made], return_merged=False)
    assert len(apart) == 2
    for rank, entries in enumerate(apart):
        half = X[2 * rank : 2 * rank + 2]
        each = {
            "plain": [half, half * 2],
            "unlike": [half, [half.sum()]],
            "gap": [half, None, None, half * 2],
            "empty": [],
        }
        assert values(entries) == values(each.get(kind, [half * 0, half, half * 2]))


def test_several_steps_in_one_call() -> None:
    with fresh() as (main, _):
        made = array("plain", fluid.data("x", [None, 3]))
    (found,) = fluid.Executor().run_steps(main, [{"x": X}, {"x": X + 1}], [made])
    assert values(found) == values([[X, X * 2], [X + 1, (X + 1) * 2]])
