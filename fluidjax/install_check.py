"""fluid.install_check: checks that a small program runs, on one device and data parallel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import initializer, layers, optimizer, unique_name
from .compiler import CompiledProgram
from .devices.place import CPUPlace, Place, cuda_places, default_place, gpus
from .errors import FluidError
from .executor import Executor
from .graph.program import Program, program_guard
from .param_attr import ParamAttr
from .state.scope import Scope, scope_guard


def run_check() -> None:
    """Train one step of a layer whose weights are 0.1, on one device and data parallel on all GPUs
    (on CPUs: two places).

    If only the data parallel step fails, its error is printed, as in Paddle. Raises the errors of
    the first step, and FluidError for a result other than sum([[1, 2], [3, 4]] @ [[0.1] * 3] * 2) =
    3.
    """
    print("A small program on one device ...")
    _train(None)
    print(f"It works on {default_place()}.")
    try:
        _train(cuda_places() if gpus() else [CPUPlace()] * 2)
    except Exception as error:  # errors with several devices need not stop users of one device
        print(f"Data parallel it does not: {error}")
        return
    print("It works data parallel too. fluidjax is ready.")


def _train(places: Sequence[Place] | None) -> None:
    main, startup = Program(), Program()
    with scope_guard(Scope()), program_guard(main, startup), unique_name.guard():
        x = layers.data("inp", [2], append_batch_size=True)
        weights = ParamAttr(initializer=initializer.Constant(0.1))
        loss = layers.reduce_sum(layers.fc(x, 3, param_attr=weights, bias_attr=False)) if places is None else layers.mean(
            layers.fc(x, 3, param_attr=weights, bias_attr=False))  # fmt: skip
        optimizer.SGD(learning_rate=0.01).minimize(loss)
        exe = Executor()
        exe.run(startup)
        batch = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")
        if places is None:
            (got,), want = exe.run(main, {"inp": batch}, [loss]), 3.0
        else:
            parallel = CompiledProgram(main).with_data_parallel(loss_name=loss.name, places=places)
            (got,), want = exe.run(parallel, {"inp": np.tile(batch, (len(places), 1))}, [loss]), 0.5
    if not np.allclose(got, want, rtol=1e-5):
        raise FluidError(f"the small program computed {got}, not {want}")


__all__ = ["run_check"]
