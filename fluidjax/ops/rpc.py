"""Ops of a parameter-server job: they communicate with other processes, so only a job runs them.

DistributeTranspiler writes them and dist/ implements them; a step of one process refuses them
(lower/control.py). Splitting and choosing are local, so they are ordinary ops.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..errors import ShapeError
from . import loops
from .infer import Spec
from .registry import Array, Attr, Ints, control_op, op
from .traits import Runs, mixes

_ENDPOINT = "127.0.0.1:6164"  # Paddle's default of every endpoint
_STRINGS: tuple[str, tuple[str, ...]] = ("STRINGS", ())
_EPMAP = {"epmap": ("STRINGS", (_ENDPOINT,)), "trainer_id": ("INT", 0)}
_BARRIER = {"endpoints": ("STRINGS", (_ENDPOINT,)), "trainer_id": ("INT", 0)}


def _remote(kind: str, doc: str, ins: str = "", outs: str = "", **attrs: tuple[Any, ...]) -> None:
    control_op(
        kind,
        ins=ins,
        outs=outs,
        attrs={n: Attr(n, *given) for n, given in attrs.items()},
        doc=doc,
        runs=Runs.REMOTE,
    )


_remote(
    "send", "X goes to the pservers of epmap; Out = a token that later ops wait for.", "X*", "Out*", **_EPMAP,
    sections=("LONGS", ()), send_varnames=_STRINGS, num=("INT", 0), merge_add=("BOOLEAN", False), use_send_handler=("BOOLEAN", True),
)  # fmt: skip
_remote(
    "recv", "Out = the values that the pservers of epmap hold.", "X*", "Out*", epmap=_STRINGS, trainer_id=("INT", 0),
    recv_varnames=_STRINGS, varnames=_STRINGS, with_barrier=("BOOLEAN", True), do_not_run=("INT", 0),
)  # fmt: skip
_remote(
    "send_barrier",
    "Out = a token: all of X has been sent by this trainer.",
    "X*",
    "Out*",
    **_BARRIER,
    half_async=("BOOLEAN", False),
)
_remote(
    "fetch_barrier",
    "Out = a token: this trainer has received all that it asked for.",
    "X*?",
    "Out*",
    **_BARRIER,
)
_remote(
    "listen_and_serv",
    "Serve the variables of X: merge what trainers send, run optimize_blocks, answer what they ask for.",
    "X*",
    **{name: ("INT", -1) for name in ("lr_decay_block_id", "checkpint_block_id", "pserver_id")},
    **{f"rpc_{what}_thread_num": ("INT", 1) for what in ("get", "send", "prefetch")},
    endpoint=("STRING", _ENDPOINT), Fanin=("INT", 1), optimize_blocks=("BLOCKS", ()), distributed_mode=("INT", 0),
    dc_asgd=("BOOLEAN", False),
    **{name: _STRINGS for name in ("grad_to_block_id", "prefetch_var_name_to_block_id", "sparse_grad_to_param")},
)  # fmt: skip
_remote("prefetch", "Out[i] = the rows X[i] of the table on pserver i.", "X*", "Out*", **_EPMAP)
_remote(
    "distributed_lookup_table", "Outputs[i] = the rows Ids[i] of the table W, whose blocks the pservers hold.", "Ids* W", "Outputs*",
    table_names=("STRINGS", ("",)), height_sections=("LONGS", ()), endpoints=("STRINGS", (_ENDPOINT,)), trainer_id=("INT", 0),
    padding_idx=("LONG", -1), dtype=("INT", 5), lookup_table_version=("STRING", "lookup_table"),
)  # fmt: skip
_remote(
    "lookup_sparse_table", "Out = the rows of W for Ids; a row that is missing is made.", "W Ids", "Out",
    auto_grown_table=("BOOLEAN", True), is_test=("BOOLEAN", False), padding_idx=("LONG", -1),
)  # fmt: skip
_remote(
    "split_selected_rows",
    "Out[i] = the rows of X in the i-th of height_sections.",
    "X",
    "Out*",
    height_sections=("LONGS", ()),
)
_remote(
    "split_ids",
    "Out[i] = the different ids of Ids that leave i when divided by the number of Out.",
    "Ids*",
    "Out*",
)
_remote(
    "merge_ids",
    "Out[i] = the rows of X for Ids[i]; Rows: the ids of the rows of X.",
    "Ids* Rows* X*",
    "Out*",
)
_remote(
    "checkpoint_notify", "The pservers of epmap save lookup_table (an attribute) = their shard, below dir.",
    dir=("STRING",), lookup_table=("STRING",), epmap=("STRINGS", (_ENDPOINT,)), trainer_id=("INT", 0),
)  # fmt: skip


def _sections(X: Spec, *, sections: Ints = (), num: int = 0) -> tuple[Spec, ...]:
    return tuple(Spec((n, *X.shape[1:]), X.dtype) for n in sections)


@op(outs="Out*", infer=_sections, rows=mixes("X"))
def split_byref(X: Array, *, sections: Ints = (), num: int = 0):
    """Out[i] = the next sections[i] rows of X."""
    if sum(sections) != X.shape[0] or min(sections, default=0) < 0:
        raise ShapeError(
            f"op 'split_byref' cuts {list(sections)}, {sum(sections)} rows in all, from a tensor"
            f" of {X.shape[0]} rows"
        )
    ends = [sum(sections[: i + 1]) for i in range(len(sections))]
    return [X[end - n : end] for n, end in zip(sections, ends, strict=True)]


@op(outs="Out", infer=lambda X, TrainerId: X[0], rows=mixes("X"))
def ref_by_trainer_id(X: list[Array], TrainerId: Array):
    """Out = X[TrainerId]."""
    return loops.switch(jnp.asarray(TrainerId).reshape(()), [lambda x=x: jnp.asarray(x) for x in X])
