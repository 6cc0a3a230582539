"""nccl2 mode: the startup program joins the trainers of a job; the main program only records the
trainers.
"""

from __future__ import annotations

from typing import Any

from ..errors import FluidValueError
from ..graph.program import Program
from ..ir import edit
from ..ir.desc import ProgramDesc, VarDesc
from .config import DistributeTranspilerConfig
from .making import Maker
from .refused import TranspileAssertion
from .request import current_of, endpoints_of, hierarchy, rank_of


def transpile_nccl2(
    config: DistributeTranspilerConfig,
    main: Program,
    startup: Program,
    trainer_id: Any,
    trainers: Any,
    current_endpoint: str,
) -> None:
    """Transpile in place. trainers: the string of the trainers' endpoints; the first is the
    coordinator.

    Raises TranspileAssertion for trainers that are not a string and for groups that do not divide
    them; FluidValueError for malformed endpoints, a current endpoint that is not among them, a
    trainer_id out of range, or a program transpiled before.
    """
    if not isinstance(trainers, str):
        raise TranspileAssertion(
            "in nccl2 mode trainers is the string of their endpoints, 'ip:port,ip:port', not"
            f" {trainers!r}"
        )
    endpoints = endpoints_of(trainers, "trainers")
    groups = config.hierarchical_allreduce_inter_nranks
    if config.use_hierarchical_allreduce:
        hierarchy(len(endpoints), groups)
    if isinstance(trainer_id, int) and trainer_id < 0:
        raise FluidValueError(
            f"must set trainer_id > 0: it is {trainer_id}, and the trainers are 0 to"
            f" {len(endpoints) - 1}"
        )
    current_of(current_endpoint, endpoints)
    new = join_trainers(startup.desc, config, rank_of(trainer_id, len(endpoints)), endpoints)
    main.update_info(
        trainers_endpoints=tuple(endpoints),
        nccl_comm_num=config.nccl_comm_num,
        use_hierarchical_allreduce=bool(config.use_hierarchical_allreduce),
        hierarchical_allreduce_inter_nranks=groups if config.use_hierarchical_allreduce else 0,
    )
    startup.set_desc(new)


def join_trainers(
    startup: ProgramDesc,
    config: DistributeTranspilerConfig,
    trainer_id: int,
    endpoints: tuple[str, ...],
) -> ProgramDesc:
    """`startup` with the op that joins the trainers, and a variable for the id of every ring."""
    if any(op.type == "gen_nccl_id" for op in startup.blocks[0].ops):
        raise FluidValueError(
            "this startup program is transpiled already; transpile one that is freshly built, or a"
            " clone from before"
        )
    rings = range(config.nccl_comm_num)
    names = ["NCCLID", *(f"NCCLID_{i}" for i in rings[1:])]
    if config.use_hierarchical_allreduce:
        names += [f"Hierarchical_{side}_NCCLID_{i}" for i in rings for side in ("inter", "exter")]
    op = Maker(1 + edit.max_uid(startup)).op(
        "gen_nccl_id", {}, {"NCCLID": "NCCLID"}, trainers=endpoints, trainer_id=trainer_id, nccl_comm_num=config.nccl_comm_num,
        use_hierarchical_allreduce=config.use_hierarchical_allreduce,
        hierarchical_allreduce_inter_nranks=config.hierarchical_allreduce_inter_nranks,
    )  # fmt: skip
    vars = [VarDesc(name, kind="RAW", persistable=True) for name in names]
    return edit.add_vars(edit.replace_ops(startup, 0, [*startup.blocks[0].ops, op]), 0, vars)
