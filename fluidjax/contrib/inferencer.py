"""fluid.contrib.Inferencer of Paddle 0.14 to 1.2: predictions by a net and parameters that a
Trainer saved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import unique_name
from ..base.absent import reporter
from ..errors import FluidTypeError
from ..executor import Executor
from ..graph.program import Program, program_guard
from ..graph.variable import Variable
from ..io import load_params
from ..state.scope import Scope, scope_guard


class Inferencer:
    """Builds a program by `infer_func`, and loads its parameters.

    infer_func: builds the net in the default programs; returns the predicted variable. param_path:
    the folder that Trainer.save_params wrote. place: default the first GPU that JAX sees, or the
    CPU. parallel: accepted; predictions run on one device, with the same values.
    """

    def __init__(
        self,
        infer_func: Callable[[], Variable],
        param_path: str,
        place: Any = None,
        parallel: bool = False,
    ) -> None:
        self.param_path, self.parallel, self.scope, program = (
            param_path,
            parallel,
            Scope(),
            Program(),
        )
        with program_guard(program, Program()), unique_name.guard():
            self.predict_var = infer_func()
        self.exe = Executor(place)
        self.place = self.exe.place
        with scope_guard(self.scope):
            load_params(self.exe, param_path, program)
        self.inference_program = program.clone(for_test=True)

    def infer(self, inputs: Mapping[str, Any], return_numpy: bool = True) -> list[Any]:
        """The predictions, in a list. inputs: name -> array or tensor. return_numpy: False for
        tensors, which may have a LoD.

        Raises FluidTypeError for inputs that are not a dict.
        """
        if not isinstance(inputs, Mapping):
            raise FluidTypeError(
                f"Inferencer.infer takes a dict of names and arrays, not {type(inputs).__name__}"
            )
        with scope_guard(self.scope):
            return self.exe.run(
                self.inference_program,
                feed=inputs,
                fetch_list=[self.predict_var],
                return_numpy=return_numpy,
            )


__all__ = ["Inferencer"]
__getattr__ = reporter("fluid.contrib.inferencer", __all__)
