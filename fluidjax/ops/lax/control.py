"""jax.scan, jax.while and jax.cond: control flow whose blocks are functions (blocks.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .. import loops
from ..control_interface import Call
from ..registry import Attr
from .blocks import BLOCK, Function, block_function, declare_block_op, only_block


def _scan(call: Call, counts: Sequence[int]) -> Function:
    attrs = call.op.attrs
    consts, carried, many = counts
    body = only_block(call)
    # a symbolic one is known by the rows that there are
    length = attrs["length"] if isinstance(attrs["length"], int) or not many else None

    def run(*values: Any) -> list[Any]:
        fixed, init, xs = (
            values[:consts],
            values[consts : consts + carried],
            values[consts + carried :],
        )

        def step(carry: Any, x: Any) -> Any:
            found = body(*fixed, *carry, *x)
            return tuple(found[:carried]), tuple(found[carried:])

        last, ys = loops.scan(
            step,
            tuple(init),
            tuple(xs),
            length,
            attrs.get("reverse", False),
            attrs.get("unroll", 1),
        )
        return [*last, *ys]

    return run


declare_block_op(
    "scan",
    ins="Consts* Init* Xs*",
    outs="Carry* Ys*",
    attrs=[
        *BLOCK,
        Attr("length", "SIZE"),
        Attr("reverse", "BOOLEAN", False),
        Attr("unroll", "INT", 1),
    ],
    doc=(
        "Carry, Ys[t] = sub_block(Consts, Carry of step t - 1, Xs[t]) for every t; before the first"
        " step Carry is Init."
    ),
    make=_scan,
)


def _while(call: Call, counts: Sequence[int]) -> Function:
    attrs = call.op.attrs
    of_cond, of_body, _ = counts
    holds = block_function(call, attrs["cond_block"].idx, attrs["cond_args"], attrs["cond_results"])
    body = block_function(call, attrs["body_block"].idx, attrs["body_args"], attrs["body_results"])

    def run(*values: Any) -> list[Any]:
        asked, fixed, init = (
            values[:of_cond],
            values[of_cond : of_cond + of_body],
            values[of_cond + of_body :],
        )

        def step(carry: Any) -> Any:
            new, goes_on = body(*fixed, *carry), holds(*asked, *carry)[0] if batched else None
            return (
                tuple(new)
                if goes_on is None
                else tuple(_where(goes_on, n, c) for n, c in zip(new, carry, strict=True))
            )

        def goes(carry: Any) -> Any:
            found = holds(*asked, *carry)[0]
            return jnp.any(found) if batched else found

        batched = jax.eval_shape(lambda *c: holds(*asked, *c)[0], *init).ndim > 0
        return list(loops.while_loop(goes, step, tuple(init)))

    return run


def _where(which: Any, new: Any, old: Any) -> Any:
    return jnp.where(which.reshape(which.shape + (1,) * (new.ndim - which.ndim)), new, old)


declare_block_op(
    "while",
    ins="CondConsts* BodyConsts* Init*",
    outs="Out*",
    attrs=[
        Attr("cond_block", "BLOCK"),
        Attr("cond_args", "STRINGS"),
        Attr("cond_results", "STRINGS"),
        Attr("body_block", "BLOCK"),
        Attr("body_args", "STRINGS"),
        Attr("body_results", "STRINGS"),
    ],
    doc="""Out = Init, then body_block(BodyConsts, Out) as long as cond_block(CondConsts, Out) holds.

    The condition of a loop under jax.vmap has an entry for each sample; those that have ended keep their values.""",
    make=_while,
    differentiable=False,
)


def _cond(call: Call, counts: Sequence[int]) -> Function:
    attrs, (_, operands) = call.op.attrs, counts
    each = len(attrs["results"]) // len(attrs["sub_blocks"])
    branches = [
        block_function(
            call,
            ref.idx,
            attrs["args"][i * operands : (i + 1) * operands],
            attrs["results"][i * each : (i + 1) * each],
        )
        for i, ref in enumerate(attrs["sub_blocks"])
    ]

    def run(index: Any, *values: Any) -> list[Any]:
        given = [lambda *v, branch=branch: tuple(branch(*v)) for branch in branches]
        if len(given) == 2:
            return list(loops.cond(index.astype(bool), given[1], given[0], *values))
        return list(loops.switch(index, given, *values))

    return run


declare_block_op(
    "cond",
    ins="Index* Operands*",
    outs="Out*",
    attrs=[Attr("sub_blocks", "BLOCKS"), Attr("args", "STRINGS"), Attr("results", "STRINGS")],
    doc="""Out = sub_blocks[Index](Operands); Index, an integer or a boolean, is clamped to the blocks that there are.

    args, results: those of the first block, then those of the second, and so on.""",
    make=_cond,
)


def _platform_dependent(call: Call, counts: Sequence[int]) -> Function:
    attrs, (operands,) = call.op.attrs, counts
    each = len(attrs["results"]) // len(attrs["sub_blocks"])

    def run(*values: Any) -> list[Any]:
        given: dict[str, Any] = {}
        for i, (ref, platforms) in enumerate(
            zip(attrs["sub_blocks"], attrs["platforms"], strict=True)
        ):
            names = (
                attrs["args"][i * operands : (i + 1) * operands],
                attrs["results"][i * each : (i + 1) * each],
            )
            branch = block_function(call, ref.idx, *names)
            given.update(
                dict.fromkeys(platforms.split(","), lambda *v, branch=branch: tuple(branch(*v)))
            )
        return list(lax.platform_dependent(*values, **given))

    return run


declare_block_op(
    "platform_dependent",
    ins="Operands*",
    outs="Out*",
    attrs=[
        Attr("sub_blocks", "BLOCKS"),
        Attr("args", "STRINGS"),
        Attr("results", "STRINGS"),
        Attr("platforms", "STRINGS"),
    ],
    doc="""Out = the block of the platform that the step is compiled for, of Operands. platforms: for each block "cpu", "cuda,rocm"
    or "default"; args and results are as those of jax.cond.""",
    make=_platform_dependent,
)
