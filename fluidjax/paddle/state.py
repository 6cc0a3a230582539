"""paddle.save, paddle.get_default_dtype, paddle.set_device ...: global state and files of a script."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..backward import gradients
from ..base.dtypes import name_of
from ..devices.place import CPUPlace, CUDAPlace
from ..devices.place import is_compiled_with_xpu as is_compiled_with_xpu
from ..errors import FluidTypeError, FluidValueError, UnsupportedError
from ..executor import Executor
from ..graph.program import Program
from ..graph.variable import Variable
from ..lod_tensor import LoDTensor
from ..saved import pickled
from ..saved.files import read_file, write_files
from ..state.scope import global_scope

_default = ["float32"]


def get_default_dtype() -> str:
    """The default dtype of new variables; "float32" unless set."""
    return _default[0]


def set_default_dtype(d: Any) -> None:
    """Set the default dtype of new variables. Raises FluidTypeError unless it is float16, float32
    or float64.
    """
    name = name_of(d)
    if name not in ("float16", "float32", "float64"):
        raise FluidTypeError(f"set_default_dtype takes float16, float32 or float64, not {name}")
    _default[0] = name


def get_device() -> str:
    """The device of an Executor without a place: "cpu" or "gpu:0"."""
    place = Executor().place
    return (
        "cpu"
        if isinstance(place, CPUPlace)
        else f"gpu:{place.device_id}"
        if isinstance(place, CUDAPlace)
        else "gpu:0"
    )


def set_device(device: str) -> Any:
    """The place for `device`. An Executor without a place keeps its own, so another device is
    refused.

    Raises FluidValueError unless it is "cpu", "gpu" or "gpu:N", UnsupportedError for a device that
    is not get_device()'s.
    """
    kind, _, number = str(device).partition(":")
    if (
        kind not in ("cpu", "gpu")
        or (number and not number.isdigit())
        or (kind == "cpu" and number)
    ):
        raise FluidValueError(f"set_device takes 'cpu', 'gpu' or 'gpu:N', not {device!r}")
    wanted = kind if kind == "cpu" else f"gpu:{number or 0}"
    if wanted != get_device():
        raise UnsupportedError(
            f"set_device cannot move executors from {get_device()} to {wanted}; give the Executor a"
            " place"
        )
    return CPUPlace() if kind == "cpu" else CUDAPlace(int(number or 0))


def XPUPlace(device_id: int = 0) -> NoReturn:
    """Not supported. Raises UnsupportedError."""
    raise UnsupportedError("XPUPlace: there are no XPUs; use CPUPlace or CUDAPlace")


def get_cudnn_version() -> None:
    """None, as in a Paddle without cuDNN; XLA chooses kernels."""


def get_cuda_rng_state() -> list[Any]:
    """[]: random numbers depend on seeds alone, and no device has a random state."""
    return []


def set_cuda_rng_state(state_list: Sequence[Any]) -> None:
    """Accepts the result of get_cuda_rng_state. Raises UnsupportedError for anything except []."""
    if list(state_list):
        raise UnsupportedError(
            "set_cuda_rng_state: no device keeps a state of random numbers; set seeds by"
            " paddle.seed"
        )


def is_tensor(x: Any) -> bool:
    """Whether x is a variable of a program, or a tensor of values."""
    return isinstance(x, Variable | LoDTensor)


class no_grad(contextlib.ContextDecorator):
    """A context or decorator that does nothing, as in Paddle's static mode.

    minimize and append_backward write the gradients of a static program; `stop_gradient` of a
    variable ends them.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, *exc_info: object) -> None: ...

    def clone(self) -> no_grad:
        """Return a new one."""
        return type(self)()


class enable_grad(no_grad):
    """A context or decorator that does nothing, like no_grad."""


class set_grad_enabled(no_grad):
    """A context or decorator that does nothing, like no_grad. mode: for dynamic mode, ignored."""

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)

    def clone(self) -> no_grad:
        """Return a new one."""
        return type(self)(self.mode)


def is_grad_enabled() -> bool:
    """False, as in 2.6.2's static mode: gradients are ops that minimize or append_backward writes."""
    return False


def get_rng_state(device: str | None = None) -> list[Any]:
    """[]: random numbers depend on seeds alone, and no device has a random state."""
    return []


