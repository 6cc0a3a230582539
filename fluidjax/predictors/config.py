"""The configuration of a predictor: where its model is, and on which device it runs. Paddle's other
switches choose kernels, which XLA does here.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NoReturn

from ..base.loc import warn
from ..devices.place import CPUPlace, CUDAPlace, Place, gpus
from ..errors import FluidTypeError, FluidValueError, UnsupportedError


@dataclass(frozen=True)
class Model:
    """The location of a model: a folder, its files, or bytes."""

    folder: str = ""
    program: str | bytes = ""
    params: str | bytes = ""


class PassBuilder:
    """The passes that Paddle would run over a model. XLA's own passes take their place, so the list
    is empty and changes have no effect.
    """

    def all_passes(self) -> list[str]:
        return []

    def delete_pass(self, name: Any) -> None:
        """Accepted, because no such pass runs."""

    def append_pass(self, name: str) -> NoReturn:
        """Refused. Raises UnsupportedError: fluid.passes rewrites programs."""
        raise UnsupportedError(
            f"the pass {name!r} of Paddle's C++ is not supported; fluid.passes rewrites programs"
        )


class AnalysisConfig:
    """The model and the device of a predictor: AnalysisConfig(folder), or AnalysisConfig(program
    file, params file).
    """

    class Precision(enum.IntEnum):
        """For TensorRT's engines, which are not supported."""

        Float32 = 0
        Int8 = 1
        Half = 2

    Float32, Int8, Half = Precision.Float32, Precision.Int8, Precision.Half

    def __init__(self, model: str | AnalysisConfig = "", params_file: str | None = None) -> None:
        self._folder = self._program = self._params = ""
        self._bytes: tuple[bytes, bytes] | None = None
        self._batch_sizes: tuple[int, ...] | None = ()
        self._max_executables = 128
        self._gpu: int | None = None
        self._pool_mb, self._threads = 100, 1
        self._ir, self._feeds, self._named, self._quiet, self._memory = (
            True,
            True,
            False,
            False,
            False,
        )
        if isinstance(model, AnalysisConfig):
            vars(self).update(vars(model))
        elif model:
            self.set_model(model, params_file)

    # -- the model

    def set_model(self, model: str, params_file: str | None = None) -> None:
        """A folder, or the files of the program and of the values. Raises FluidTypeError for
        anything but a path.
        """
        if not isinstance(model, str) or not isinstance(params_file, str | None):
            raise FluidTypeError(
                f"set_model takes paths, not {type(model).__name__} and"
                f" {type(params_file).__name__}"
            )
        if params_file is None:
            self._folder = model
        else:
            self._program, self._params = model, params_file

    def set_prog_file(self, path: str) -> None:
        self._program = path

    def set_params_file(self, path: str) -> None:
        self._params = path

    def set_model_buffer(
        self, prog: bytes, prog_size: int, params: bytes, params_size: int
    ) -> None:
        """The bytes of both files, and their lengths. Raises FluidTypeError for anything but
        bytes.
        """
        if not isinstance(prog, bytes) or not isinstance(params, bytes):
            raise FluidTypeError("set_model_buffer takes bytes and their numbers")
        self._bytes = prog[:prog_size], params[:params_size]

    def model_dir(self) -> str:
        return self._folder

    def prog_file(self) -> str:
        return self._program

    def params_file(self) -> str:
        return self._params

    def model_from_memory(self) -> bool:
        return self._bytes is not None

    def model(self) -> Model:
        """Where the model is."""
        if self._bytes is not None:
            return Model("", *self._bytes)
        return Model(self._folder, self._program, self._params)

    # -- the batch

    def set_batch_sizes(self, sizes: Iterable[int] | None) -> None:
        """Pad batches up to the smallest of these sizes that holds them, so that each size is
        compiled once and no batch waits for a compilation of its own. A larger batch is not padded.
        None: no batch is padded.

        By default sizes are learnt: the first two batches are not padded; a later batch is padded
        up to a known size of at most twice its own, else to one of 1, 2, 3, 4, 6, 8, 12, 16, 24,
        ... Results have only the true rows. If a model mixes the rows of its batch, or if its
        inputs have batches of several sizes, nothing is padded. Paddle has no such setting. Raises
        FluidValueError for anything but positive integers.
        """
        if sizes is None:
            self._batch_sizes = None
            return
        found = tuple(sizes)
        if not found or any(type(n) is bool or not isinstance(n, Integral) or n < 1 for n in found):
            raise FluidValueError(f"set_batch_sizes takes positive integers, not {found!r}")
        self._batch_sizes = tuple(sorted({int(n) for n in found}))

    def batch_sizes(self) -> tuple[int, ...] | None:
        """The sizes that were set; () if they are learnt, None if batches are not padded."""
        return self._batch_sizes

    def set_max_executables(self, count: int) -> None:
        """Keep at most so many executables, one for each form of the inputs. The least recently
        used one is dropped, and compiled again when its form returns. The default is 128. Clones
        share them. Paddle has no such setting. Raises FluidValueError for anything but a positive
        integer.
        """
        if type(count) is bool or not isinstance(count, Integral) or count < 1:
            raise FluidValueError(f"set_max_executables takes a positive integer, not {count!r}")
        self._max_executables = int(count)

    def max_executables(self) -> int:
        """The number of executables that are kept."""
        return self._max_executables

    # -- the device

    def enable_use_gpu(
        self, memory_pool_init_size_mb: int = 100, device_id: int = 0, precision_mode: Any = None
    ) -> None:
        """Run on a GPU. If JAX sees none, this warns and stays on the CPU, like Paddle without
        CUDA. JAX manages the memory.
        """
        if not gpus():
            warn("enable_use_gpu: JAX sees no GPU, so the predictor runs on the CPU")
            return
        self._pool_mb, self._gpu = memory_pool_init_size_mb, device_id

    def disable_gpu(self) -> None:
        self._gpu = None

    def use_gpu(self) -> bool:
        return self._gpu is not None

    def gpu_device_id(self) -> int:
        return self._gpu or 0

    def memory_pool_init_size_mb(self) -> int:
        return self._pool_mb

    def fraction_of_gpu_memory_for_pool(self) -> float:
        """0.0: JAX manages the memory."""
        return 0.0

    def place(self) -> Place:
        """Where it runs."""
        return CPUPlace() if self._gpu is None else CUDAPlace(self._gpu)

    def set_cpu_math_library_num_threads(self, count: int) -> None:
        """Recorded without effect; XLA has its own threads."""
        self._threads = count

    def cpu_math_library_num_threads(self) -> int:
        return self._threads

    # -- feeding

    def switch_specify_input_names(self, x: bool = True) -> None:
        """Whether `run` knows its tensors by their names (else by their order)."""
        self._named = bool(x)

    def specify_input_name(self) -> bool:
        return self._named

    def switch_use_feed_fetch_ops(self, x: bool = True) -> None:
        """Recorded without effect; run and zero_copy_run work either way."""
        self._feeds = bool(x)

    def use_feed_fetch_ops_enabled(self) -> bool:
        return self._feeds

    # -- what Paddle's kernels and passes would do

    def switch_ir_optim(self, x: bool = True) -> None:
        """Recorded without effect; XLA optimises every program."""
        self._ir = bool(x)

    def ir_optim(self) -> bool:
        return self._ir

    def switch_ir_debug(self, x: bool = True) -> None:
        """Accepted, because there are no passes to draw."""

    def pass_builder(self) -> PassBuilder:
        return PassBuilder()

    def delete_pass(self, name: str) -> None:
        """Accepted, because no such pass runs."""

    def enable_memory_optim(self, x: bool = True) -> None:
        """Recorded without effect; XLA always reuses memory."""
        self._memory = bool(x)

    def disable_glog_info(self) -> None:
        """Recorded without effect; nothing is logged."""
        self._quiet = True

    def glog_info_disabled(self) -> bool:
        return self._quiet

    def enable_mkldnn(self) -> None:
        """Accepted without effect: XLA chooses the kernels, and mkldnn_enabled stays False."""

    def mkldnn_enabled(self) -> bool:
        return False

    def set_mkldnn_cache_capacity(self, capacity: int = 0) -> None:
        """Accepted, as enable_mkldnn."""

    def set_mkldnn_op(self, ops: Any) -> None:
        """Accepted, as enable_mkldnn."""

    def set_optim_cache_dir(self, folder: str) -> None:
        """Accepted without effect: compiled code is kept in the user's compilation cache."""

    def tensorrt_engine_enabled(self) -> bool:
        return False

    def lite_engine_enabled(self) -> bool:
        return False

    def enable_tensorrt_engine(self, *args: Any, **kwargs: Any) -> None:
        """Not supported: it warns, and XLA compiles the whole program in the model's own dtypes."""
        warn(
            "enable_tensorrt_engine: there is no TensorRT; XLA compiles the program, in its own"
            " dtypes"
        )

    def enable_lite_engine(self, *args: Any, **kwargs: Any) -> None:
        """Not supported: it warns, and XLA compiles the whole program."""
        warn("enable_lite_engine: there is no Paddle-Lite; XLA compiles the program")

    def enable_quantizer(self) -> NoReturn:
        """Refused, because it would change results. Raises UnsupportedError."""
        raise UnsupportedError("enable_quantizer: quantised inference by oneDNN is not supported")

    def enable_profile(self) -> NoReturn:
        """Refused. Raises UnsupportedError."""
        raise UnsupportedError(
            "enable_profile is not supported; put fluid.profiler.profiler('CPU', 'total') around "
            "the"
            " runs"
        )

    def to_native_config(self) -> NativeConfig:
        """The same as a NativeConfig. Raises FluidValueError for a model in memory, which a
        NativeConfig cannot describe.
        """
        if self.model_from_memory():
            raise FluidValueError("a NativeConfig names files; this model is in memory")
        return NativeConfig(
            self._folder,
            self._program,
            self._params,
            self.use_gpu(),
            self._gpu or 0,
            0.0,
            self._named,
            self._threads,
        )


@dataclass
class NativeConfig:
    """The older configuration, with attributes for the model's location."""

    model_dir: str = ""
    prog_file: str = ""
    param_file: str = ""
    use_gpu: bool = False
    device: int = 0
    fraction_of_gpu_memory: float = -1.0
    specify_input_name: bool = False
    _threads: int = field(default=1, repr=False)

    def set_cpu_math_library_num_threads(self, count: int) -> None:
        """Recorded without effect; XLA has its own threads."""
        self._threads = count

    def cpu_math_library_num_threads(self) -> int:
        return self._threads

    def analysis(self) -> AnalysisConfig:
        """The same as an AnalysisConfig. Raises FluidValueError if use_gpu is set and JAX sees no
        such GPU.
        """
        config = AnalysisConfig(self.model_dir)
        config.set_prog_file(self.prog_file)
        config.set_params_file(self.param_file)
        config.switch_specify_input_names(self.specify_input_name)
        if self.use_gpu:
            CUDAPlace(self.device).device()
            config.enable_use_gpu(device_id=self.device)
        return config
