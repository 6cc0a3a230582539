"""The passes under the module name that scripts import."""

from typing import TYPE_CHECKING

from ....base.absent import reporter
from .add_quant_dequant import AddQuantDequantPass
from .freeze import QuantizationFreezePass
from .int8 import ConvertToInt8Pass, TransformForMobilePass
from .out_scale import OutScaleForInferencePass, OutScaleForTrainingPass
from .tables import OUT_SCALES
from .transform import QuantizationTransformPass

__all__ = [
    "AddQuantDequantPass",
    "ConvertToInt8Pass",
    "OutScaleForInferencePass",
    "OutScaleForTrainingPass",
    "QuantizationFreezePass",
    "QuantizationTransformPass",
    "TransformForMobilePass",
]

_out_scale_op_list = list(OUT_SCALES)

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib.slim.quantization.quantization_pass", __all__)
