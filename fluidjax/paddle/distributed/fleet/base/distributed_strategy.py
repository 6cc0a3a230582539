"""DistributedStrategy: the options of fleet.distributed_optimizer, with the fields and defaults of
Paddle 2.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from .....compiler import BuildStrategy, ExecutionStrategy
from .....errors import FluidTypeError, FluidValueError, UnsupportedError, near


class UnknownFieldError(FluidTypeError, AttributeError):
    """A DistributedStrategy has no such field."""


_SWITCHES = (
    "adam_d2sum adaptive_localsgd amp asp auto auto_search cudnn_batchnorm_spatial_persistent"
    " cudnn_exhaustive_search dgc elastic find_unused_parameters fp16_allreduce fuse_grad_merge"
    " gradient_merge heter_ccl_mode is_fl_ps_mode is_with_coordinator lamb lars localsgd pipeline"
    " qat recompute semi_auto sharding sync_batch_norm tensor_parallel use_hierarchical_allreduce"
).split()
_NUMBERS: dict[str, Any] = {
    "conv_workspace_size_limit": 512, "fuse_grad_size_in_MB": 32, "fuse_grad_size_in_num": 8, "hierarchical_allreduce_inter_nranks": 1,
    "last_comm_group_size_MB": 1.0, "nccl_comm_num": 1,
}  # fmt: skip
_ON = (
    "a_sync",
    "fuse_all_reduce_ops",
    "split_data",
    "sync_nccl_allreduce",
    "without_graph_optimization",
)
CONFIGS: dict[str, dict[str, Any]] = {
    "a_sync_configs": {
        "k_steps": -1, "max_merge_var_num": 1, "send_queue_size": 16, "independent_recv_thread": False,
        "min_send_grad_num_before_recv": 1, "thread_pool_size": 1, "send_wait_times": 1, "runtime_split_send_recv": False,
        "launch_barrier": True, "heter_worker_device_guard": "cpu", "lr_decay_steps": 10, "use_ps_gpu": 0, "use_gpu_graph": 0,
    },
    "adaptive_localsgd_configs": {"init_k_steps": 1, "begin_step": 1},
    "amp_configs": {
        "init_loss_scaling": 32768.0, "incr_every_n_steps": 1000, "decr_every_n_nan_or_inf": 2, "incr_ratio": 2.0, "decr_ratio": 0.8,
        "use_dynamic_loss_scaling": True, "custom_white_list": [], "custom_black_list": [], "custom_black_varnames": [],
        "use_pure_fp16": False, "use_fp16_guard": True, "use_optimizer_fp16": False, "use_pure_bf16": False,
    },
    "dgc_configs": {"rampup_begin_step": 0, "rampup_step": 1, "sparsity": []},
    "gradient_merge_configs": {"k_steps": 1, "avg": True},
    "gradient_scale_configs": {"scale_strategy": "avg", "scale_gradient": False},
    "hybrid_configs": {"dp_degree": -1, "mp_degree": 1, "pp_degree": 1, "sharding_degree": 1, "sep_degree": 1},
    "lamb_configs": {"lamb_weight_decay": 0.01, "exclude_from_weight_decay": []},
    "lars_configs": {"lars_coeff": 0.001, "lars_weight_decay": 0.0005, "epsilon": 0.0, "exclude_from_weight_decay": []},
    "localsgd_configs": {"k_steps": 1, "begin_step": 1},
    "pipeline_configs": {
        "micro_batch_size": 1, "accumulate_steps": 1, "schedule_mode": "1F1B", "p2p_cache_shape": True, "enable_partial_send_recv": True,
    },
    "qat_configs": {
        "channel_wise_abs_max": True, "weight_bits": 8, "activation_bits": 8, "not_quant_pattern": [], "algo": "",
    },
    "recompute_configs": {
        "checkpoints": [], "enable_offload": False, "checkpoint_shape": [], "enable_tuning": False, "refined_ops_patterns": [],
    },
    "sharding_configs": {
        "sharding_segment_strategy": "segment_broadcast_MB", "segment_broadcast_MB": 32.0, "segment_anchors": [], "sharding_degree": 8,
        "mp_degree": 1, "dp_degree": 1, "hybrid_dp": False, "gradient_merge_acc_step": 1, "optimize_offload": False,
        "pp_allreduce_in_optimize": False, "pp_degree": 1, "optimize_cast": False, "_dp_as_optimizer_sharding": False, "stage": 1,
        "enable_tuning": False, "use_calc_stream": False,
    },
    "tensor_parallel_configs": {"tensor_parallel_degree": 1, "tensor_init_seed": -1},
    "trainer_desc_configs": {
        "dump_fields_path": "", "dump_fields": [], "dump_param": [], "stat_var_names": [], "trainer": "", "device_worker": "",
        "local_sparse": [], "remote_sparse": [],
    },
}  # fmt: skip
_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(_SWITCHES, False), **dict.fromkeys(_ON, True), **_NUMBERS, **CONFIGS, "build_strategy": None,
    "execution_strategy": None,
}  # fmt: skip
_KINDS: dict[str, type] = {"build_strategy": BuildStrategy, "execution_strategy": ExecutionStrategy}

# Fields that request unsupported features, each with an alternative.
_REFUSED = {
    "adam_d2sum": "Adam with d2sum is an update rule of Paddle's own servers; use Adam",
    "asp": "2:4 sparsity is not supported",
    "auto": "strategies are not chosen by themselves; set those that you want",
    "auto_search": "strategies are not chosen by themselves; set those that you want",
    "dgc": (
        "gradients are sent whole (Paddle's DGC is for NVIDIA's cards alone); fp16_allreduce makes"
        " messages smaller"
    ),
    "elastic": "a job keeps its number of processes; start it anew from a checkpoint",
    "heter_ccl_mode": "a job has devices of one kind",
    "is_fl_ps_mode": "federated learning is not supported",
    "is_with_coordinator": "federated learning is not supported",
    "pipeline": (
        "a program is not cut into stages over processes; use sharding, or"
        " fluid.optimizer.PipelineOptimizer in one process"
    ),
    "qat": "use QuantizationTransformPass of fluid.contrib.slim.quantization",
    "semi_auto": "programs are not cut by themselves; use sharding",
    "tensor_parallel": "layers are not split over processes; use sharding",
}
# Configuration values that request unsupported features.
_ALWAYS = {
    "gradient_scale_configs": {
        "scale_gradient": "gradients are averaged, not scaled besides",
    },
    "trainer_desc_configs": dict.fromkeys(
        ("dump_fields_path", "dump_fields", "dump_param"),
        "fields and parameters are not dumped; fetch them, or use fluid.layers.Print",
    ),
    "a_sync_configs": dict.fromkeys(
        ("use_ps_gpu", "use_gpu_graph"), "servers keep no tables on GPUs"
    ),
}
_REFUSED_CONFIGS = {
    "amp_configs": {
        **dict.fromkeys(
            ("use_pure_fp16", "use_optimizer_fp16", "use_pure_bf16"),
            "parameters are float32, and ops of the white list compute in half",
        ),
    },
    "recompute_configs": {
        "enable_offload": "checkpoints stay on the device",
        "refined_ops_patterns": "recomputed ops are those between checkpoints",
    },
    "sharding_configs": {"optimize_offload": "the optimizer's state stays on the devices"},
}
_ALONE = {  # degrees of parallelism that are 1 here
    "hybrid_configs": ("mp_degree", "pp_degree", "sharding_degree", "sep_degree"),
    "sharding_configs": ("mp_degree", "dp_degree", "pp_degree", "gradient_merge_acc_step"),
}  # fmt: skip


class DistributedStrategy:
    """How a fleet trains. A field is True or False, a number, or ``<field>_configs``, a dict whose
    entries can be set separately.

    With workers alone these fields work, composed as in Paddle: amp, recompute, gradient_merge,
    sharding, localsgd, adaptive_localsgd, lars, lamb, fp16_allreduce, sync_batch_norm. With
    servers: a_sync and a_sync_configs["k_steps"]. minimize refuses a field that requests an
    unsupported feature, with an error that names the field. Fields that plan messages, threads or
    kernels (fuse_all_reduce_ops, nccl_comm_num, use_hierarchical_allreduce,
    cudnn_exhaustive_search, ...) are stored and change no value.

    Setting an unknown field raises UnknownFieldError (a TypeError and an AttributeError), a value
    of another type FluidTypeError, and an unknown key of a configuration FluidValueError.
    """

    def __init__(self) -> None:
        for name, default in _DEFAULTS.items():
            object.__setattr__(
                self, name, _KINDS[name]() if name in _KINDS else copy.deepcopy(default)
            )

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _DEFAULTS:
            raise UnknownFieldError(
                f"DistributedStrategy has no field {name!r}{near(name, _DEFAULTS)}"
            )
        object.__setattr__(self, name, self._checked(name, value))

    def __getattr__(self, name: str) -> Any:
        raise UnknownFieldError(f"DistributedStrategy has no field {name!r}{near(name, _DEFAULTS)}")

    def _checked(self, name: str, value: Any) -> Any:
        default = _DEFAULTS[name]
        if name in CONFIGS:
            return {**getattr(self, name), **_config(name, value)}
        if name in _KINDS:
            return _of(name, value, _KINDS[name], f"a {_KINDS[name].__name__}")
        if isinstance(default, bool):
            return _of(name, value, bool, "True or False")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FluidTypeError(f"DistributedStrategy.{name} is a number, not {value!r}")
        return type(default)(value)

    def __deepcopy__(self, memo: Any) -> DistributedStrategy:
        """Copies the configurations; variables and strategies within are shared."""
        made = DistributedStrategy()
        for name in _DEFAULTS:
            value = getattr(self, name)
            object.__setattr__(
                made,
                name,
                (
                    {k: copy.copy(v) for k, v in value.items()}
                    if name in CONFIGS
                    else copy.copy(value)
                ),
            )
        return made

    def __repr__(self) -> str:
        """The fields that differ from their defaults, one per line."""
        changed = [n for n in _DEFAULTS if n not in _KINDS and getattr(self, n) != _DEFAULTS[n]]
        return "\n".join(
            ["DistributedStrategy", *(f"    {n} = {getattr(self, n)!r}" for n in changed)]
        )

    def refuse_what_is_not_there(self) -> None:
        """Raises UnsupportedError, naming the field."""
        for name, why in _REFUSED.items():
            if getattr(self, name):
                raise UnsupportedError(f"DistributedStrategy.{name}: {why}")
        for name, keys in _REFUSED_CONFIGS.items():
            for key, why in keys.items():
                if getattr(self, name.removesuffix("_configs")) and getattr(self, name)[key]:
                    raise UnsupportedError(f"DistributedStrategy.{name}[{key!r}]: {why}")
        for name, keys in _ALWAYS.items():
            for key, why in keys.items():
                if getattr(self, name)[key]:
                    raise UnsupportedError(f"DistributedStrategy.{name}[{key!r}]: {why}")
        if (how := self.gradient_scale_configs["scale_strategy"]) != "avg":
            raise UnsupportedError(
                "DistributedStrategy.gradient_scale_configs['scale_strategy'] is 'avg', not"
                f" {how!r}"
            )
        build = self.build_strategy
        if build.gradient_scale_strategy != BuildStrategy.GradientScaleStrategy.CoeffNumDevice:
            raise UnsupportedError(
                "DistributedStrategy.build_strategy.gradient_scale_strategy is CoeffNumDevice:"
                " gradients are averaged"
            )
        if build.reduce_strategy != BuildStrategy.ReduceStrategy.AllReduce:
            raise UnsupportedError(
                "DistributedStrategy.build_strategy.reduce_strategy is AllReduce; set"
                " DistributedStrategy.sharding"
            )
        for name, degrees in _ALONE.items():
            for key in degrees:
                if (
                    getattr(self, name)[key] > 1
                    and getattr(self, name.removesuffix("_configs"), True) is not False
                ):
                    raise UnsupportedError(
                        f"DistributedStrategy.{name}[{key!r}] is 1: one model is not cut over"
                        " several processes"
                    )


def _of(name: str, value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise FluidTypeError(f"DistributedStrategy.{name} is {what}, not {value!r}")
    return value


def _config(name: str, given: Any) -> dict[str, Any]:
    """Checked entries of a configuration."""
    there = CONFIGS[name]
    if not isinstance(given, Mapping):
        raise FluidTypeError(f"DistributedStrategy.{name} is a dict, not {given!r}")
    found = {}
    for key, value in given.items():
        if key not in there:
            raise FluidValueError(
                f"DistributedStrategy.{name} has no {key!r}{near(str(key), there)}; it has"
                f" {', '.join(there)}"
            )
        default = there[key]
        kind: Any = (
            int | float
            if isinstance(default, int | float) and not isinstance(default, bool)
            else type(default)
        )
        if isinstance(default, list) and isinstance(value, tuple | set):
            value = list(value)
        if not isinstance(value, kind) or (
            isinstance(value, bool) and not isinstance(default, bool)
        ):
            raise FluidTypeError(
                f"DistributedStrategy.{name}[{key!r}] is a value such as {default!r}, not {value!r}"
            )
        found[key] = value
    return found


__all__ = ["DistributedStrategy"]
