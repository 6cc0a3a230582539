"""localsgd: workers update by themselves, and average what their parameters changed by after every k_steps runs."""

from __future__ import annotations

from .... import layers
from ....graph.program import Program, program_guard
from ....graph.variable import Parameter, Variable
from ....layers.branches import cond
from ....transpiler.collective import SNAPSHOT


def average_now_and_then(main: Program, startup: Program, workers: int, k_steps: int, begin_step: int) -> None:
    """Append to a program that updates: averaging in every run up to begin_step, then after every k_steps runs since the last.

    State: ``<param>@SNAPSHOT``, the last average; ``k_steps``, ``begin_step``, ``last_step``; the counter ``@STEP_COUNTER@``.
    """
    params = [p for p in main.global_block().all_parameters() if not getattr(p, "is_distributed", False)]
    with program_guard(startup), startup._optimized_guard([]):
        for param in params:
            layers.assign(startup.global_block().var(param.name), _snapshot(startup, param))
    kept = [(p, _snapshot(main, p)) for p in params]
    with program_guard(main, startup), main._optimized_guard([]):
        step = layers.autoincreased_step_counter(begin=1)
        every, begin, last = (
            layers.create_global_var(name=name, shape=[1], value=value, dtype="int64", persistable=True)
            for name, value in (("k_steps", k_steps), ("begin_step", begin_step), ("last_step", begin_step))
        )

        def average() -> None:
            block = main.current_block()
            for param, before in kept:
                block.append_op(type="elementwise_sub", inputs={"X": before, "Y": param}, outputs={"Out": param})
                block.append_op(type="c_allreduce_sum", inputs={"X": param}, outputs={"Out": param}, attrs={"ring_id": 0})
            for param, before in kept:
                block.append_op(type="scale", inputs={"X": param}, outputs={"Out": param}, attrs={"scale": 1.0 / workers})
                block.append_op(type="elementwise_sub", inputs={"X": before, "Y": param}, outputs={"Out": param})
                block.append_op(type="assign", inputs={"X": param}, outputs={"Out": before})
            layers.assign(step, last)

        cond(step > begin, lambda: cond(layers.equal(step - last, every), average), average)


def _snapshot(program: Program, param: Parameter) -> Variable:
    return program.global_block().create_var(
        name=param.name + SNAPSHOT, shape=param.shape, dtype=param.dtype, persistable=True, stop_gradient=True
    )


__all__ = ["average_now_and_then"]