def set_rng_state(state_list: Sequence[Any], device: str | None = None) -> None:
    """Accepts the result of get_rng_state. Raises UnsupportedError for anything except []."""
    set_cuda_rng_state(state_list)


def set_printoptions(
    precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None, sci_mode: bool | None = None,
    linewidth: int | None = None,
) -> None:  # fmt: skip
    """Set how arrays are printed, including results of programs: numpy.set_printoptions. sci_mode:
    True for scientific notation always.
    """
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    np.set_printoptions(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    if sci_mode is not None:
        style = {
            "float_kind": lambda v: np.format_float_scientific(
                v, precision or np.get_printoptions()["precision"]
            )
        }
        np.set_printoptions(suppress=not sci_mode, formatter=style if sci_mode else None)  # type: ignore[arg-type]


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
    no_grad_vars: Any = None,
) -> list[Variable | None]:
    """The gradients of the outputs with respect to each input: paddle.static.gradients.

    retain_graph, create_graph: ignored; a static program can always be differentiated again. Raises
    UnsupportedError for only_inputs=False, FluidValueError for an input that no output depends on
    unless allow_unused (then None).
    """
    if not only_inputs:
        raise UnsupportedError("grad gives the gradients of its inputs only; give only_inputs=True")
    found = gradients(outputs, inputs, grad_outputs, no_grad_vars)
    given = inputs if isinstance(inputs, list | tuple) else [inputs]
    unused = [v.name for v, g in zip(given, found, strict=True) if g is None]
    if unused and not allow_unused:
        raise FluidValueError(
            f"no output needs {', '.join(map(repr, unused))}; give allow_unused=True for None in"
            " its place"
        )
    return list(found)


def save(obj: Any, path: str | Path, protocol: int = 4, **configs: Any) -> None:
    """Write a dict of arrays, tensors or persistable variables (a layer's state_dict), or a
    Program, to a file.

    A variable's value is read from the global scope. Dicts are written in the format of .pdparams
    files, programs in protobuf. protocol is ignored. Raises FluidTypeError for anything else,
    FluidValueError for a variable without a value.
    """
    where = Path(path)
    if isinstance(obj, Program):
        data = obj.serialize_to_string()
        write_files(where.parent, {where.name: lambda: [data]})
        return
    if not isinstance(obj, Mapping) or not all(isinstance(n, str) for n in obj):
        raise FluidTypeError(
            f"paddle.save writes a Program or a dict of arrays by name, not {type(obj).__name__}"
        )
    arrays = {name: _value(name, value) for name, value in obj.items()}
    write_files(where.parent, {where.name: lambda: pickled.write(arrays)})


def _value(name: str, value: Any) -> np.ndarray:
    if isinstance(value, Variable):
        held = global_scope().find_var(value.name)
        if held is None or held.get_tensor() is None:
            raise FluidValueError(
                f"variable {value.name!r} ({name}) has no value in the global scope; run the"
                " startup program"
            )
        value = held.get_tensor()
    array = np.asarray(value)
    if array.dtype == object:
        raise FluidTypeError(f"paddle.save writes arrays, and {name!r} is {type(value).__name__}")
    return array


def load(path: str | Path, **configs: Any) -> Any:
    """Load a file of save: a Program, or a dict of arrays. No code in the file is run.

    Raises ParseError for other files, FluidValueError if there is no file.
    """
    where = Path(path)
    if not where.is_file():
        raise FluidValueError(f"there is no file {str(where)!r}")
    data = read_file(where)
    if data[:1] == b"\x80":  # the first byte of every pickle
        return pickled.read(data, str(where))
    return Program.parse_from_string(data)


__all__ = [
    "XPUPlace",
    "enable_grad",
    "get_cuda_rng_state",
    "get_cudnn_version",
    "get_default_dtype",
    "get_device",
    "get_rng_state",
    "grad",
    "is_compiled_with_xpu",
    "is_grad_enabled",
    "is_tensor",
    "load",
    "no_grad",
    "save",
    "set_cuda_rng_state",
    "set_default_dtype",
    "set_device",
    "set_grad_enabled",
    "set_printoptions",
    "set_rng_state",
]  # fmt: skip
