"""A worker of a fleet of Paddle 2, and the same training in one process.

python -m fluidjax launch --nproc 2 fleet2_trainers.py OUT KIND...
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import fluidjax as fluid
from fluidjax.paddle import distributed as dist
from fluidjax.paddle.distributed import fleet

STEPS, BATCH = 8, 8
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "merged": {"gradient_merge": True, "gradient_merge_configs": {"k_steps": 2}},
    "synchronised": {"sync_batch_norm": True},
    "sharded": {"sharding": True},
    "half": {"fp16_allreduce": True},
    "adaptive": {
        "adaptive_localsgd": True,
        "adaptive_localsgd_configs": {"init_k_steps": 2, "begin_step": 2},
    },
    "mixed": {
        "amp": True,
        "amp_configs": {"init_loss_scaling": 8},
        "lamb": True,
        "gradient_merge": True,
        "gradient_merge_configs": {"k_steps": 2},
    },
    "local": {"localsgd": True, "localsgd_configs": {"k_steps": 2, "begin_step": 1}},
}


def net(kind: str, minimize: Any) -> tuple[fluid.Program, fluid.Program, Any]:
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x, y = fluid.data("x", [None, 6]), fluid.data("y", [None, 1])
        h = fluid.layers.fc(x, 4, act="tanh")
        if kind == "synchronised":
            h = fluid.layers.batch_norm(h)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(h, 1), y))
        minimize(loss)
    return main, startup, loss


def optimizer(kind: str) -> Any:
    return fluid.optimizer.SGD(0.1) if kind in ("local", "adaptive") else fluid.optimizer.Adam(0.05)


def batches(part: int = 0, parts: int = 1) -> list[dict[str, np.ndarray]]:
    """Part `part` of `parts` of every step's batch."""
    r = np.random.RandomState(3)
    rows = slice(part * BATCH // parts, (part + 1) * BATCH // parts)
    whole = [(r.randn(BATCH, 6).astype("f4"), r.randn(BATCH, 1).astype("f4")) for _ in range(STEPS)]
    return [{"x": x[rows], "y": y[rows]} for x, y in whole]


def values(main: fluid.Program, scope: fluid.Scope) -> dict[str, np.ndarray]:
    return {
        v.name: scope.get(v.name) for v in main.list_vars() if v.persistable and v.type != "RAW"
    }


def first_values(main: fluid.Program) -> dict[str, np.ndarray]:
    r = np.random.RandomState(11)
    return {
        p.name: r.uniform(-0.5, 0.5, p.shape).astype("f4")
        for p in main.global_block().all_parameters()
    }


def begun(made: Any) -> fluid.Scope:
    """A scope after the startup program, with parameters that are the same in every process."""
    scope = fluid.Scope()
    fluid.Executor(fluid.CPUPlace()).run(made[1], scope=scope)
    for name, value in first_values(made[0]).items():
        for held in (name, name + "@SNAPSHOT"):
            if scope.find_var(held) is not None:
                scope.var(held).set(value)
    return scope


def train(made: Any, feeds: Any) -> dict[str, np.ndarray]:
    scope, exe = begun(made), fluid.Executor(fluid.CPUPlace())
    losses = [exe.run(made[0], feed, [made[2]], scope=scope)[0] for feed in feeds]
    return {"loss": np.array(losses), **values(made[0], scope)}


def worker(kind: str) -> dict[str, np.ndarray]:
    strategy = fleet.DistributedStrategy()
    for name, value in KINDS[kind].items():
        setattr(strategy, name, value)
    made = net(
        kind, lambda loss: fleet.distributed_optimizer(optimizer(kind), strategy).minimize(loss)
    )
    return train(made, batches(fleet.worker_index(), fleet.worker_num()))


def together() -> Mapping[str, Any]:
    """paddle.distributed's ops, and fleet.util."""
    main, rank = fluid.Program(), dist.get_rank()
    names = {}
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        given = fluid.data("x", [2, 3])
        for op in ("SUM", "MAX", "MIN", "PROD"):
            names["all " + op] = v = fluid.layers.assign(given)
            dist.all_reduce(v, getattr(dist.ReduceOp, op))
            names["to 1 " + op] = v = fluid.layers.assign(given)
            dist.reduce(v, 1, getattr(dist.ReduceOp, op))
        names["broadcast"] = v = fluid.layers.assign(given)
        dist.broadcast(v, 1)
        gathered: list[Any] = []
        dist.all_gather(gathered, given)
        names.update({f"gathered {i}": v for i, v in enumerate(gathered)})
        names["scattered"] = v = fluid.layers.assign(given)
        dist.scatter(v, [given * 2.0, given * 3.0], src=1)
        dist.barrier()
    exe = fluid.Executor(fluid.CPUPlace())
    found = exe.run(
        main, {"x": np.arange(6, dtype="f4").reshape(2, 3) + 10 * rank - 2}, list(names.values())
    )
    fleet.barrier_worker()
    return {
        **dict(zip(names, found, strict=True)), "util sum": fleet.util.all_reduce(np.array([[1, 2], [3, rank]])),
        "util max": fleet.util.all_reduce([0.5, float(rank)], "max"), "util gather": np.array(fleet.util.all_gather(rank + 5)),
        "files": np.array(fleet.util.get_file_shard(list("abcde"))), "who": np.array([dist.get_rank(), dist.get_world_size()]),
    }  # fmt: skip


if __name__ == "__main__":
    fleet.init(is_collective=True)
    for kind in sys.argv[2:]:
        np.savez(Path(sys.argv[1]) / f"{kind}-{fleet.worker_index()}.npz", **worker(kind))
    np.savez(Path(sys.argv[1]) / f"together-{fleet.worker_index()}.npz", **together())
