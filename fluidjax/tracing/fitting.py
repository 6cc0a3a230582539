"""Fits JAX functions into a budget of memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import FluidTypeError
from ..functional import step_fn
from ..graph.program import Program
from .traced import Traced


def fit_memory(
    traced: Traced | Program,
    budget: int | float | str,
    fetch_list: Sequence[Any] = (),
    batch_size: int | None = None,
    feed_shapes: Mapping[str, Sequence[int]] | None = None,
) -> Callable[..., Any]:
    """A training step that stays within a budget of memory, because it recomputes values of its
    forward pass.

        step = fluid.fit_memory(fluid.trace(train, params, opt_state, x, y), "8GB")
        train = step.jit()
        print(step.budget_report)

    traced: a result of fluid.trace, whose step is called as the function was; or a program (also
    ``traced.main`` after minimize), whose step is that of :func:`fluidjax.step_fn` with this
    fetch_list. budget: bytes, or text such as "800MB" or "2GiB": the most that ``step.jit()``,
    which donates its state, may need by the compiler's own figure. batch_size, feed_shapes: values
    of open sizes, as in step_fn.

    The results are those of the step, except for rounding if XLA reorders sums. ``budget_report``
    prints the ways that were tried, and a table of the recomputed values. Within a jit of your own
    the step is ``step.inside``, and the jit takes ``compiler_options=step.compiler_options``: the
    options of XLA with which its bytes were counted.

    Raises FluidValueError for a budget that no way keeps, with the smallest figure found, and for a
    program without a backward pass; FluidTypeError for other arguments.
    """
    sizes: dict[str, Any] = {"batch_size": batch_size, "feed_shapes": feed_shapes}
    if isinstance(traced, Program):
        return step_fn(traced, list(fetch_list), budget=budget, **sizes)
    if not isinstance(traced, Traced):
        raise FluidTypeError(
            f"fit_memory takes what fluid.trace returned, or a program, not {type(traced).__name__}"
        )
    if fetch_list:
        raise FluidTypeError("fetch_list belongs to a program; a traced step returns its results")
    return traced.step(budget=budget, **sizes)
