"""fluid.contrib.slim.quantization: programs with numbers rounded to integers of few bits."""

from typing import TYPE_CHECKING

from ....base.absent import reporter
from . import post_training_quantization as post_training_quantization
from . import quantization_pass as quantization_pass
from .post_training_quantization import *  # noqa: F403
from .quantization_pass import *  # noqa: F403

__all__: list[str] = []
__all__ += post_training_quantization.__all__
__all__ += quantization_pass.__all__

_COMPRESSOR = (
    "is a strategy of slim's Compressor, which is not supported; apply QuantizationTransformPass and"
    " train by Executor.run"
)
_MKLDNN = (
    "is for MKL-DNN's integer kernels, which are not supported; use QuantizationFreezePass and"
    " ConvertToInt8Pass"
)
HINTS = {
    "QuantizationStrategy": _COMPRESSOR,
    **dict.fromkeys(
        ("MKLDNNPostTrainingQuantStrategy", "QatInt8MkldnnPass", "Qat2Int8MkldnnPass"), _MKLDNN
    ),
}

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib.slim.quantization", __all__, HINTS)
