"""Additions of Paddle 2 and 3 to op types of 1.8.5, so that a program that uses an unsupported one
is refused instead of computed wrongly.

Attributes are listed with their type and the one value that keeps the old meaning; ANY is a hint to
kernels, or redundant here. An op whose function has a parameter of that name takes every value.
Added slots in SLOTS are supported; others are refused because no definition names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ANY = object()
# the value of an attribute that is absent because the op was written before Paddle 2
UNSAID: Any = None

# Added input and output slots that are supported.
_MASTER = ("MasterParam", "MasterParamOut")
SLOTS: Mapping[str, tuple[str, ...]] = {
    "adadelta": ("LearningRate", *_MASTER),
    "adagrad": _MASTER,
    "adam": (
        "Moment2Max",
        "MasterParam",
        "SkipUpdate",
        "EpsilonTensor",
        "Moment2MaxOut",
        "MasterParamOut",
    ),
    "adamax": _MASTER,
    "allclose": ("Rtol", "Atol"),
    "collect_fpn_proposals": ("MultiLevelRoIsNum", "RoisNum"),
    "distribute_fpn_proposals": ("RoisNum", "MultiLevelRoIsNum"),
    "gather": ("Axis",),
    "generate_proposals": ("RpnRoisNum",),
    "lamb": (*_MASTER, "SkipUpdate", "Beta1PowOut", "Beta2PowOut"),
    "matrix_nms": ("RoisNum",),
    "momentum": _MASTER,
    "psroi_pool": ("RoisNum",),
    "reduce_all": ("AxisTensor", "AxisTensorList"),
    "reduce_any": ("AxisTensor", "AxisTensorList"),
    "rmsprop": _MASTER,
    "roi_align": ("RoisNum",),
    "roi_pool": ("RoisNum",),
    "roll": ("ShiftsTensor",),
    "scale": ("BiasTensor",),
    "sgd": _MASTER,
    "sigmoid_cross_entropy_with_logits": ("pos_weight",),
}
Added = Mapping[str, tuple[str, Any]]

_FALSE = ("BOOLEAN", False)
_HINT = ("BOOLEAN", ANY)
_PRECISION: Added = {"multi_precision": _FALSE}
_NCHW: Added = {"data_format": ("STRING", "NCHW")}
_OUTPUT_PADDING: Added = {"output_padding": ("INTS", ())}
_CEIL: Added = {"ceil_mode": _FALSE}
_RING: Added = {"use_model_parallel": _FALSE}
_FLATTEN: Added = {"flatten": _FALSE}
_ROUND: Added = {"round_type": ("INT", 0)}
_REGULAR: Added = {
    **_PRECISION,
    "regularization_method": ("STRING", ""),
    "regularization_coeff": ("FLOAT", ANY),
    "rescale_grad": ("FLOAT", 1.0),
}

LATER: Mapping[str, Added] = {
    "adadelta": _PRECISION,
    "adagrad": _PRECISION,
    "adam": {**_PRECISION, "use_global_beta_pow": _FALSE, "amsgrad": _FALSE},
    "adamax": _PRECISION,
    "affine_grid": {"align_corners": ("BOOLEAN", True)},
    "arg_max": _FLATTEN,
    "arg_min": _FLATTEN,
    "argsort": {"stable": _HINT},
    "assign_value": {"values": ("SCALARS", ()), "fp64_values": ("FLOAT64S", ())},
    "c_allreduce_max": _RING,
    "c_allreduce_min": _RING,
    "c_allreduce_prod": _RING,
    "c_allreduce_sum": _RING,
    "broadcast": {"ring_id": ("INT", ANY)},  # every ring is the same one here
    "c_comm_init": {"device_id": ("INT", ANY), "endpoints": ("STRING", ANY)},
    "conv2d_transpose": _OUTPUT_PADDING,
    "conv3d_transpose": _OUTPUT_PADDING,
    "cumsum": _FLATTEN,
    "depthwise_conv2d_transpose": _OUTPUT_PADDING,
    "dgc_momentum": _REGULAR,
    "distribute_fpn_proposals": {"pixel_offset": ("BOOLEAN", True)},
    "fake_channel_wise_dequantize_max_abs": {"quant_axis": ("INT", 0), "x_num_col_dims": ("INT", 1)},
    "fake_channel_wise_quantize_abs_max": {**_ROUND, "quant_axis": ("INT", 0), "is_test": _FALSE},
    "fake_quantize_abs_max": _ROUND,
    "fake_quantize_dequantize_moving_average_abs_max": _ROUND,
    "fake_quantize_moving_average_abs_max": _ROUND,
    "fake_quantize_range_abs_max": _ROUND,
    "flip": {"axis": ("INTS", ())},  # it was named dims
    "fusion_gru": {"Scale_data": ("FLOAT", 1.0), "Shift_data": ("FLOAT", 0.0)},
    "fusion_lstm": {
        "Scale_data": ("FLOAT", 1.0), "Scale_weights": ("FLOATS", (1.0,)), "Shift_data": ("FLOAT", 0.0), "force_fp32_output": _FALSE,
    },
    "gather": {"axis": ("INT", 0)},
    "grid_sampler": {"align_corners": ("BOOLEAN", True), "mode": ("STRING", "bilinear"), "padding_mode": ("STRING", "zeros")},
    "gru": {"is_test": _HINT},
    "hash": {"ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE": _HINT},
    "kldiv_loss": {"log_target": _FALSE},
    "lamb": {**_PRECISION, "always_adapt": _FALSE},
    "lars_momentum": {
        **_PRECISION, "epsilon": ("FLOAT", 0.0), "rescale_grad": ("FLOAT", 1.0),
    },
    "linspace": {"dtype": ("INT", -1)},  # Start's
    "lookup_table": {
        "entry": ("STRING", ANY), "entry_config": ("STRING", ANY), "is_test": _HINT, "slot": ("INT", ANY), "table_class": ("STRING", ANY),
    },
    "lstm": {"is_test": _HINT},
    "matmul_v2": {f"fused_{what}_{of}": ("INTS", ()) for what in ("reshape", "transpose") for of in ("X", "Y", "Out")},
    "max_pool2d_with_index": _CEIL,
    "max_pool3d_with_index": _CEIL,
    "momentum": _REGULAR,
    "nce": {"is_test": _HINT},
    "norm": {"is_test": _HINT},
    "p_norm": {"asvector": _FALSE},
    "pixel_shuffle": _NCHW,
    "prelu": _NCHW,
    "print": {"print_tensor_layout": _HINT},
    "rank_attention": {"MaxSize": ("INT", ANY)},
    "rmsprop": _PRECISION,
    "roi_align": {"aligned": _FALSE},
    "roll": {"axis": ("LONGS", ())},  # it was named dims
    "round": {"decimals": ("INT", 0)},
    "set_value": {
        "bool_values": ("INTS", ()), "fp32_values": ("FLOATS", ()), "int32_values": ("INTS", ()), "int64_values": ("LONGS", ()),
        "fp64_values": ("FLOAT64S", ()),
    },  # before 2.5
    "sgd": _PRECISION,
    "softmax_with_cross_entropy": {"use_softmax": ("BOOLEAN", True)},
    # beyond 20, log(1 + e^x) is x in float32
    "softplus": {"beta": ("FLOAT", 1.0), "threshold": ("FLOAT", 20.0)},
    "tdm_sampler": {"layer_offset": ("INTS", ())},  # it was named layer_offset_lod
    "temporal_shift": _NCHW,
    "thresholded_relu": {"value": ("FLOAT", 0.0)},
    "trace": {"axis1": ("INT", -2), "axis2": ("INT", -1)},  # they were named dim1, dim2
    "truncated_gaussian_random": {"a": ("FLOAT", -2.0), "b": ("FLOAT", 2.0)},
    "unique": {"axis": ("INTS", ()), "is_sorted": _FALSE, **{f"return_{what}": _FALSE for what in ("counts", "index", "inverse")}},
    "unpool": {**_NCHW, "output_size": ("INTS", ())},
    # the factor is that of iou_aware
    "yolo_box": {"iou_aware": _FALSE, "iou_aware_factor": ("FLOAT", ANY)},
}  # fmt: skip
