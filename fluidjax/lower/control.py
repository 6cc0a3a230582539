"""Ops that are more than a function of arrays: they hold blocks, or talk to the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..errors import EnforceNotMet, MixesRows, UnsupportedError
from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc
from ..ops.ragged import Ragged
from ..ops.registry import traits
from ..ops.selected import SelectedRows
from ..ops.traits import Runs
from .env import Context, Env, read

RunBlock = Callable[[int, Env, Context], None]


def refuse_remote(desc: ProgramDesc) -> None:
    """Raises UnsupportedError for a program of a parameter-server job, naming its first op that talks to others."""
    for idx, op in walk.ops(desc):
        if traits(op.type).runs is Runs.REMOTE:
            raise UnsupportedError(
                f"op '{op.type}' of block {idx} belongs to a parameter-server job, and a program alone has nobody to talk to: "
                "run all programs of the job in this process with fluid.dist.LocalJob.of(transpiler), start the script with "
                "`python -m fluidjax launch`, or run the program as it was before transpile"
            )


def conditional_block(op: OpDesc, env: Env, ctx: Context, run_block: RunBlock) -> None:
    """Run the sub-block if the condition holds; what it writes outside keeps its old value otherwise.

    With ``is_scalar_condition`` the condition is one boolean; without, the block runs if any input has elements.
    """
    idx = op.attrs["sub_block"].idx
    if not op.attrs.get("is_scalar_condition", False):
        if all(exact_rows(op.type, n, read(env, n, op)).size for n in op.input("Input")):
            run_block(idx, env, ctx)
        return
    outer = set(ctx.desc.blocks[idx].vars)
    written = [n for n in walk.captured(ctx.desc, idx).writes if n not in outer]
    missing = [n for n in written if n not in env]
    if missing:
        raise EnforceNotMet(
            f"op 'conditional_block' writes {missing[0]!r}, which has no value for the case that its condition is false; "
            "give it one before the block"
        )
    (name,) = op.input("Cond")
    ragged = [n for n in written if isinstance(env[n], Ragged)]
    if ragged:
        raise UnsupportedError(f"op 'conditional_block' writes {ragged[0]!r}, which holds ragged rows; a block can write plain arrays")
    old = {n: jnp.asarray(exact_rows(op.type, n, env[n])) for n in written}

    def taken(values: dict[str, Any]) -> dict[str, Any]:
        inner = {**env, **values}
        run_block(idx, inner, ctx)
        inner.update({n: exact_rows(op.type, n, inner[n]) for n in written})
        return {n: jnp.asarray(inner[n], values[n].dtype).reshape(values[n].shape) for n in written}

    env.update(jax.lax.cond(read(env, name, op).reshape(()), taken, dict, old))


def exact_rows(kind: str, name: str, value: Any) -> Any:
    """The array of a value that may be ragged. Raises MixesRows for padded rows, UnsupportedError for sparse ones."""
    if isinstance(value, SelectedRows):
        raise UnsupportedError(f"op '{kind}' takes plain arrays, but {name!r} is sparse (SELECTED_ROWS)")
    if not isinstance(value, Ragged):
        return value
    if value.padded:
        raise MixesRows(f"op '{kind}' takes the rows of {name!r} as a whole, so it needs exact sizes")
    return value.rows


def print_op(op: OpDesc, env: Env, ctx: Context, run_block: RunBlock) -> None:
    """Print a value from inside the step, and pass it on."""
    (name,) = op.input("In")
    value = exact_rows(op.type, name, read(env, name, op))
    message = str(op.attrs.get("message") or "").replace("{", "{{").replace("}", "}}")
    if op.attrs.get("is_forward", True):
        jax.debug.print(message + " " + name + " {value}", value=value)
    for out in op.output("Out"):
        env[out] = env[name]


def delete_var(op: OpDesc, env: Env, ctx: Context, run_block: RunBlock) -> None:
    """Forget values; only running op by op gets here."""
    for name in op.reads:
        env.pop(name, None)


HANDLERS: dict[str, Callable[[OpDesc, Env, Context, RunBlock], None]] = {
    "conditional_block": conditional_block,
    "delete_var": delete_var,
    "print": print_op,
}
