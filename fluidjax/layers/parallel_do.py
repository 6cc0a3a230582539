"""ParallelDo and get_places of Paddle 0.1x: a block on parts of the batch, one for each place.

Here the block runs once, on the whole batch: the concatenated results of parts equal the result of
the whole batch, and a mean of means over equal parts is the mean. Its ops are appended to the
current block. To run a program on several devices, see docs/data-parallel.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..base.dtypes import VarType
from ..base.loc import located
from ..devices.place import cpu_places, cuda_places, is_compiled_with_cuda
from ..errors import FluidValueError
from ..graph.variable import Variable
from ._build import require, typed, variable

__all__: list[str] = []
_DEVICES = ("CPU", "CUDA", "AUTO")


class Places(list[Any]):
    """A list of places. type: the kind of variable that holds one in Paddle."""

    type = VarType.PLACE_LIST


@located
def get_places(device_count: int | None = None, device_type: str | None = None) -> Places:
    """The places for a ParallelDo: `device_count` CPUs (device_type "CPU"), or accelerators; None:
    all.

    Raises FluidTypeError for a count that is not a number, FluidValueError for a count below 1 or
    another type of device.
    """
    typed(device_count, "device_count", (int, type(None)), "get_places")
    if device_count is not None and device_count < 1:
        raise FluidValueError(f"get_places takes a device_count of 1 or more, not {device_count}")
    kind = (device_type or "AUTO").upper()
    if kind not in _DEVICES:
        raise FluidValueError(
            f"get_places knows the device types {', '.join(_DEVICES)}, not {device_type!r}"
        )
    if kind == "CPU" or (kind == "AUTO" and not is_compiled_with_cuda()):
        return Places(cpu_places(device_count))
    return Places(cuda_places(None if device_count is None else list(range(device_count))))


class ParallelDo:
    """A block over parts of the batch::

        both = ParallelDo(get_places())
        with both.do():
            h = fc(both.read_input(x), 10)
            both.write_output(reduce_mean(h))
        loss = mean(both())

    A call returns the outputs: a variable, or a list of several. The places do not matter: the
    block runs once, on the whole batch. Raises FluidValueError for inputs or outputs outside of the
    block, and for a call before the end of the block.
    """

    def __init__(self, places: Any, use_nccl: bool = False, name: str | None = None) -> None:
        self.places, self.use_nccl, self.name = places, use_nccl, name
        self.outputs: list[Variable] = []
        self._inside = self._done = False

    @contextlib.contextmanager
    def do(self) -> Iterator[None]:
        """The block."""
        require(not self._inside and not self._done, "a ParallelDo has one block, with do()")
        self._inside = True
        try:
            yield
        finally:
            self._inside = False
        self._done = True

    @located
    def read_input(self, var: Variable) -> Variable:
        """The part of `var` for the block: all of it."""
        require(self._inside, "read_input is called within the block of a ParallelDo, with do()")
        return variable(var, "var", "ParallelDo.read_input")

    @located
    def write_output(self, var: Variable) -> None:
        """Make `var` an output."""
        require(self._inside, "write_output is called within the block of a ParallelDo, with do()")
        self.outputs.append(variable(var, "var", "ParallelDo.write_output"))

    @located
    def __call__(self, *args: Any, **kwargs: Any) -> Variable | list[Variable]:
        """The block's outputs."""
        require(
            self._done and bool(self.outputs),
            "a ParallelDo is called after its block, which must call write_output",
        )
        return self.outputs[0] if len(self.outputs) == 1 else list(self.outputs)
