"""DistributeTranspilerConfig: the configuration of a transpiler. Values are checked when they are
set.
"""

from __future__ import annotations

import os
from typing import Any

from ..errors import FluidTypeError, FluidValueError, near
from .ps_dispatcher import PSDispatcher, RoundRobin
from .refused import ArgumentTypeError, TranspileAssertion

MODES = ("pserver", "nccl2", "collective")
COLLECTIVE_MODES = ("grad_allreduce", "local_sgd", "single_process_multi_thread")
MIN_BLOCK_SIZE = 8192


_DEFAULTS: dict[str, Any] = {
    "slice_var_up": True, "split_method": None, "min_block_size": MIN_BLOCK_SIZE, "enable_dc_asgd": False, "mode": "pserver",
    "print_log": False, "wait_port": True, "half_async": False, "completely_not_async": False, "geo_sgd_mode": False,
    "geo_sgd_need_push_nums": 100, "nccl_comm_num": 1, "use_hierarchical_allreduce": False,
    "hierarchical_allreduce_inter_nranks": 0, "collective_mode": None,
}  # fmt: skip
_LEAST = {"nccl_comm_num": 1, "geo_sgd_need_push_nums": 1, "hierarchical_allreduce_inter_nranks": 0}
_PROPERTIES = ("sync_mode", "runtime_split_send_recv")


class DistributeTranspilerConfig:
    """The configuration of a DistributeTranspiler; every attribute has a default.

        config = fluid.DistributeTranspilerConfig()
        config.slice_var_up = True
        config.min_block_size = 81920
        t = fluid.DistributeTranspiler(config=config)

    slice_var_up (True): cut large parameters into blocks, at most one for each pserver.
    split_method (RoundRobin): the class that assigns blocks to pservers: RoundRobin, HashName,
    SizeBalanced, or another subclass of PSDispatcher. min_block_size (8192): the least elements of
    a block; smaller values are refused, because messages get too small. mode ("pserver"): or
    "nccl2", "collective". collective_mode: "grad_allreduce", "local_sgd" or
    "single_process_multi_thread", for mode "collective". sync_mode (True): pservers wait for all
    trainers. runtime_split_send_recv (False): asynchronous trainers send whole gradients, which a
    communicator cuts; not with sync_mode. half_async (False): with runtime_split_send_recv,
    trainers also wait for each other. completely_not_async (False): with half_async, pservers keep
    the trainers' gradients apart and merge them. enable_dc_asgd (False): asynchronous pservers
    correct a late gradient by grad + (param - param as the trainer saw it) * grad * grad.
    geo_sgd_mode (False), geo_sgd_need_push_nums (100): trainers update by themselves and exchange
    deltas after so many batches, as with GeoSgdTranspiler. nccl_comm_num (1): the number of rings.
    use_hierarchical_allreduce (False), hierarchical_allreduce_inter_nranks (0): reduce within
    groups of so many ranks first. wait_port (True): accepted without effect; processes wait for
    each other when they run a program. print_log (False): print the blocks and their pservers.

    Raises, when an attribute is set: FluidValueError for an unknown mode, a number below its least,
    None or both of sync_mode and runtime_split_send_recv; FluidTypeError for another type or an
    unknown attribute.
    """

    split_method: Any
    min_block_size: int
    slice_var_up: bool
    mode: str
    collective_mode: str | None
    wait_port: bool
    print_log: bool
    enable_dc_asgd: bool
    half_async: bool
    completely_not_async: bool
    geo_sgd_mode: bool
    geo_sgd_need_push_nums: int
    nccl_comm_num: int
    use_hierarchical_allreduce: bool
    hierarchical_allreduce_inter_nranks: int

    def __init__(self) -> None:
        self._sync_mode, self._runtime_split = True, False
        for name, value in _DEFAULTS.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in _DEFAULTS and name not in _PROPERTIES:
            there = [*_DEFAULTS, *_PROPERTIES]
            raise FluidTypeError(
                f"DistributeTranspilerConfig has no attribute {name!r}{near(name, there)}; it has"
                f" {', '.join(there)}"
            )
        if name in _DEFAULTS:
            _check(name, value)
        object.__setattr__(self, name, value)

    @property
    def sync_mode(self) -> bool:
        """Pservers wait for the gradients of all trainers."""
        return self._sync_mode

    @sync_mode.setter
    def sync_mode(self, value: bool) -> None:
        self._sync_mode = _alone("sync_mode", value, "runtime_split_send_recv", self._runtime_split)

    @property
    def runtime_split_send_recv(self) -> bool:
        """Gradients are cut while they are sent, not by ops of the program."""
        return self._runtime_split

    @runtime_split_send_recv.setter
    def runtime_split_send_recv(self, value: bool) -> None:
        self._runtime_split = _alone("runtime_split_send_recv", value, "sync_mode", self._sync_mode)

    @property
    def dispatcher(self) -> type[PSDispatcher]:
        """The split_method; RoundRobin if there is none. Raises TranspileAssertion or
        FluidTypeError for anything but a dispatcher class.
        """
        return split_class(RoundRobin if self.split_method is None else self.split_method)

    def check(self) -> None:
        """Raises TranspileAssertion if Fluid's transpilers would raise an AssertionError."""
        split_class(RoundRobin if self.split_method is None else self.split_method)
        if self.min_block_size < MIN_BLOCK_SIZE:
            raise TranspileAssertion(
                f"min_block_size is {self.min_block_size}; {MIN_BLOCK_SIZE} is the least"
            )


def split_class(method: Any) -> type[PSDispatcher]:
    """A split_method, checked: a subclass of PSDispatcher."""
    if not isinstance(method, type):
        raise ArgumentTypeError(f"split_method is a class, such as RoundRobin, not {method!r}")
    if not issubclass(method, PSDispatcher) or method is PSDispatcher:
        raise TranspileAssertion(
            "split_method is a class that derives from PSDispatcher, as RoundRobin does;"
            f" {method.__name__} does not"
        )
    return method


def _alone(name: str, value: Any, other: str, other_value: bool) -> bool:
    if value is None:
        raise FluidValueError(f"{name} can't be None")
    if value and other_value:
        raise FluidValueError(
            f"if you want to set {name} to be true, make ensure config.{other} is false at first"
        )
    return bool(value)


def _check(name: str, value: Any) -> None:
    """Check the type and range of one attribute."""
    default = _DEFAULTS[name]
    if name == "mode" and value not in MODES:
        raise FluidValueError(
            f"mode is {value!r}{near(str(value), MODES)}; it is one of {', '.join(MODES)}"
        )
    if isinstance(default, bool) and not isinstance(value, bool | int):
        raise FluidTypeError(f"{name} is True or False, not {value!r}")
    if type(default) is int and (isinstance(value, bool) or not isinstance(value, int)):
        raise FluidTypeError(f"{name} is a whole number, not {value!r}")
    if name in _LEAST and value < _LEAST[name]:
        raise FluidValueError(f"{name} is {value}; it is at least {_LEAST[name]}")
    if name == "collective_mode" and value is not None and not isinstance(value, str):
        raise FluidTypeError(
            f"collective_mode is one of {', '.join(COLLECTIVE_MODES)}, not {value!r}"
        )


class ServerRuntimeConfig:
    """Numbers of threads of Paddle's servers. They are kept without effect, because servers here
    have no threads.
    """

    def __init__(self) -> None:
        for name in ("send", "get", "prefetch"):
            setattr(
                self,
                f"_rpc_{name}_thread_num",
                int(os.getenv(f"FLAGS_rpc_{name}_thread_num", "12")),
            )
