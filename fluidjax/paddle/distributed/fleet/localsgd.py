"""localsgd: workers update independently, and periodically average the changes of their parameters.

localsgd averages after every k_steps runs. adaptive_localsgd adapts the number to the loss (Lin et
al., 2018; Wang and Joshi, 2018): sqrt(rate_0 loss / (rate loss_0) init_k_steps), rounded up,
between 1 and 16, where rate_0 and loss_0 are those of the first run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import layers
from ....graph.program import Program, program_guard
from ....graph.variable import Parameter, Variable
from ....layers.branches import cond
from ....optimizers.wrapped import first_value
from ....transpiler.collective import SNAPSHOT

LONGEST = 16  # longest interval between averages with an adaptive number


def average_now_and_then(
    main: Program, startup: Program, workers: int, k_steps: int, begin_step: int
) -> None:
    """Append averaging to a program with updates: in every run up to begin_step, then every k_steps
    runs.

    State: ``<param>@SNAPSHOT``, the last average; ``k_steps``, ``begin_step``, ``last_step``; the
    counter ``@STEP_COUNTER@``.
    """
    kept = _remembered(main, startup)
    with program_guard(main, startup), main._optimized_guard([]):
        step, every, begin, last = _counters(k_steps, begin_step, begin_step)
        _when_due(step, every, begin, last, lambda: _average(kept, workers), lambda: None)


def average_as_the_loss_says(
    main: Program,
    startup: Program,
    workers: int,
    loss: Variable,
    rate: Variable,
    init_k_steps: int,
    begin_step: int,
) -> None:
    """The same, with k_steps adapted to the workers' mean loss and the learning rate. Further
    state: avg_loss, loss_0, lr_0.
    """
    kept = _remembered(main, startup)
    with program_guard(main, startup), main._optimized_guard([]):
        step, every, begin, last = _counters(init_k_steps, begin_step, 0)
        mean, first_rate, first_loss = (
            _kept(name, 0.0, "float32") for name in ("avg_loss", "lr_0", "loss_0")
        )

        def take_mean() -> None:
            _append("c_allreduce_sum", loss, mean, ring_id=0)
            _append("scale", mean, mean, scale=1.0 / workers)

        def remember() -> None:
            take_mean()
            layers.assign(mean, first_loss)
            layers.assign(rate, first_rate)

        def adapt() -> None:
            take_mean()
            wanted = layers.ceil(
                layers.sqrt(first_rate * mean / (rate * first_loss) * float(init_k_steps))
            )
            layers.assign(layers.cast(layers.clip(wanted, 1.0, float(LONGEST)), "int64"), every)

        cond(layers.equal(step, layers.fill_constant([1], "int64", 1)), remember)
        _when_due(step, every, begin, last, lambda: _average(kept, workers), adapt)


def _remembered(main: Program, startup: Program) -> list[tuple[Parameter, Variable]]:
    """The parameters, each with the variable of its last average, which the startup program sets."""
    params = [
        p for p in main.global_block().all_parameters() if not getattr(p, "is_distributed", False)
    ]
    with program_guard(startup), startup._optimized_guard([]):
        for param in params:
            layers.assign(first_value(startup, param), _snapshot(startup, param))
    return [(p, _snapshot(main, p)) for p in params]


def _snapshot(program: Program, param: Parameter) -> Variable:
    return program.global_block().create_var(
        name=param.name + SNAPSHOT,
        shape=param.shape,
        dtype=param.dtype,
        persistable=True,
        stop_gradient=True,
    )


def _counters(
    k_steps: int, begin_step: int, last_step: int
) -> tuple[Variable, Variable, Variable, Variable]:
    step = layers.autoincreased_step_counter(begin=1)
    return (
        step,
        _kept("k_steps", k_steps, "int64"),
        _kept("begin_step", begin_step, "int64"),
        _kept("last_step", last_step, "int64"),
    )


def _kept(name: str, value: float, dtype: str) -> Variable:
    return layers.create_global_var(
        name=name, shape=[1], value=value, dtype=dtype, persistable=True
    )


def _when_due(
    step: Variable,
    every: Variable,
    begin: Variable,
    last: Variable,
    average: Callable[[], None],
    then: Callable[[], None],
) -> None:
    """Average in every run up to `begin`, later when `every` runs have passed since the last
    average, and run `then`.
    """

    def now() -> None:
        average()
        layers.assign(step, last)

    def and_then() -> None:
        now()
        then()

    cond(step > begin, lambda: cond(layers.equal(step - last, every), and_then), now)


def _average(kept: list[tuple[Parameter, Variable]], workers: int) -> None:
    for param, before in kept:
        _append("elementwise_sub", before, param, Y=param)
        _append("c_allreduce_sum", param, param, ring_id=0)
    for param, before in kept:
        _append("scale", param, param, scale=1.0 / workers)
        _append("elementwise_sub", before, param, Y=param)
        _append("assign", param, before)


def _append(type: str, x: Variable, out: Variable, Y: Variable | None = None, **attrs: Any) -> None:
    inputs = {"X": x} if Y is None else {"X": x, "Y": Y}
    out.block.program.current_block().append_op(
        type=type, inputs=inputs, outputs={"Out": out}, attrs=attrs
    )


__all__ = ["average_as_the_loss_says", "average_now_and_then"]
