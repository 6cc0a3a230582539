"""Op types of Paddle 1.8.5 that have no meaning here, each with the reason. The error for a program
that needs one quotes it.
"""

from __future__ import annotations

from collections.abc import Iterable

REASONS: dict[str, str] = {
    "talks to pslib or BoxPS, which are servers of their own; use fluid.DistributeTranspiler":
        "pull_box_sparse pull_sparse pull_sparse_v2 push_dense",
    "serves federated trainers or saves what pservers hold, by Paddle's own RPC; use fluid.DistributeTranspiler":
        "fl_listen_and_serv recv_save",
    "is for the integer kernels of MKL-DNN alone; quantise by the fake_quantize ops": "dequantize quantize requantize",
    "lists devices for parallel_do, an op that 1.8.5 has no more; use fluid.cpu_places or fluid.cuda_places": "get_places",
    "lays variables side by side in memory, which XLA does by itself; leave it out": "coalesce_tensor",
    "runs a program of Paddle's dynamic mode; run the program itself": "run_program",
}  # fmt: skip
WITHOUT_MEANING: dict[str, str] = {
    kind: reason for reason, kinds in REASONS.items() for kind in kinds.split()
}


def reasons(kinds: Iterable[str]) -> str:
    """The reasons for those of the given op types that have no meaning here, in brackets; empty if
    there are none.
    """
    found = [f"{kind} {WITHOUT_MEANING[kind]}" for kind in kinds if kind in WITHOUT_MEANING]
    return f" ({'; '.join(found)})" if found else ""
