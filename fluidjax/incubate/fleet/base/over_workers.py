"""over_workers: a collective op over arrays that the workers of a job hold in Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....devices.place import CPUPlace
from ....errors import FluidTypeError
from ....executor import Executor
from ....graph.program import Program, program_guard
from ....input import data
from ....state.scope import Scope


def over_workers(array: Any, op: str, count: int, **attrs: Any) -> np.ndarray:
    """The result of an op such as c_allreduce_sum on the workers' arrays. It is run as a program of
    its own, and every worker must call this.

    count: the number of workers; a single worker gets its own array. attrs: for c_allgather, whose
    result has one dimension. Raises FluidTypeError for anything but an array of numbers.
    """
    array = np.asarray(array)
    if not np.issubdtype(array.dtype, np.number):
        raise FluidTypeError(f"workers put numbers together, not {array.dtype}")
    if count == 1:
        return np.array(array)
    program = Program()
    with program_guard(program, Program()):
        x = data("x", [array.size], str(array.dtype))
        out = program.global_block().create_var(name="out", dtype=x.dtype, shape=[-1])
        program.global_block().append_op(
            type=op, inputs={"X": x}, outputs={"Out": out}, attrs={"ring_id": 0, **attrs}
        )
    (found,) = Executor(CPUPlace()).run(program, {"x": array.reshape(-1)}, [out], scope=Scope())
    return found if attrs else np.asarray(found).reshape(array.shape)


__all__ = ["over_workers"]
