"""fluid.contrib.slim.quantization: programs whose numbers are rounded to what integers of few bits can say."""

from typing import TYPE_CHECKING

from ....base.absent import reporter
from . import quantization_pass as quantization_pass
from .quantization_pass import *  # noqa: F403

__all__: list[str] = []
__all__ += quantization_pass.__all__

_COMPRESSOR = "is a strategy of slim's Compressor, which is not there; apply QuantizationTransformPass and train by Executor.run"
_MKLDNN = "is for MKL-DNN's integer kernels, which are not there; use QuantizationFreezePass and ConvertToInt8Pass"
HINTS = {
    "QuantizationStrategy": _COMPRESSOR,
    **dict.fromkeys(
        ("PostTrainingQuantization", "WeightQuantization"),
        "quantises without training, which is not there; train a few steps with QuantizationTransformPass",
    ),
    **dict.fromkeys(("MKLDNNPostTrainingQuantStrategy", "QatInt8MkldnnPass", "Qat2Int8MkldnnPass"), _MKLDNN),
}

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib.slim.quantization", __all__, HINTS)
