"""JAX's loops and branches, also within a shard_map of the caller's, where a type records which
mesh axes a value varies over.

There a loop must begin with the type that it ends with, and all branches must end with one type: an
initial zero is equal on all devices, a sum of rows is not. Arguments and results are those of JAX's
function of the same name; if no mesh axis is manual, it is exactly that function. A test checks
that all loops of ops use these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import lax


def axes_of(value: Any) -> frozenset[str]:
    """The mesh axes over which the value, or any of its parts, varies."""
    found: set[str] = set()
    for leaf in jax.tree.leaves(value):
        kind = leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf)
        manual = getattr(kind, "manual_axis_type", None)  # earlier versions of jax name it `vma`
        found.update((getattr(kind, "vma", None) or ()) if manual is None else manual.varying)
    return frozenset(found)


def varying(value: Any, axes: frozenset[str]) -> Any:
    """A value marked as varying over these axes."""
    more = tuple(sorted(axes - axes_of(value)))
    return lax.pcast(value, more, to="varying") if more else value


def is_mapped() -> bool:
    """Whether this is traced within a shard_map with varying types (not with check_vma=False)."""
    axes = jax.sharding.get_abstract_mesh().manual_axes
    return bool(axes) and bool(axes_of(jax.eval_shape(lambda: lax.axis_index(axes[0]))))


def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> Any:
    if is_mapped():
        init = _widened(init, lambda carry: _first_step(f, carry, xs)[0])
    return lax.scan(f, init, xs, length, reverse, unroll)


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    if not is_mapped():
        return lax.while_loop(cond_fun, body_fun, init_val)

    def step(carry: Any) -> Any:
        # if some devices iterate longer than others, all changing values vary
        decides = axes_of(jax.eval_shape(cond_fun, carry))
        return jax.tree.map(lambda x: varying(x, decides), body_fun(carry))

    return lax.while_loop(cond_fun, step, _widened(init_val, step))


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    if is_mapped():
        decides = axes_of((lower, upper))
        init_val = jax.tree.map(lambda x: varying(x, decides), init_val)
        init_val = _widened(init_val, lambda carry: body_fun(lower, carry))
    return lax.fori_loop(lower, upper, body_fun, init_val)


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    return lax.cond(pred, *_equally_varying(pred, (true_fun, false_fun), operands), *operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    return lax.switch(index, _equally_varying(index, branches, operands), *operands)


def _first_step(f: Callable[..., Any], carry: Any, xs: Any) -> Any:
    return f(
        carry,
        jax.tree.map(
            lambda x: lax.index_in_dim(x, 0, keepdims=False) if x.shape[0] else _row(x), xs
        ),
    )


def _row(x: Any) -> Any:
    """The placeholder for a row of an array without rows."""
    return lax.full_like(x, 0, shape=x.shape[1:])


def _widened(init: Any, step: Callable[[Any], Any]) -> Any:
    """Initial values of a loop, varying over the mesh axes that the loop's results vary over."""
    while True:
        made, tree = jax.tree.flatten(jax.eval_shape(step, init))
        values = jax.tree.leaves(init)
        if len(made) != len(values):
            return init  # JAX raises the error for it
        new = [varying(value, axes_of(after)) for value, after in zip(values, made, strict=True)]
        if list(map(axes_of, new)) == list(map(axes_of, values)):
            return init
        init = jax.tree.unflatten(tree, new)


def _equally_varying(
    pred: Any, branches: Sequence[Callable[..., Any]], operands: Sequence[Any]
) -> list[Callable[..., Any]]:
    """The branches, with each result varying over the mesh axes over which any branch's varies."""
    if not is_mapped():
        return list(branches)
    types = [jax.tree.leaves(jax.eval_shape(branch, *operands)) for branch in branches]
    if len({len(found) for found in types}) > 1:
        return list(branches)  # JAX raises the error for it
    axes = [axes_of((pred, *found)) for found in zip(*types, strict=True)]

    def wide(branch: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            leaves, tree = jax.tree.flatten(branch(*given))
            return jax.tree.unflatten(
                tree, [varying(x, a) for x, a in zip(leaves, axes, strict=True)]
            )

        return run

    return [wide(branch) for branch in branches]
